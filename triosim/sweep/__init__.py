"""One scenario with some fields going through lists and ranges, every combination simulated."""

from triosim.sweep.found import Point, SweepResult
from triosim.sweep.metrics import METRICS, Metric
from triosim.sweep.run import run_points, sweep
from triosim.sweep.spec import Axis, SweepSpec, read_spec

__all__ = [
    "METRICS", "Axis", "Metric", "Point", "SweepResult", "SweepSpec", "read_spec", "run_points",
    "sweep",
]  # fmt: skip

"""What happens to a training step on other hardware or in another parallel layout.

>>> import triosim as ts
>>> result = ts.simulate(ts.Scenario(case=2, gpus=8))
"""

from triosim.analysis.checks import Check
from triosim.analysis.goodput import Goodput, goodput
from triosim.chakra import ReplayResult, replay, write_chakra
from triosim.collective import CollectiveResult, collective
from triosim.compare import Comparison, compare
from triosim.errors import (
    ConfigError,
    Infeasible,
    SimulationError,
    TraceFormatError,
    TrioSimError,
)
from triosim.explain import Explanation, explain
from triosim.export.chrome import chrome_trace
from triosim.export.hta import write_hta
from triosim.network.sharing import share
from triosim.network.topology.description import Description
from triosim.overlay import Overlay, overlay
from triosim.pipelines import PipelineResult, pipeline
from triosim.resolved import Resolved, resolve, run
from triosim.result import Result
from triosim.saved import SavedResult, read_result
from triosim.scenario import Scenario
from triosim.search import SearchResult, search
from triosim.simulate import simulate
from triosim.sweep import SweepResult, sweep
from triosim.trace import Trace, load_trace, read_trace, write_trace
from triosim.train import TrainResult, TrainScenario, train

__version__ = "0.1.0"

__all__ = [
    "Check",
    "CollectiveResult",
    "Comparison",
    "ConfigError",
    "Description",
    "Explanation",
    "Goodput",
    "Infeasible",
    "Overlay",
    "PipelineResult",
    "ReplayResult",
    "Resolved",
    "Result",
    "Scenario",
    "SavedResult",
    "SearchResult",
    "SimulationError",
    "SweepResult",
    "Trace",
    "TraceFormatError",
    "TrainResult",
    "TrainScenario",
    "TrioSimError",
    "chrome_trace",
    "collective",
    "compare",
    "explain",
    "goodput",
    "load_trace",
    "overlay",
    "pipeline",
    "read_result",
    "read_trace",
    "replay",
    "resolve",
    "run",
    "search",
    "share",
    "simulate",
    "sweep",
    "train",
    "write_chakra",
    "write_hta",
    "write_trace",
]

"""One training step of a language model on a device mesh: plan, program, result."""

from triosim.train.plan import Plan
from triosim.train.resolve import make_plan
from triosim.train.result import Band, TrainResult
from triosim.train.scenario import CONTEXTS, PRECISIONS, RECOMPUTE, TrainScenario
from triosim.train.train import simulate_step, train

__all__ = [
    "CONTEXTS", "PRECISIONS", "RECOMPUTE", "Band", "Plan", "TrainResult", "TrainScenario",
    "make_plan", "simulate_step", "train",
]  # fmt: skip

"""Why would torch.compile gain more on 128 GPUs than on 8? Four mechanisms as switches.

The runs are TorchTitan's first-hand ones of Llama 3 8B under FSDP2 in bf16. With every mechanism
off the GPU never waits for its CPU, transfers cost computation nothing, and all gathers but the
first hide behind the layer before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from triosim.errors import ConfigError
from triosim.hardware.stacks import Stack, load_stack
from triosim.train import TrainScenario, simulate_step
from triosim.validation.tables import Row, load_source, rows_of

LAUNCH, JITTER = "launch-bound", "cpu-jitter"
SLOWDOWN, GATHER = "overlap-slow-down", "exposed-gather"
MECHANISMS: Mapping[str, str] = {
    LAUNCH: "The CPU launches at the slow end of the stack's range, and the GPU waits where it "
    "computes faster than that.",
    JITTER: "Launches take 10 % more or less from rank to rank, and the slowest of all ranks sets "
    "the pace.",
    SLOWDOWN: "A computation takes longer while its GPU sends or receives.",
    GATHER: "No layer is gathered ahead: the GPU waits for every all-gather.",
}
NOTHING_ON: Mapping[str, bool] = dict.fromkeys(MECHANISMS, False)
_JITTER = 0.1
# Numbers of the rows, eager and compiled, on 8 and on 128 GPUs.
Pairs = tuple[tuple[int, int], tuple[int, int]]
_FIRST_HAND: Pairs = ((0, 1), (3, 4))
_SECOND_HAND: Pairs = ((43, 44), (46, 47))


@dataclass(frozen=True, kw_only=True, slots=True)
class Gain:
    """A step without and with torch.compile; `gain` 0.15 is 15 % more tokens per second."""

    gpus: int
    eager_s: float
    compiled_s: float

    @property
    def saved_s(self) -> float:
        return self.eager_s - self.compiled_s

    @property
    def gain(self) -> float:
        return self.eager_s / self.compiled_s - 1


def compile_gains(switches: Mapping[str, bool]) -> tuple[Gain, Gain]:
    """What compile saves on 8 and on 128 GPUs; mechanisms that are not named are off.

    Raises `ConfigError` on field "switches" for a name that is not in `MECHANISMS`.
    """
    for name in switches:
        if name not in MECHANISMS:
            raise ConfigError("switches", name, f"must be one of {', '.join(MECHANISMS)}")
    on = {name for name, is_on in switches.items() if is_on}
    return _gains(_FIRST_HAND, lambda row: simulate_step(switched(row.scenario, on)).step_s)


def published_gains(*, second_hand: bool = False) -> tuple[Gain, Gain]:
    """What was published on 8 and on 128 GPUs: by the repository, or by the paper as quoted."""
    return _gains(_SECOND_HAND if second_hand else _FIRST_HAND, lambda row: row.published_s or 0.0)


def switched(scenario: TrainScenario, on: set[str]) -> TrainScenario:
    """The scenario with only these mechanisms in effect."""
    stack = load_stack(scenario.stack)
    constants = {
        **_cpu(stack, on),
        "overlap_slowdown": stack.overlap_slowdown.value if SLOWDOWN in on else 0.0,
    }
    return replace(scenario, constants=constants, prefetch=0 if GATHER in on else None)


def _cpu(stack: Stack, on: set[str]) -> dict[str, float]:
    """What the CPU spends per kernel: nothing, the stack's own figure, or its slow end."""
    names = ("launch_us", "compiled_launch_us", "collective_us")
    if LAUNCH in on:
        costs = {name: getattr(stack, name).high for name in names}
    elif JITTER in on:
        costs = {name: getattr(stack, name).value for name in names}
    else:
        costs = dict.fromkeys(names, 0.0)
    return {**costs, "cpu_jitter": _JITTER if JITTER in on else 0.0}


def _gains(pairs: Pairs, seconds: Callable[[Row], float]) -> tuple[Gain, Gain]:
    rows = {row.number: row for row in rows_of(load_source("torchtitan"))}
    one, other = (
        Gain(
            gpus=rows[eager].scenario.gpus,
            eager_s=seconds(rows[eager]),
            compiled_s=seconds(rows[compiled]),
        )
        for eager, compiled in pairs
    )
    return one, other

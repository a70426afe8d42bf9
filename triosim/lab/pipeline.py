"""Questions P1 to P3: pipeline schedules without transfer costs.

F and B are the times of a whole stage and micro-batch, B with its weight part; p stages, m
micro-batches, v chunks of the model on each stage.
"""

from __future__ import annotations

from collections.abc import Callable

from triosim.lab.question import Parameter, Quantity, Question, Slip
from triosim.pipelines import PipelineResult, pipeline

STAGES = Parameter(name="stages", label="Stages p", low=1, high=16)
MICROBATCHES = Parameter(name="microbatches", label="Micro-batches m", low=1, high=96)
FORWARD = Parameter(name="forward", label="Forward F", low=0.1, high=10, step=0.1, whole=False)
BACKWARD = Parameter(name="backward", label="Backward B", low=0.1, high=10, step=0.1, whole=False)
WEIGHT = Parameter(name="weight", label="of that weights W", low=0, high=10, step=0.1, whole=False)
TRANSFER = Parameter(
    name="transfer", label="Transfer to the next stage", low=0, high=5, step=0.1, whole=False
)
CHUNKS = Parameter(name="chunks", label="Chunks on a stage v", low=1, high=8)
MOST_PERCENT = Parameter(
    name="most_percent", label="Bubble at most (%)", low=5, high=50, whole=False
)
LAB = "pipeline"
ROUNDING = 1e-12
TIMES = {"chunks": 2, "forward": 1, "backward": 2, "weight": 1, "transfer": 0}


def flush_time(
    *, stages: float, microbatches: float, forward: float, backward: float, **_: float
) -> float:
    """GPipe and 1F1B: (m + p - 1)(F + B) (Narayanan et al., arXiv 2104.04473)."""
    return (microbatches + stages - 1) * (forward + backward)


def interleaved_time(
    *,
    stages: float,
    microbatches: float,
    forward: float,
    backward: float,
    chunks: float,
    **_: float,
) -> float:
    """m(F + B) + (p - 1)(F + B)/v, where p divides m (arXiv 2104.04473)."""
    return (microbatches + (stages - 1) / chunks) * (forward + backward)


def zb_h1_time(
    *,
    stages: float,
    microbatches: float,
    forward: float,
    backward: float,
    weight: float,
    **_: float,
) -> float:
    """m(F + B) + (p - 1)(F + B - 2W), for m >= p and W <= min(F, B - W) (arXiv 2401.10241)."""
    whole = forward + backward
    return microbatches * whole + (stages - 1) * (whole - 2 * weight)


def least_microbatches(*, stages: float, most_percent: float, **_: float) -> float:
    """(p - 1)/(m + p - 1) <= x, so m >= (p - 1)(1 - x)/x."""
    share = most_percent / 100
    return float(_up((stages - 1) * (1 - share) / share))


def _up(value: float) -> int:
    """To the next whole number, but for rounding."""
    return max(1, -int(-round(value, 9) // 1))


def _makespan(schedule: str, *, chunks: float = 1, **values: float) -> float:
    return pipeline(
        schedule,
        stages=int(values["stages"]),
        microbatches=int(values["microbatches"]),
        forward=values["forward"],
        backward=values["backward"],
        weight=min(values["weight"], values["backward"]),
        transfer=values["transfer"],
        chunks=int(chunks) if schedule == "interleaved" else 1,
    ).makespan


def flush_run(**values: float) -> float:
    return _makespan("1f1b", **values)


def interleaved_run(**values: float) -> float:
    return _makespan("interleaved", **values)


def zb_h1_run(**values: float) -> float:
    return _makespan("zb-h1", **values)


def least_microbatches_run(*, stages: float, most_percent: float, **_: float) -> float:
    """The engine's schedules with more and more micro-batches, the bubble over the total."""
    return _search(int(stages), lambda run: run.bubble_of_total <= most_percent / 100 + ROUNDING)


def _of_ideal_run(*, stages: float, most_percent: float, **_: float) -> float:
    """The same with the bubble over the ideal time."""
    return _search(int(stages), lambda run: run.bubble_of_ideal <= most_percent / 100 + ROUNDING)


def _search(stages: int, enough: Callable[[PipelineResult], bool]) -> float:
    """The least number of micro-batches: with more of them the bubble only ever shrinks."""

    def suffice(microbatches: int) -> bool:
        return enough(pipeline("1f1b", stages=stages, microbatches=microbatches))

    high = 1
    while not suffice(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffice(middle) else (middle, high)
    return float(high)


def _ratio(**values: float) -> float:
    return flush_time(**values) / interleaved_time(**values)


def _ratio_run(**values: float) -> float:
    return flush_run(**values) / interleaved_run(**values)


P1 = Question(
    id="P1",
    lab=LAB,
    text="4 stages, 8 micro-batches, forward 1, backward 2. 1F1B runs interleaved: each stage "
    "holds v = 2 chunks of the model. How long is the step?",
    given={"stages": 4, "microbatches": 8, **TIMES},
    parameters=(STAGES, MICROBATCHES, CHUNKS, FORWARD, BACKWARD, WEIGHT, TRANSFER),
    answer=Quantity(
        label="Interleaved, v = 2",
        unit="units of time",
        formula=r"m\,(F+B)+\frac{(p-1)(F+B)}{v}",
        closed=interleaved_time,
        engine=interleaved_run,
    ),
    also=(
        Quantity(
            label="1F1B",
            unit="units of time",
            formula=r"(m+p-1)(F+B)",
            closed=flush_time,
            engine=flush_run,
        ),
        Quantity(
            label="ZB-H1",
            unit="units of time",
            formula=r"m\,(F+B)+(p-1)(F+B-2W)",
            closed=zb_h1_time,
            engine=zb_h1_run,
        ),
    ),
    slips=(
        Slip(
            name="no chunks",
            closed=flush_time,
            hint="That is plain 1F1B, (m + p \u2212 1)(F + B). With v chunks a stage waits for a "
            "piece 1/v as long before it can start.",
        ),
        Slip(
            name="no bubble",
            closed=lambda microbatches, forward, backward, **_: microbatches * (forward + backward),
            hint="That is only the work, m(F + B). The last stage cannot start before the first "
            "micro-batch has come through.",
        ),
        Slip(
            name="all of it over v",
            closed=lambda chunks, **v: flush_time(**v) / chunks,
            hint="Chunks cut the waiting, not the work: m(F + B) stays whole, and only "
            "(p \u2212 1)(F + B) is divided by v.",
        ),
    ),
    why="Work stays m(F + B) = 24. The wait of (p \u2212 1)(F + B) = 9 is halved to 4.5.",
)
P2 = Question(
    id="P2",
    lab=LAB,
    text="8 equal stages, GPipe or 1F1B. What is the smallest number of micro-batches for which "
    "the bubble is at most 10 % of the total time?",
    given={"stages": 8, "most_percent": 10},
    parameters=(STAGES, MOST_PERCENT),
    answer=Quantity(
        label="Micro-batches",
        unit="micro-batches",
        formula=r"\frac{p-1}{m+p-1}\le x \;\Rightarrow\; m\ge (p-1)\,\frac{1-x}{x}",
        closed=least_microbatches,
        engine=least_microbatches_run,
    ),
    also=(
        Quantity(
            label="Counted over the ideal time",
            unit="micro-batches",
            formula=r"\frac{p-1}{m}\le x",
            closed=lambda stages, most_percent, **_: float(
                _up((stages - 1) / (most_percent / 100))
            ),
            engine=_of_ideal_run,
        ),
    ),
    slips=(
        Slip(
            name="bubble over ideal",
            closed=lambda stages, most_percent: (stages - 1) / (most_percent / 100),
            hint="That divides the bubble by the ideal time, (p \u2212 1)/m. The question says of "
            "the total: (p \u2212 1)/(m + p \u2212 1).",
        ),
        Slip(
            name="p over m",
            closed=lambda stages, most_percent: stages / (most_percent / 100),
            hint="The bubble is p \u2212 1 slots and not p: the first stage starts at once. And of "
            "the total means over m + p \u2212 1.",
        ),
    ),
    why="7/(m + 7) \u2264 0.1, so m \u2265 63. Divided by the ideal time it would be 70.",
)
P3 = Question(
    id="P3",
    lab=LAB,
    text="Llama 405B on 8 stages with 8 micro-batches (F 1, B 2). How many times faster is "
    "interleaved 1F1B with v = 2 than plain 1F1B?",
    given={"stages": 8, "microbatches": 8, **TIMES},
    parameters=(STAGES, MICROBATCHES, CHUNKS, FORWARD, BACKWARD, WEIGHT, TRANSFER),
    answer=Quantity(
        label="1F1B over interleaved",
        unit="\u00d7",
        formula=r"\frac{m+p-1}{m+(p-1)/v}",
        closed=_ratio,
        engine=_ratio_run,
    ),
    slips=(
        Slip(
            name="v times",
            closed=lambda chunks, **_: chunks,
            hint="Only the bubble is divided by v. The work m(F + B) is the same in both.",
        ),
        Slip(
            name="upside down",
            closed=lambda **v: 1 / _ratio(**v),
            hint="That is interleaved over 1F1B: turn the fraction round.",
        ),
        Slip(
            name="all bubble gone",
            closed=lambda stages, microbatches, **_: (microbatches + stages - 1) / microbatches,
            hint="Interleaving leaves (p \u2212 1)/v slots of bubble; it does not remove all of "
            "it.",
        ),
    ),
    why="15 slots against 8 + 7/2 = 11.5.",
    published="TorchTitan measured 1.28: 128 against 100 tokens/s per GPU (405B on 512 H100s).",
)


QUESTIONS = (P1, P2, P3)

"""The lab on pipeline schedules: grid, both times, both bubbles, memory, speed for memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from dashboard.cards import show_cards
from dashboard.lab.desk import Desk
from dashboard.lab.lab import Cause, Lab, choice
from dashboard.plain import plain
from triosim.errors import TrioSimError
from triosim.figures.schedule_grid import schedule_grid
from triosim.figures.schedule_trade import (
    bubble_for_microbatches,
    memory_by_stage,
    speed_for_memory,
)
from triosim.figures.text import short
from triosim.lab.pipeline import BACKWARD, CHUNKS, FORWARD, MICROBATCHES, TIMES, TRANSFER, WEIGHT
from triosim.lab.stage_times import MODELS, StageTimes, stage_times
from triosim.pipelines import PipelineResult, pipeline
from triosim.schedules import SCHEDULES

BY_HAND = "by hand"
CHUNKED = ("interleaved", "looped-bfs")
VIEWS = ("Grid", "Memory per stage", "Speed for memory", "Bubble")
MANY = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
IN_FLIGHT = "micro-batches"


@dataclass(frozen=True, kw_only=True)
class Times:
    """What the schedules run with: one value, or one for each stage."""

    forward: float | tuple[float, ...]
    backward: float | tuple[float, ...]
    weight: float | tuple[float, ...]
    transfer: float | tuple[float, ...]
    unit: str
    kept_gib: tuple[float, ...] | None = None

    @property
    def memory_unit(self) -> str:
        return IN_FLIGHT if self.kept_gib is None else "GiB"


def draw(desk: Desk) -> None:
    """Choices, cards, and one of the pictures."""
    view = desk.tabs("view")
    with desk.row():
        name = desk.choice("schedule")
        source = desk.choice("times")
    stages, microbatches, chunks = (desk.count(n) for n in ("stages", "microbatches", "chunks"))
    try:
        times = times_of(desk.values, source, stages)
        result = scheduled(name, stages, microbatches, chunks, times)
    except TrioSimError as error:
        desk.complain("No schedule", error)
        return
    show_cards(_cards(result, times))
    if view == "Grid":
        desk.show(
            schedule_grid(result, times.unit, style=desk.style),
            f"Which stage runs what when, {name}",
        )
    elif view == "Memory per stage":
        held = held_by_stage(result, times)
        desk.show(
            memory_by_stage(held, times.memory_unit, style=desk.style),
            "Activations that each stage holds at most",
        )
        _copies(result)
    elif view == "Speed for memory":
        _speed_for_memory(desk, name, times)
    else:
        _bubble(desk, name, times)


def times_of(values: Mapping[str, float], source: str, stages: int) -> Times:
    """By hand, or out of a model.

    Raises `ConfigError` where the model cannot be cut into so many stages.
    """
    if source == BY_HAND:
        return Times(
            forward=values["forward"],
            backward=values["backward"],
            weight=min(values["weight"], values["backward"]),
            transfer=values["transfer"],
            unit="units of time",
        )
    found: StageTimes = stage_times(source, stages)
    return Times(
        forward=found.forward,
        backward=found.backward,
        weight=found.weight,
        transfer=found.transfer,
        unit="ms",
        kept_gib=found.kept_gib,
    )


def scheduled(
    name: str, stages: int, microbatches: int, chunks: int, times: Times
) -> PipelineResult:
    """A schedule by name, chunks where it can have any number of them."""
    return pipeline(
        name,
        stages=stages,
        microbatches=microbatches,
        chunks=chunks if name in CHUNKED else 1,
        forward=times.forward,
        backward=times.backward,
        weight=times.weight,
        transfer=times.transfer,
    )


def held_by_stage(result: PipelineResult, times: Times) -> tuple[float, ...]:
    """Activations of each stage: micro-batches, or GiB where a model says how large they are."""
    if times.kept_gib is None:
        return result.peak_in_flight
    pairs = zip(result.peak_in_flight, times.kept_gib, strict=True)
    return tuple(count * size for count, size in pairs)


def _cards(result: PipelineResult, times: Times) -> tuple[tuple[str, str, str], ...]:
    held = held_by_stage(result, times)
    fullest = max(range(len(held)), key=held.__getitem__)
    ms = " ms" if times.unit == "ms" else ""
    return (
        ("Makespan", f"{short(result.makespan)}{ms}", "first start to last end"),
        ("Period", f"{short(result.period)}{ms}", "of a step once it is full"),
        ("Bubble of the total", _percent(result.bubble_of_total), "(period \u2212 work) / period"),
        ("Bubble of the ideal", _percent(result.bubble_of_ideal), "(period \u2212 work) / work"),
        ("Activations held", short(max(held)), f"{times.memory_unit} on stage {fullest}"),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _copies(result: PipelineResult) -> None:
    if result.parameter_copies > 1:
        st.caption("DualPipe also holds the parameters twice.")


def _speed_for_memory(desk: Desk, chosen: str, times: Times) -> None:
    points, refused = {}, {}
    for name in SCHEDULES:
        try:
            result = scheduled(
                name, desk.count("stages"), desk.count("microbatches"), desk.count("chunks"), times
            )
        except TrioSimError as error:
            refused[name] = str(error)
            continue
        points[name] = (max(held_by_stage(result, times)), 1 - result.bubble_of_total)
    desk.show(
        speed_for_memory(points, chosen, times.memory_unit, style=desk.style),
        "Every schedule: memory of the fullest stage against the share of time it computes",
    )
    lines = [f"- {name}: {plain(why)}" for name, why in refused.items()]
    st.caption(
        "Up is faster, left needs less memory. Computing: of a period."
        + ("\n\nNot drawn:\n" + "\n".join(lines) if lines else "")
    )


def _bubble(desk: Desk, name: str, times: Times) -> None:
    """The chosen schedule at many numbers of micro-batches, against the formula of 1F1B."""
    found: dict[int, PipelineResult] = {}
    for microbatches in sorted({*MANY, desk.count("microbatches")}):
        try:
            found[microbatches] = scheduled(
                name, desk.count("stages"), microbatches, desk.count("chunks"), times
            )
        except TrioSimError:
            continue
    if not found:
        st.info("This schedule runs with none of these numbers of micro-batches.")
        return
    most = desk.values.get("most_percent")
    desk.show(
        bubble_for_microbatches(
            list(found),
            [result.bubble_of_total for result in found.values()],
            [result.bubble_of_ideal for result in found.values()],
            desk.count("stages"),
            None if most is None else most / 100,
            style=desk.style,
        ),
        f"The bubble of {name} against the number of micro-batches",
    )
    st.caption(f"Dots: {name}, simulated. Lines: the formulas of GPipe and 1F1B.")


def _outside_zero_bubble(values: Mapping[str, float]) -> bool:
    forward, backward, weight = (values[name] for name in ("forward", "backward", "weight"))
    few = values["microbatches"] < values["stages"]
    return few or weight > min(forward, backward - weight) + 1e-9


LAB = Lab(
    code="pipeline",
    page="pages/lab_pipeline.py",
    title="Pipeline schedules",
    idea="The model is cut into p stages. Each batch is cut into m micro-batches, so that stages "
    "work at the same time. While the pipeline fills and drains, stages wait: the bubble. "
    "Schedules differ in how long they wait and in how many micro-batches each stage must keep in "
    "memory.",
    formula=r"\begin{aligned}t&=(m+p-1)(F+B)\\ \text{bubble}&=\frac{p-1}{m+p-1}\text{ of the "
    r"total}\\ &=\frac{p-1}{m}\text{ of the ideal}\end{aligned}",
    quick=("P1", "P3"),
    source="Narayanan et al., arXiv 2104.04473. Zero bubble: Qi et al., arXiv 2401.10241.",
    questions=("P1", "P2", "P3"),
    more=(MICROBATCHES, CHUNKS, FORWARD, BACKWARD, WEIGHT, TRANSFER),
    defaults={
        "": {"microbatches": 16, **TIMES, "schedule": "interleaved"},
        "P2": {"schedule": "1f1b", "view": "Bubble", "microbatches": 63},
    },
    settings={
        "schedule": choice("Schedule", tuple(SCHEDULES), "1f1b"),
        "times": choice("Times of a stage", (BY_HAND, *MODELS)),
        "view": choice("Picture", VIEWS),
    },
    explain=(
        Cause(
            "Transfer",
            "the formula has none. The simulation puts it on every way to the next stage, so it "
            "adds to the fill, and inside a schedule where stages wait for each other.",
            lambda values: values["transfer"] > 0,
        ),
        Cause(
            "Few micro-batches",
            "interleaved's formula holds where p divides m. With fewer than p the stages wait "
            "longer; other numbers the schedule does not have.",
            lambda values: values["microbatches"] < values["stages"],
        ),
        Cause(
            "Zero bubble's condition",
            "ZB-H1's formula holds for m \u2265 p and W at most F and B \u2212 W.",
            _outside_zero_bubble,
        ),
        Cause(
            "Uneven stages",
            "the formula has one F and one B. With times from a model the first and the last "
            "stage also hold embedding and head, and the slowest stage sets the pace. The axis "
            "above keeps the sliders' times.",
        ),
        Cause(
            "Makespan or period",
            "papers on zero bubble count the period, from step to step; the makespan counts from "
            "an empty pipeline.",
        ),
    ),
    not_modelled=(
        "Transfers do not share links here: each takes its time, whatever else is sent.",
        "Micro-batches take equally long: no padding, no experts that are chosen more often.",
        "The optimizer, data parallelism and CPU launches: the Train page has them.",
        "Memory counts activations, and not parameters, gradients and optimizer state.",
    ),
    draw=draw,
)

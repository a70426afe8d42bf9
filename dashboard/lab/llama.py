"""The lab on training Llama: published runs, their machine and mesh, simulated beside measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import streamlit as st

from dashboard.cards import show_cards
from dashboard.lab.desk import Desk
from dashboard.lab.lab import Cause, Lab, choice
from dashboard.train_head import signed
from dashboard.train_links import link_to
from dashboard.train_mesh import USES, axes_table, link_of
from dashboard.train_mesh_map import show_map
from dashboard.train_published import Published, presets
from dashboard.train_run import Answer, answer_to
from triosim.errors import TrioSimError, counted
from triosim.figures.lab_published import RunRow, beside_published
from triosim.figures.text import short, time_text
from triosim.figures.train_breakdown import train_breakdown
from triosim.figures.train_memory import memory_by_stage
from triosim.figures.train_mesh import MAX_RANKS, groups_along, mesh_map
from triosim.lab.training import inside_a_host, plan_of
from triosim.network.topology.machines import load_machine
from triosim.train import Plan

MESH, TIME, MEMORY, ALL = "Machine and mesh", "Step time", "Memory", "All runs of this size"
VIEWS = (MESH, TIME, MEMORY, ALL)
AXES = ("tp", "cp", "dp_shard", "dp_replicate", "pp")
SOURCE = "TorchTitan"
# Name on the page: row of the source's table.
RUNS: Mapping[str, int] = {
    "8B, 8 GPUs": 0,
    "8B, 8 GPUs, compiled": 1,
    "8B, 8 GPUs, compiled, FP8": 2,
    "8B, 128 GPUs": 3,
    "8B, 128 GPUs, compiled": 4,
    "8B, 128 GPUs, compiled, FP8": 5,
    "70B, 256 GPUs": 10,
    "70B, 256 GPUs, async TP": 11,
    "405B, 512 GPUs, 1F1B": 12,
    "405B, 512 GPUs, interleaved": 13,
}


def run_of(name: str) -> Published:
    """A published run by its name on the page."""
    return next(
        run
        for run in presets().values()
        if run.source.title == SOURCE and run.row.number == RUNS[name]
    )


def draw(desk: Desk) -> None:
    """The run, and one of four pictures."""
    view = desk.tabs("view")
    views: Mapping[str, Callable[[Desk, str, Answer], None]] = {
        MESH: _mesh, TIME: _time, MEMORY: _memory, ALL: _all,
    }  # fmt: skip
    try:
        if view == MESH and "pp" in desk.values:
            _own_mesh(desk)
            return
        with desk.row():
            name = desk.choice("run")
            scenario = run_of(name).row.scenario
            st.page_link(
                "pages/train.py", label="Open on Train", icon=":material/model_training:",
                query_params=link_to(scenario),
            )  # fmt: skip
        answer = answer_to(scenario)
        _cards(answer, run_of(name))
        views[view](desk, name, answer)
    except TrioSimError as error:
        desk.complain("Nothing to draw", error)


def _cards(answer: Answer, run: Published) -> None:
    """Simulated values, with what was published below each."""
    result, row = answer.result, run.row
    capacity = result.capacity_bytes / 2**30
    tokens, rate = result.tokens_per_s_per_gpu, run.tokens_per_s_per_gpu
    show_cards(
        (
            ("Step time", time_text(result.step_ms), _beside(result.step_s, row.published_s, "s")),
            ("Tokens/s per GPU", f"{tokens:,.0f}", _beside(tokens, rate, "")),
            (
                "Peak memory per GPU",
                f"{result.peak_memory_gib:,.1f} GiB",
                _beside(result.peak_memory_gib, row.published_gib, "GiB"),
            ),
            ("MFU", f"{100 * result.mfu:.1f} %", f"a GPU has {capacity:,.0f} GiB"),
        ),
        "llama",
    )


def _beside(simulated: float, published: float | None, unit: str) -> str:
    if published is None:
        return "not published"
    text = f"published {short(published)} {unit}".strip()
    return f"{text}: {signed(simulated / published - 1)}"


def _own_mesh(desk: Desk) -> None:
    """The mesh of the question's sliders."""
    sizes = {**desk.asked.given, **desk.values}
    plan = plan_of(**sizes)
    dp, batch = plan.sizes["dp_shard"], plan.global_batch
    show_cards(
        (
            ("GPUs", f"{plan.mesh.size:,}", "dp \u00d7 tp \u00d7 pp"),
            ("Hosts", f"{math.ceil(plan.mesh.size / 8):,}", "of 8 GPUs"),
            ("Sequences of a dp rank", f"{batch // dp:,}", f"of a batch of {batch:,}"),
            ("Axes inside a host", inside_a_host(**sizes) or "none", "the others cross NICs"),
        ),
        "mesh",
    )
    _drawing(desk, plan)


def _mesh(desk: Desk, name: str, answer: Answer) -> None:
    """The mesh of a published run."""
    _drawing(desk, answer.result.plan)


def _drawing(desk: Desk, plan: Plan) -> None:
    """Every rank in its host, the groups of one axis coloured, and the links that they use."""
    machine = load_machine(plan.machine)
    used = [axis for axis in AXES if plan.sizes.get(axis, 1) > 1]
    if not used:
        st.info("One GPU is no mesh: no axis is longer than 1.")
        return
    st.dataframe(axes_table(plan, machine, used), hide_index=True)
    axis = desk.tabs("axis")
    if axis not in used:
        st.caption(f"There is no {axis} here; coloured is {used[0]}.")
        axis = used[0]
    data = mesh_map(plan, used, machine.gpus_per_host, lambda group: link_of(group, machine))
    show_map({**data, "axis": used.index(axis)})
    drawn = f" Drawn are the first {MAX_RANKS:,} ranks." if plan.mesh.size > MAX_RANKS else ""
    st.caption(
        f"{counted(len(groups_along(plan, axis)), 'group')} of {plan.sizes[axis]} along {axis}: "
        f"{USES[axis]}.{drawn} Point at a rank or walk with the arrow keys: its "
        "group stays, the others fade."
    )


def _time(desk: Desk, name: str, answer: Answer) -> None:
    desk.show(
        train_breakdown(answer.result, style=desk.style),
        f"Where the step of {name} goes",
        key="llama_time",
        legend_below=True,
    )
    band = answer.band
    st.caption(
        f"{time_text(band.low_ms)} to {time_text(band.high_ms)}: the range of what the simulation "
        "assumes of the software."
    )


def _memory(desk: Desk, name: str, answer: Answer) -> None:
    desk.show(
        memory_by_stage(answer.result, style=desk.style),
        f"Memory at the peak of each stage of {name}",
        key="llama_memory",
        legend_below=True,
    )


def _all(desk: Desk, name: str, answer: Answer) -> None:
    """Every published run of the same model."""
    size = name.split(",")[0]
    names = [other for other in RUNS if other.split(",")[0] == size]
    answers = {other: answer_to(run_of(other).row.scenario) for other in names}
    seconds, memory = [], []
    for other, one in answers.items():
        label, row = other.removeprefix(f"{size}, "), run_of(other).row
        seconds.append(
            RunRow(
                label=label,
                simulated=one.result.step_s,
                published=row.published_s,
                low=one.band.low_ms / 1e3,
                high=one.band.high_ms / 1e3,
            )
        )
        memory.append(
            RunRow(label=label, simulated=one.result.peak_memory_gib, published=row.published_gib)
        )
    left, right = st.columns(2, gap="large")
    for column, rows, unit, what in (
        (left, seconds, "s of a step", "Step time"),
        (right, memory, "GiB at the peak", "Peak memory"),
    ):
        with column:
            desk.show(
                beside_published(rows, unit, style=desk.style),
                f"{what} of all published runs of {size}, simulated and published",
                key=f"llama_all_{what}",
            )
    st.caption("In brackets how far the simulation is from what was published.")


LAB = Lab(
    code="llama",
    page="pages/lab_llama.py",
    title="Training Llama",
    idea="A mesh gives each GPU a place on every axis: dp, cp, tp, pp. Ranks of the innermost axis "
    "are neighbours and share a host; those of the outermost are furthest apart. Parameters, "
    "gradients and optimizer state are divided over axes. MFU is the part of a GPU's peak that the "
    "model's own FLOPs use.",
    formula=r"\text{GPUs}=dp\cdot cp\cdot tp\cdot pp",
    source="Liang et al., TorchTitan, arXiv 2410.06511, and its repository's tables. MFU: "
    "Chowdhery et al., arXiv 2204.02311.",
    questions=("A1", "A2", "A3"),
    more_title="On the seminar's machine: the mesh, and published runs simulated",
    defaults={
        "A1": {"run": "405B, 512 GPUs, 1F1B"},
        "A2": {"run": "8B, 8 GPUs, compiled", "view": TIME},
        "A3": {"run": "405B, 512 GPUs, interleaved", "view": ALL},
    },
    settings={
        "run": choice("Published run", tuple(RUNS)),
        "view": choice("Picture", VIEWS),
        "axis": choice("Coloured", AXES),
    },
    explain=(
        Cause(
            "Norms and tables",
            "A1 divides 405 billion parameters evenly. Norms are on every tp rank, and the first "
            "and the last stage hold a table more.",
        ),
        Cause(
            "Rounded numbers",
            "57.9 GFLOP and 989 TFLOP/s are rounded.",
            lambda values: "gflop" in values,
        ),
        Cause(
            "What is gathered",
            "16 bytes a parameter is what FSDP keeps. While a block computes, its gathered weights "
            "stand beside it, and so do activations: the memory below has them.",
        ),
        Cause(
            "What was not published",
            "the number of micro-batches of the 405B runs is not stated. The simulation takes one "
            "for each stage.",
        ),
    ),
    not_modelled=(
        "Stragglers, failures and checkpoints: a published step is a mean over some minutes.",
        "Data loading, evaluation and logging.",
        "Other jobs on the same network.",
    ),
    draw=draw,
)

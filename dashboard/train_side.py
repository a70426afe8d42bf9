"""The sidebar of the page Train: common settings first, the rest folded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import streamlit as st

from dashboard.address import set_all
from dashboard.described import description_field
from dashboard.folded import folded
from dashboard.plain import plain
from dashboard.train_constants import constant_fields
from dashboard.train_controls import Controls
from dashboard.train_model import choose_model, sequence_placeholder
from dashboard.train_published import preset, presets
from dashboard.train_settings import CONSTANTS, OWN_GRID, SETTINGS
from dashboard.train_values import values_of
from triosim.errors import ConfigError
from triosim.hardware import load_gpu
from triosim.hardware.stacks import stack_names
from triosim.network.topology.describe import GENERIC
from triosim.network.topology.machines import machine_names
from triosim.schedules import make_schedule, write_grid
from triosim.train.scenario import CONTEXTS, RECOMPUTE

LEFT = {"placeholder": "rest", "help": "Empty: the GPUs that other axes leave."}
GRID_HELP = (
    "One line for each stage. F0 is the forward of micro-batch 0, B0 its backward, W0 the "
    "weights' part of backward; F0.1 is on the second virtual stage. Dots are idle."
)
EXAMPLE_GRID = "F0 F1 B0 B1\n.  F0 B0 F1 B1"


def choose() -> Controls:
    """Draw the controls and read them."""
    controls = Controls()
    st.selectbox(
        "Start from a published run",
        list(presets()),
        index=None,
        placeholder="type to search ...",
        key="train_preset",
        on_change=_preset,
        help="Every published configuration that the project compares itself with. What was "
        "measured then stands beside what is simulated.",
    )
    choose_model(controls)
    controls.switch("prefill", help="Forward without gradients, up to the first token.")
    _hardware(controls)
    _mesh(controls)
    controls.choice("stack", help=_lines(stack_names()))
    controls.choice("recompute", help=_lines(RECOMPUTE))
    controls.number("period")
    controls.row(("precision", "mode"))
    _folded(controls)
    return controls


def _hardware(controls: Controls) -> None:
    controls.choice("accelerator")
    gpu = load_gpu(controls.values["accelerator"])
    st.caption(f"{gpu.memory_bytes / 2**30:,.0f} GiB, {gpu.memory_bytes_per_s / 1e12:,.2f} TB/s")
    controls.choice("machine", help="Machines and descriptions have links of their own; other "
                    f"networks have the GPU's.\n\n{_lines(machine_names())}")  # fmt: skip
    if controls.matters("shape"):
        generic = GENERIC[controls.values["machine"]]
        controls.text("shape", "as fits the GPUs", help=f"{generic.about}; {generic.choice}.")
    if controls.matters("described"):
        controls.put("described", description_field("described"))


def _mesh(controls: Controls) -> None:
    controls.number("world")
    controls.row(
        ("micro", "seq"),
        micro={"help": "Sequences that a GPU runs at once."},
        seq={"placeholder": sequence_placeholder(controls)},
    )
    controls.row(("shard", "tp"), shard=LEFT)
    controls.row(("pp", "cp"))


def _folded(controls: Controls) -> None:
    for label, (names, draw) in GROUPS.items():
        folded(label, [SETTINGS[name] for name in names], partial(draw, controls))


def _batch(controls: Controls) -> None:
    controls.number(
        "batch",
        placeholder="micro-batch x dp x pp",
        help="Empty: one micro-batch for each data-parallel rank and stage.",
    )
    controls.row(("replicate", "ep"))
    controls.number("skew", step=0.1, help="What the busiest expert-parallel rank has to do "
                    "over the mean; 1: all alike.")  # fmt: skip
    controls.row(
        ("zero", "fsdp"),
        zero={"help": "What dp_shard divides: 1 optimizer state, 2 and gradients, 3 and "
              "parameters."},
        fsdp={"help": "1: flat parameters, 2: each parameter."},
    )  # fmt: skip
    controls.switch("reshard", help="Parameters are given back after forward.")
    controls.row(
        ("prefetch", "buckets"),
        prefetch={"placeholder": "1, FSDP1: 2"},
        buckets={"help": "Of gradients, with DDP."},
    )


def _pipeline(controls: Controls) -> None:
    controls.choice("pipeline", on_change=_own_grid)
    controls.number("chunks")
    controls.text("grid", EXAMPLE_GRID, height=150, help=GRID_HELP)
    controls.choice("context", help=_lines(CONTEXTS))
    for name in ("sp", "async_tp", "loss_parallel"):
        controls.switch(name)


def _optimizer(controls: Controls) -> None:
    controls.row(("optimizer", "state"))
    controls.choice("fused")
    controls.choice("sync")
    controls.switch("graphs")
    controls.text("breaks", "none; self_attn,mlp", help="Modules of a layer after which the "
                  "graph of torch.compile ends.")  # fmt: skip
    controls.switch("offload")


def _slow(controls: Controls) -> None:
    controls.text("slow", "none; 3=0.5 is half speed")
    controls.number("extra", help="Time in which the CPU launches nothing, as for logging.")


# The settings of each folded group, and what draws them.
GROUPS: Mapping[str, tuple[Sequence[str], Callable[[Controls], None]]] = {
    "Batch and data parallelism": (
        ("batch", "replicate", "ep", "skew", "zero", "fsdp", "reshard", "prefetch", "buckets"),
        _batch,
    ),
    "Pipeline, context and tensor parallelism": (
        ("pipeline", "chunks", "grid", "context", "sp", "async_tp", "loss_parallel"), _pipeline,
    ),
    "Optimizer and launches": (
        ("optimizer", "state", "fused", "sync", "graphs", "breaks", "offload"), _optimizer,
    ),
    "Slow GPUs and lost time": (("slow", "extra"), _slow),
    "Constants of the software stack": (tuple(CONSTANTS), constant_fields),
}  # fmt: skip


def _lines(notes: Mapping[str, str]) -> str:
    return "\n".join(f"- {name}: {plain(about)}" for name, about in notes.items())


def _own_grid() -> None:
    """A grid begins as the schedule that was chosen before, with its stages and micro-batches."""
    state = st.session_state
    if state["pipeline"] != OWN_GRID or state.get("grid"):
        return
    stages = int(state.get("pp") or 1)
    try:
        grid = write_grid(make_schedule("1f1b", stages, stages, 1))
    except ConfigError:
        return
    set_all({"grid": grid}, SETTINGS)


def _preset() -> None:
    """Set everything as in a preset; the field is empty again."""
    set_all(values_of(preset(st.session_state["train_preset"])), SETTINGS)
    st.session_state["train_preset"] = None

"""The sidebar of the page Train: common settings first, the rest folded."""

from __future__ import annotations

import streamlit as st

from dashboard.plain import plain
from dashboard.train_controls import Controls
from dashboard.train_published import preset, preset_names
from dashboard.train_settings import values_of
from triosim.hardware import load_gpu
from triosim.hardware.stacks import stack_names
from triosim.network.topology.machines import machine_names
from triosim.train.scenario import CONTEXTS, RECOMPUTE
from triosim.workload import count_parameters, load_model

LEFT = {"placeholder": "rest", "help": "Empty: the GPUs that other axes leave."}


def choose() -> Controls:
    """Draw the controls and read them."""
    controls = Controls()
    st.selectbox(
        "Start from a published run",
        preset_names(),
        index=None,
        placeholder="choose one ...",
        key="train_preset",
        on_change=_preset,
        help="Configurations that TorchTitan's authors measured, and one small model.",
    )
    controls.choice("model")
    model = load_model(controls.values["model"])
    st.caption(f"{count_parameters(model).total / 1e9:,.2f} B parameters, {model.layers} layers")
    controls.choice("accelerator")
    gpu = load_gpu(controls.values["accelerator"])
    st.caption(f"{gpu.memory_bytes / 2**30:,.0f} GiB, {gpu.memory_bytes_per_s / 1e12:,.2f} TB/s")
    controls.choice("machine", help=_lines(machine_names()))
    controls.number("world")
    controls.row(("micro", "seq"), micro={"help": "Sequences that a GPU runs at once."})
    controls.row(("shard", "tp"), shard=LEFT)
    controls.row(("pp", "cp"))
    controls.choice("stack", help=_lines(stack_names()))
    controls.choice("recompute", help=_lines(RECOMPUTE))
    controls.choice("precision")
    controls.choice("mode")
    _rest(controls)
    return controls


def _rest(controls: Controls) -> None:
    with st.expander("Batch and data parallelism"):
        controls.number(
            "batch",
            placeholder="micro-batch x dp x pp",
            help="Empty: one micro-batch for each data-parallel rank and stage.",
        )
        controls.number("replicate")
        controls.number("ep")
        controls.choice("zero", help="What dp_shard divides: 1 optimizer state, 2 and gradients, "
                        "3 and parameters.")  # fmt: skip
        controls.choice("fsdp", help="1: flat parameters, 2: each parameter.")
        controls.switch("reshard", help="Parameters are given back after forward.")
    with st.expander("Pipeline, context and tensor parallelism"):
        controls.choice("pipeline")
        controls.number("chunks")
        controls.choice("context", help=_lines(CONTEXTS))
        for name in ("sp", "async_tp", "loss_parallel"):
            controls.switch(name)
    with st.expander("Optimizer and launches"):
        controls.choice("optimizer")
        for name in ("graphs", "offload"):
            controls.switch(name)


def _lines(notes: dict[str, str]) -> str:
    return "\n".join(f"- {name}: {plain(about)}" for name, about in dict(notes).items())


def _preset() -> None:
    """Set everything as in a preset; the field is empty again."""
    for name, value in values_of(preset(st.session_state["train_preset"])).items():
        st.session_state[name] = value
    st.session_state["train_preset"] = None

"""The constants of a software stack on the page Train: fields for other values, and a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd
import streamlit as st

from dashboard.plain import micro, plain
from dashboard.train_controls import Controls
from dashboard.train_settings import CONSTANTS, SETTINGS
from triosim.hardware.stacks import Constant, Stack, load_stack
from triosim.train import TrainResult

# What a constant means; the words of data/stacks.toml.
MEANING: Mapping[str, str] = {
    "gemm": "Share of the rate of single kernels that matrix products reach in a step",
    "attention": "The same share for attention, forward",
    "attention_backward": "The same share for attention, backward",
    "memory": "The same share for kernels that memory bounds",
    "fp8_rowwise": "A further share for row-wise scaled fp8 products",
    "launch_us": "CPU time of a kernel, eager",
    "compiled_launch_us": "CPU time of a kernel, compiled",
    "layer_calls": "CPU time of an eager pass of a layer beside its kernels, in launches",
    "collective_us": "CPU time of a collective",
    "graph_us": "CPU time of a replay of a CUDA graph",
    "cpu_jitter": "Standard deviation of these from GPU to GPU, as a share",
    "host_gb_per_s": "Between a GPU and its host, each way",
    "overhead_gib": "What framework and libraries hold beside tensors",
    "overlap_slowdown": "How much longer computing takes while transfers are under way",
    "reserved": "What the allocator reserves over what tensors and framework hold",
}


def constant_fields(controls: Controls) -> None:
    """Empty fields show the stack's own value; the help of each says its range and its source."""
    stack = load_stack(controls.values["stack"])
    st.caption(
        "Empty: the stack's own value, which is known within a range. A value typed here is exact."
    )
    for control, name in CONSTANTS.items():
        constant: Constant = getattr(stack, name)
        controls.number(
            control,
            step=0.05 if SETTINGS[control].high <= 1 else 1.0,
            placeholder=f"{constant.value:g} ({constant.low:g} to {constant.high:g})",
            help=_help(stack, name),
        )


def _help(stack: Stack, name: str) -> str:
    meaning = f"{MEANING[name]}.\n\n" if name in MEANING else ""
    return f"{meaning}Source: {plain(micro(source_of(stack, name)))}"


def constants_table(result: TrainResult) -> None:
    """Value, range and source of each constant; one that was typed in has no range."""
    stack = result.plan.stack
    typed = dict(result.scenario.constants or ())
    rows = list(_rows(stack, result.plan.gpu.name))
    st.markdown(f"**Constants of {plain(stack.name)}**")
    st.dataframe(
        pd.DataFrame(
            {
                "constant": [name for name, _, _ in rows],
                "value": [constant.value for _, constant, _ in rows],
                "low": [constant.low for _, constant, _ in rows],
                "high": [constant.high for _, constant, _ in rows],
                "source": [
                    "typed in on this page" if name in typed else micro(source)
                    for name, _, source in rows
                ],
            }
        ),
        hide_index=True,
        height="content",
    )
    st.caption(
        "The step time's range takes every constant to its fast and to its slow end. Other values "
        "can be typed in the sidebar."
    )


def _rows(stack: Stack, gpu: str) -> Iterator[tuple[str, Constant, str]]:
    for name in CONSTANTS.values():
        yield name, getattr(stack, name), source_of(stack, name)
    if gpu in stack.clock:
        yield f"clock of {gpu}", stack.clock[gpu], stack.sources.get("clock", "")


def source_of(stack: Stack, name: str) -> str:
    """Where a constant is from; what compiled code has follows from the same source."""
    return stack.sources.get(name, stack.sources.get(name.removeprefix("compiled_"), ""))

"""Every setting that a link may hold: its name, label, default, legal values and when it matters.

The name is the parameter in the address and the key of the widget, and except for `trace` the field
of `Scenario`. A default must never change within `VERSION`: links leave defaults out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from triosim.hardware import gpu_names
from triosim.scenario import (
    CASES,
    CHOICES,
    DEFAULT_TRACE,
    NUMBERS,
    SWITCHES,
    WHOLE_NUMBERS,
    Scenario,
)

VERSION = "1"
Values = Mapping[str, Any]
CASE_NOTES = {
    0: "every GPU trains alone, nothing is exchanged",
    1: "compute first, then one all-reduce of all gradients",
    2: "buckets of gradients are all-reduced while backward still runs",
    3: "operators are split over the GPUs, their outputs all-reduced",
    4: "layers are cut into stages, micro-batches flow through them",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """One setting. `low` and `high` bound numbers; `reason` says when it matters."""

    name: str
    label: str
    default: Any
    kind: str
    low: float = 0
    high: float = 0
    choices: Sequence[str] = ()
    matters: Callable[[Values], bool] = lambda values: True
    reason: str = ""

    @property
    def field(self) -> str:
        """The name in `Scenario`."""
        return "trace_dir" if self.name == "trace" else self.name

    @property
    def range_text(self) -> str:
        """The legal range in words."""
        return " to ".join(f"{x:,.0f}" if x >= 1 else f"{x:g}" for x in (self.low, self.high))

    @property
    def plain_label(self) -> str:
        """The label without its unit."""
        return self.label.partition(" (")[0]


def _in_cases(*cases: int) -> Callable[[Values], bool]:
    return lambda values: values["case"] in cases


def _over(kind: str, *cases: int) -> Callable[[Values], bool]:
    return lambda values: values["interconnect"] == kind and values["case"] in cases


# Page defaults that differ from the command line's: a first visit should show communication.
PAGE_DEFAULTS = {"trace": DEFAULT_TRACE, "case": 2, "mesh_rows": 1}
LABELS = {
    "trace": "Trace",
    "case": "Case",
    "gpu": "GPU type",
    "gpus": "GPUs",
    "bandwidth_gb_per_s": "Remote memory (GB/s per GPU)",
    "interconnect": "Interconnect",
    "ptp_bandwidth_gb_per_s": "GPU to GPU bandwidth (GB/s)",
    "latency_us": "Link latency (µs)",
    "mesh_rows": "Mesh rows",
    "mesh_cols": "Mesh columns",
    "batch_size_sim": "Batch (samples)",
    "micro_batch_size": "Micro-batch (samples)",
    "capacity_log2": "Memory per GPU (2^n bytes)",
    "resident": "Everything is on the GPU before the step",
    "ptp_convention": "GPU to GPU bandwidth means",
    "bucket_mb": "Gradient bucket (MiB)",
    "accumulate": "Batches per step",
    "schedule": "Pipeline schedule",
    "stage_cut": "Stages cut by",
    "optical_gb_per_s": "Optical bandwidth (GB/s per circuit)",
    "hop_latency_ns": "Hop latency (ns)",
    "circuit_setup_ms": "Circuit set-up (ms)",
    "rank_speed": "Slow GPUs (rank=speed)",
    "batch_size": "Batch of the trace (samples)",
    "trace_gpu": "The trace was taken on",
    "fold": "Simulate identical GPUs once",
}
_MATTERS: Mapping[str, tuple[Callable[[Values], bool], str]] = {
    "interconnect": (_in_cases(1, 2, 3, 4), "case 0 has no communication between GPUs"),
    "ptp_bandwidth_gb_per_s": (
        _over("electrical", 1, 2, 3, 4),
        "it belongs to the electrical interconnect of cases 1 to 4",
    ),
    "latency_us": (
        _over("electrical", 1, 2, 3, 4),
        "it belongs to the electrical interconnect of cases 1 to 4",
    ),
    "ptp_convention": (
        _over("electrical", 1, 2, 3),
        "it belongs to the electrical interconnect of cases 1 to 3",
    ),
    **dict.fromkeys(
        ("mesh_rows", "mesh_cols", "optical_gb_per_s", "hop_latency_ns", "circuit_setup_ms"),
        (_over("optical", 1, 2, 3, 4), "it belongs to the optical interconnect of cases 1 to 4"),
    ),
    "micro_batch_size": (_in_cases(4), "only case 4 has micro-batches"),
    "schedule": (_in_cases(4), "only case 4 has a pipeline"),
    "stage_cut": (_in_cases(4), "only case 4 has stages"),
    "accumulate": (_in_cases(1, 2), "only cases 1 and 2 accumulate"),
    "bucket_mb": (_in_cases(2), "only case 2 has buckets"),
}


def _setting(name: str) -> Setting:
    default = PAGE_DEFAULTS[name] if name in PAGE_DEFAULTS else getattr(Scenario(), name)
    matters, reason = _MATTERS.get(name, (lambda values: True, ""))
    kind, low, high, choices = "text", 0.0, 0.0, ()
    if name in WHOLE_NUMBERS:
        kind, (low, high) = "whole", WHOLE_NUMBERS[name]
    elif name in NUMBERS:
        kind, (low, high) = "number", NUMBERS[name]
        default = float(default)
    elif name in CHOICES:
        kind, choices = "choice", CHOICES[name]
    elif name in ("gpu", "trace_gpu"):
        kind, choices = "choice", gpu_names()
    elif name in SWITCHES:
        kind = "switch"
    return Setting(
        name=name,
        label=LABELS[name],
        default=default,
        kind=kind,
        low=low,
        high=high,
        choices=choices,
        matters=matters,
        reason=reason,
    )


SETTINGS: Mapping[str, Setting] = {name: _setting(name) for name in LABELS}


def case_title(case: int) -> str:
    """The name of a case for a heading."""
    return CASES[case]


def label_of(field: str) -> str:
    """The label of a field of `Scenario`, for sentences about it."""
    for setting in SETTINGS.values():
        if setting.field == field:
            return setting.plain_label
    return field

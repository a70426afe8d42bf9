"""Every setting that a link may hold: its name, label, default, legal values and when it matters.

The name is the parameter in the address and the key of the widget, and except for `trace` the field
of `Scenario`. A default must never change within `VERSION`: links leave defaults out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from triosim.hardware import gpu_names
from triosim.network.collectives.choose import algorithms_for
from triosim.network.collectives.planned import AUTO
from triosim.network.topology.machines import machine_names
from triosim.scenario import (
    CASES,
    CHOICES,
    DEFAULT_TRACE,
    NUMBERS,
    OVERLAP_SLOWDOWN,
    SWITCHES,
    WHOLE_NUMBERS,
    Scenario,
)

VERSION = "1"
DESCRIBED = "own description"  # as a choice beside the networks that have a name
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
        return range_text(self.low, self.high)

    @property
    def plain_label(self) -> str:
        """The label without its unit."""
        return self.label.partition(" (")[0]


def choice_setting(name: str, label: str, default: str, choices: Sequence[str]) -> Setting:
    return Setting(name=name, label=label, default=default, kind="choice", choices=choices)


def number_setting(
    name: str, label: str, default: float | None, low: float, high: float
) -> Setting:
    return Setting(name=name, label=label, default=default, kind="number", low=low, high=high)


def whole_setting(name: str, label: str, default: int | None, low: int, high: int) -> Setting:
    return Setting(name=name, label=label, default=default, kind="whole", low=low, high=high)


def switch_setting(name: str, label: str, default: bool = False) -> Setting:
    return Setting(name=name, label=label, default=default, kind="switch")


def text_setting(name: str, label: str, default: str | None = None) -> Setting:
    return Setting(name=name, label=label, default=default, kind="text")


def _in_cases(*cases: int) -> Callable[[Values], bool]:
    return lambda values: values["case"] in cases


def _over(kind: str, *cases: int) -> Callable[[Values], bool]:
    return lambda values: values["interconnect"] == kind and values["case"] in cases


def on_machine(values: Values) -> bool:
    """Whether the GPUs are joined as in a machine, whose links have speeds of their own."""
    return values["topology"] in machine_names()


def _own_links(values: Values) -> bool:
    """Whether the network has links of its own: a machine, or one that is described."""
    return on_machine(values) or values["topology"] == DESCRIBED


def _links_to_set(values: Values) -> bool:
    return _over("electrical", 1, 2, 3, 4)(values) and not _own_links(values)


def _protocol_known(values: Values) -> bool:
    return _over("electrical", 1, 2, 3, 4)(values) and _own_links(values)


def _described(values: Values) -> bool:
    return _over("electrical", 1, 2, 3, 4)(values) and values["topology"] == DESCRIBED


def _in_ring(values: Values) -> bool:
    ring = values["topology"] is None and values["algorithm"] in (None, "ring")
    return ring and _over("electrical", 1, 2, 3)(values)


# Page defaults that differ from the command line's: a first visit should show communication. What
# is typed as text is empty where the scenario has an empty list.
PAGE_DEFAULTS = {
    "trace": DEFAULT_TRACE, "case": 2, "mesh_rows": 1, "dead_links": None, "own_network": None,
}  # fmt: skip
LABELS = {
    "trace": "Trace",
    "case": "Case",
    "gpu": "GPU type",
    "gpus": "GPUs",
    "bandwidth_gb_per_s": "Remote memory (GB/s per GPU)",
    "interconnect": "Interconnect",
    "topology": "Network",
    "own_network": "Description of the network",
    "algorithm": "All-reduce algorithm",
    "ptp_bandwidth_gb_per_s": "GPU to GPU bandwidth (GB/s)",
    "latency_us": "Link latency (µs)",
    "mesh_rows": "Mesh rows",
    "mesh_cols": "Mesh columns",
    "batch_size_sim": "Batch (samples)",
    "micro_batch_size": "Micro-batch (samples)",
    "capacity_log2": "Memory per GPU (2^n bytes)",
    "resident": "Everything is on the GPU before the step",
    "protocol": "Costs of the machine's protocol, as measured",
    "ptp_convention": "GPU to GPU bandwidth means",
    "bucket_mb": "Gradient bucket (MiB)",
    "accumulate": "Batches per step",
    "schedule": "Pipeline schedule",
    "stage_cut": "Stages cut by",
    "optical_gb_per_s": "Optical bandwidth (GB/s per circuit)",
    "hop_latency_ns": "Hop latency (ns)",
    "circuit_setup_ms": "Circuit set-up (ms)",
    "circuit_teardown_ms": "Circuit tear-down (ms)",
    "wavelengths": "Wavelengths (circuits per link)",
    "rank_speed": "Slow GPUs (rank=speed)",
    "slow_every": "Slow every (steps)",
    "jitter": "Jitter (share of computing)",
    "seed": "Seed of the jitter",
    "dead_links": "Bad links (ends=share left)",
    "overlap_slowdown": "Slow-down by overlap (share)",
    "batch_size": "Batch of the trace (samples)",
    "trace_gpu": "The trace was taken on",
    "fold": "Simulate identical GPUs once",
}
_ELECTRICAL = "it belongs to the electrical interconnect of cases 1 to"
_MATTERS: Mapping[str, tuple[Callable[[Values], bool], str]] = {
    "interconnect": (_in_cases(1, 2, 3, 4), "case 0 has no communication between GPUs"),
    **dict.fromkeys(
        ("topology", "dead_links"), (_over("electrical", 1, 2, 3, 4), f"{_ELECTRICAL} 4")
    ),
    "own_network": (_described, f"the network is not {DESCRIBED}"),
    "algorithm": (_over("electrical", 1, 2, 3), f"{_ELECTRICAL} 3"),
    **dict.fromkeys(
        ("ptp_bandwidth_gb_per_s", "latency_us"),
        (_links_to_set, f"{_ELECTRICAL} 4, and a machine or a description has links of its own"),
    ),
    "protocol": (
        _protocol_known,
        "only the links of a machine have measured protocol costs",
    ),
    "ptp_convention": (_in_ring, f"{_ELECTRICAL} 3, and to TrioSim's ring"),
    **dict.fromkeys(
        (
            *("mesh_rows", "mesh_cols", "optical_gb_per_s", "hop_latency_ns"),
            *("circuit_setup_ms", "circuit_teardown_ms", "wavelengths"),
        ),
        (_over("optical", 1, 2, 3, 4), "it belongs to the optical interconnect of cases 1 to 4"),
    ),
    "micro_batch_size": (_in_cases(4), "only case 4 has micro-batches"),
    "schedule": (_in_cases(4), "only case 4 has a pipeline"),
    "stage_cut": (_in_cases(4), "only case 4 has stages"),
    "accumulate": (_in_cases(1, 2), "only cases 1 and 2 accumulate"),
    "bucket_mb": (_in_cases(2), "only case 2 has buckets"),
    "slow_every": (lambda values: values["rank_speed"] is not None, "no GPU is slow"),
    "seed": (lambda values: values["jitter"] > 0, "nothing is random without jitter"),
    "overlap_slowdown": (_in_cases(1, 2, 3, 4), "case 0 has no communication between GPUs"),
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
    elif name == "overlap_slowdown":
        kind, (low, high) = "number", OVERLAP_SLOWDOWN
    elif name in CHOICES:
        kind, choices = "choice", CHOICES[name]
    elif name in ("gpu", "trace_gpu"):
        kind, choices = "choice", gpu_names()
    elif name == "algorithm":
        kind, choices = "choice", (AUTO, *algorithms_for("all-reduce"))
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


def range_text(low: float, high: float) -> str:
    """A legal range in words."""
    return " to ".join(f"{x:,.0f}" if x >= 1 else number_text(x) for x in (low, high))


def number_text(value: float) -> str:
    """Up to 15 digits, and no powers of ten where a person would write none."""
    short = f"{value:.15g}"
    return f"{Decimal(short):f}" if 1e-9 <= abs(value) < 1e21 else short


def label_of(field: str) -> str:
    """The label of a field of `Scenario`, for sentences about it."""
    for setting in SETTINGS.values():
        if setting.field == field:
            return setting.plain_label
    return field

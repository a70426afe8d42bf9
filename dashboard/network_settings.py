"""Every setting of the page Network: its name in the address, label, default and legal values.

The names differ from those of the other pages, because a bound parameter belongs to one widget.
"""

from __future__ import annotations

from collections.abc import Mapping

from dashboard.lab.collectives import LAB, NO_QUESTION
from dashboard.links import shipped_traces
from dashboard.settings import DESCRIBED, Setting
from dashboard.settings import choice_setting as _choice
from dashboard.settings import number_setting as _number
from dashboard.settings import text_setting as _text
from dashboard.settings import whole_setting as _whole
from triosim.network.collectives.choose import ALGORITHMS
from triosim.network.collectives.moves import OPERATIONS
from triosim.network.collectives.planned import AUTO
from triosim.network.topology.describe import machine_names, topology_names
from triosim.scenario import DEFAULT_TRACE

TABS = (
    "Links",
    "Time and size",
    "Step by step",
    "Two at once",
    "Electrical or optical",
    "Failures",
    "Description",
)
NETWORKS = (*topology_names(), *machine_names(), DESCRIBED)
# What the address and the page call them, and `Members.kind`: a bound choice has one name.
MEMBERS = {
    "all GPUs": "all",
    "one host": "host",
    "one GPU per host": "per-host",
    "listed ranks": "list",
}
VIEWS = ("time", "busbw", "algbw")
LAYOUTS = {"one all-reduce after backward": 1, "buckets during backward": 2}
MAX_RANKS = 131_072
MAX_PLAYED = 16


def _collective(letter: str, operation: str, size_mb: float) -> tuple[Setting, ...]:
    """The form of one of the two collectives that run at once."""
    return (
        _choice(f"op_{letter}", "Collective", operation, OPERATIONS),
        _number(f"size_{letter}", "Size (MB)", size_mb, 1e-6, 1e9),
        _choice(f"group_{letter}", "Group", "all GPUs", tuple(MEMBERS)),
        _text(f"members_{letter}", "Ranks"),
    )


_ALL = (
    _choice("net", "Topology", "seminar-h100", NETWORKS),
    _text("sides", "Shape"),
    _whole("ranks", "GPUs", 16, 1, MAX_RANKS),
    _number("link", "Link bandwidth (GB/s)", 100.0, 1e-3, 1e6),
    _number("alpha", "Link latency (µs)", 5.0, 0, 1e6),
    _text("faults", "Degraded links"),
    _text("toml", "Description"),
    _choice("op", "Collective", "all-reduce", OPERATIONS),
    _choice("algo", "Algorithm", AUTO, (AUTO, *ALGORITHMS)),
    _number("size", "Message size (MB)", 1000.0, 1e-6, 1e9),
    _choice("group", "Group", "all GPUs", tuple(MEMBERS)),
    Setting(name="siblings", label="Its siblings too", default=True, kind="switch"),
    _text("members", "Ranks"),
    _choice("show", "Tab", TABS[0], TABS),
    _choice("axis", "Show", "time", VIEWS),
    _whole("players", "Ranks in the picture", None, 1, MAX_PLAYED),
    _whole("step", "Step", 0, 0, 10_000),  # the player reads and writes it in the browser
    *_collective("a", "all-reduce", 1000.0),
    *_collective("b", "all-to-all", 500.0),
    _number("offset", "The second starts later by (ms)", 1.0, 0, 1e6),
    _choice("workload", "Trace", DEFAULT_TRACE, tuple(shipped_traces())),
    _choice("layout", "Layout", next(iter(LAYOUTS)), tuple(LAYOUTS)),
    _whole("workers", "GPUs", 8, 2, 4096),
    _number("electric", "Electrical link (GB/s)", 65.0, 1e-3, 1e6),
    _number("electric_alpha", "Latency of a hop (µs)", 1.0, 0, 1e6),
    _number("optic", "Optical circuit (GB/s)", 130.0, 1e-3, 1e6),
    _number("hop", "Latency of a circuit (ns)", 20.0, 0, 1e9),
    _number("setup", "Set-up of a circuit (ms)", 1.0, 0, 1e4),
    _whole("cluster", "GPUs", 16_384, 1, 10**7),
    _number("mtbf", "Mean time between failures of one GPU (hours)", 50_000.0, 1e-3, 1e9),
    _number("checkpoint", "Writing a checkpoint (s)", 30.0, 0, 1e6),
    _number("restart", "Restart after a failure (s)", 600.0, 0, 1e6),
    _number("interval", "Work between checkpoints (min)", None, 1e-3, 1e6),
    _number("days", "Training without failures (days)", 54.0, 1e-3, 1e5),
    _choice("ask", "Questions", NO_QUESTION, (NO_QUESTION, *LAB.questions)),
)  # fmt: skip
SETTINGS: Mapping[str, Setting] = {
    **{setting.name: setting for setting in _ALL},
    **{name: setting for name, setting in LAB.all_settings().items() if name != LAB.question_key},
}

SHARED_NIC = """\
kind = "tiers"
[[tiers]]
name = "NVSwitch"
children = 8
link = { gb_per_s = 450, latency_us = 0.6 }
[[tiers]]
name = "fabric"
children = 0
link = { gb_per_s = 50, latency_us = 2.1 }
"""

# A preset sets these; everything else of the network and the collective returns to its default.
PRESETS: Mapping[str, Mapping[str, object]] = {
    "Two H100 hosts": {"algo": "hierarchical"},
    "Flat ring over two hosts": {"algo": "ring"},
    "Two hosts, one shared NIC each": {
        "net": DESCRIBED, "toml": SHARED_NIC, "algo": "hierarchical",
    },
    "One H100 host, NVLS": {"net": "dgx-h100", "ranks": 8, "algo": "in-network"},
    "Ring of 8, small message": {"net": "ring", "ranks": 8, "size": 0.1},
    "Torus 4x4": {"net": "torus", "sides": "4x4", "algo": "torus"},
    "Oversubscribed leaf-spine": {
        "net": "leaf-spine", "sides": "8x4", "ranks": 32, "link": 50.0, "alpha": 2.0,
        "group": "one GPU per host", "op": "all-to-all",
    },
    "Rails, one GPU per host": {
        "net": "rail-optimised", "sides": "8x8", "ranks": 64, "group": "one GPU per host",
    },
    "Seven ranks, halving-doubling": {
        "net": "switch", "ranks": 7, "algo": "halving-doubling", "show": TABS[2],
    },
    "GB200 NVL72, 576 GPUs": {"net": "gb200-nvl72", "ranks": 576},
    "16,384 GPUs": {"ranks": 16_384},
}  # fmt: skip
PRESET_NAMES = (
    "net", "sides", "ranks", "link", "alpha", "faults", "op", "algo", "size", "group", "siblings",
    "members", "players",
)  # fmt: skip

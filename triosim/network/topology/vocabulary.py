"""What topologies can be written down: the kinds, what each needs, and the limits of every number.

Bandwidths and latencies count one direction of a connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triosim.errors import ConfigError
from triosim.network.protocol import calibration_names
from triosim.network.topology.base import LinkSpec

MAX_GPUS = 2**20
MAX_PLACES = 2**21  # a described network may have free places
MAX_UNDER_TIERS = 2**40  # so may the outermost switch; whole numbers of arrays end at 2^63
MIN_GB_PER_S, MAX_GB_PER_S = 1e-6, 1e9  # as a scenario's own bandwidth
MIN_EFFICIENCY = 1e-6
MAX_LATENCY_US = 1e9
MAX_DIMENSIONS = 6
MAX_TIERS = 16
MAX_CONNECTIONS = 2**17

KINDS: Mapping[str, str] = {
    "ring": "each GPU is joined to the next one and the last to the first",
    "fully-connected": "any two GPUs have a link of their own",
    "switch": "all GPUs hang on one switch",
    "mesh": "a grid in which neighbours are joined",
    "torus": "a mesh whose rows and columns close to rings",
    "hybrid-cube-mesh": "eight GPUs joined as in a DGX-1",
    "tiers": "switches over switches: NVLink domains, leaf and spine, rails",
    "hosts": "hosts with any topology inside, joined by tiers of switches",
    "dragonfly": "fully connected groups of fully connected routers",
    "graph": "connections between named GPUs and switches",
}
# What each kind needs besides its name; every other field must stay empty.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "ring": ("links",),
    "fully-connected": ("links",),
    "switch": ("links",),
    "mesh": ("shape", "links"),
    "torus": ("shape", "links"),
    "hybrid-cube-mesh": ("links",),
    "tiers": ("tiers",),
    "hosts": ("gpus_per_host", "inside", "tiers"),
    "dragonfly": ("groups", "routers", "gpus_per_router", "links"),
    "graph": ("gpus", "connections"),
}
EXAMPLES: Mapping[str, str] = {
    "kind": 'kind = "ring"',
    "links": "link = { gb_per_s = 50 }",
    "link": "link = { gb_per_s = 50 }",
    "gb_per_s": "gb_per_s = 50",
    "shape": "shape = [4, 8]",
    "tiers": '[[tiers]] name = "leaf", children = 8, link = { gb_per_s = 50 }',
    "name": 'name = "leaf"',
    "children": "children = 8",
    "gpus_per_host": "gpus_per_host = 8",
    "inside": '[inside] kind = "ring", link = { gb_per_s = 50 }',
    "groups": "groups = 9",
    "routers": "routers = 4",
    "gpus_per_router": "gpus_per_router = 2",
    "gpus": 'gpus = ["gpu0", "gpu1"]',
    "connections": '[[connections]] between = ["gpu0", "gpu1"], link = { gb_per_s = 50 }',
    "between": 'between = ["gpu0", "gpu1"]',
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Connection:
    """`count` parallel links between two named nodes, each of `link` in either direction."""

    between: tuple[str, str]
    link: LinkSpec
    count: int = 1


def bad(value: object, problem: str) -> ConfigError:
    return ConfigError("topology", value, problem)


def wrong(place: str, value: object, problem: str) -> ConfigError:
    try:
        return bad(f"{place} = {value}", problem)
    except (ValueError, RecursionError):  # Python prints neither huge numbers nor deep nests
        return bad(place, problem)


def missing(place: str, name: str) -> ConfigError:
    return bad(place, f"needs {name}, as in {EXAMPLES[name]}")


def number(place: str, value: object, low: float, high: float, *, above: bool = False) -> float:
    """A number from `low` (above it, where `above`) to `high`, or the error that says so."""
    start = f"above {low:g} and at most" if above else f"from {low:g} to"
    legal = f"must be a number {start} {high:g}"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong(place, value, legal)
    if not low <= value <= high or (above and value == low):
        raise wrong(place, value, legal)
    return float(value)


def whole(place: str, value: object, low: int = 1, high: int = MAX_GPUS) -> int:
    """A whole number from `low` to `high`, or the error that says so."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise wrong(place, value, f"must be a whole number from {low} to {high:,}")
    return value


def check_name(place: str, name: str) -> None:
    """A node's name can stand in a list of bad links, as in "leaf 0-spine 1=0.5, 2-leaf 0"."""
    if "," in name or "=" in name:
        raise bad(f"{place} = {name}", "must not hold , or =, which lists of bad links are made of")


def check_link(place: str, link: LinkSpec) -> None:
    """Every number of a link is inside its limits, and its protocol is known."""
    number(f"{place}.gb_per_s", link.bytes_per_s / 1e9, MIN_GB_PER_S, MAX_GB_PER_S)
    number(f"{place}.latency_us", link.latency_s * 1e6, 0, MAX_LATENCY_US)
    number(f"{place}.efficiency", link.efficiency, MIN_EFFICIENCY, 1)
    known = calibration_names()
    if link.protocol is not None and link.protocol not in known:
        raise bad(
            f"{place}.protocol = {link.protocol}",
            f"no such protocol; known are {', '.join(known)}",
        )

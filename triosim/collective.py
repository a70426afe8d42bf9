"""One collective on its own: the calculator behind `ts.collective` and `triosim collective`."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from triosim.errors import ConfigError
from triosim.network.closed_forms import bus_factor
from triosim.network.collectives.moves import OPERATIONS
from triosim.network.collectives.planned import AUTO, Planned, Planner
from triosim.network.topology.base import Ints, LinkSpec, Topology, one_group
from triosim.network.topology.describe import (
    DEFAULT_LINK,
    Description,
    Source,
    is_generic,
    natural_topology,
    topology_of,
)
from triosim.shown import Shown

MAX_BYTES = 1e18
MAX_RANKS = 2**20
_SPELLINGS = {"alltoall": "all-to-all", "sendrecv": "send", "send-recv": "send", "p2p": "send"}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CollectiveResult(Shown):
    """What a collective costs on an otherwise idle network.

    `time_ms` is latency plus bytes over bandwidth of the links as described; `calibrated_ms` is
    the time with what a communication library's protocols were measured to cost on such links
    ("auto" chooses among the library's algorithms), None where that is not known. `algbw` is the
    array over the time and `busbw` that times `bus_factor`, both as nccl-tests defines them, None
    where nothing moves. `link_bytes` pass the busiest link; `steps` follow each other and pay the
    latency once each, half of it where a switch adds up between two of them. `warnings` name
    settings that had no effect.
    """

    operation: str
    algorithm: str
    size_bytes: float
    ranks: int
    topology: str
    planned: Planned
    calibrated: Planned | None
    warnings: tuple[str, ...] = ()

    @property
    def time_ms(self) -> float:
        return self.planned.time_s * 1e3

    @property
    def latency_ms(self) -> float:
        """The part of `time_ms` that does not depend on the size."""
        return self.planned.latency_s * 1e3

    @property
    def calibrated_ms(self) -> float | None:
        return None if self.calibrated is None else self.calibrated.time_s * 1e3

    @property
    def algbw_gb_per_s(self) -> float | None:
        seconds = self.planned.time_s
        return self.size_bytes / seconds / 1e9 if seconds > 0 else None

    @property
    def busbw_gb_per_s(self) -> float | None:
        algbw = self.algbw_gb_per_s
        return None if algbw is None else algbw * bus_factor(self.group_size, self.operation)

    @property
    def group_size(self) -> int:
        return self.planned.group_size

    @property
    def steps(self) -> int:
        return self.planned.pattern.steps

    @property
    def link_bytes(self) -> float:
        return self.planned.busiest_share * self.size_bytes

    @property
    def why(self) -> str:
        """Why this algorithm: one sentence."""
        return self.planned.why

    @property
    def candidates_ms(self) -> Mapping[str, float]:
        """The times of all algorithms that "auto" compared."""
        return {name: seconds * 1e3 for name, seconds in self.planned.candidates_s.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        names = (
            "operation", "algorithm", "size_bytes", "ranks", "group_size", "topology", "time_ms",
            "latency_ms", "algbw_gb_per_s", "busbw_gb_per_s", "steps", "link_bytes",
            "calibrated_ms", "why", "candidates_ms", "warnings",
        )  # fmt: skip
        values = {name: getattr(self, name) for name in names}
        return {**values, "warnings": list(self.warnings)}

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2) + "\n"


def collective(
    operation: str = "all-reduce",
    *,
    size_bytes: float = 1e9,
    ranks: int = 8,
    algorithm: str = AUTO,
    link_gb_per_s: float | None = None,
    latency_us: float | None = None,
    topology: Source | Topology | None = None,
    group: Sequence[int] | Sequence[Sequence[int]] | None = None,
) -> CollectiveResult:
    """What one collective costs.

    `size_bytes` is the full array (nccl-tests counts it so). `topology` is a name of
    `triosim list topologies`, a file, or None: the links that the algorithm is made for (a ring,
    a torus, hosts of eight, else a full switch), each of `link_gb_per_s` (None: 100) in each
    direction and `latency_us` (None: 0) a step. Machines, files and descriptions have links of
    their own. `group` are the ranks that take part, in
    order, or several such groups that do the same at once; all by default.

    Raises `ConfigError` naming what would be legal, or `Infeasible` where no path exists.
    """
    operation = _operation(operation)
    size_bytes = _size(size_bytes)
    ranks = _whole("ranks", ranks, MAX_RANKS)
    link = _link(link_gb_per_s, latency_us)
    if topology is None:
        network = natural_topology(algorithm, ranks, link)
        name = "as the algorithm is made for"
    elif isinstance(topology, (str, os.PathLike)):
        network, name = topology_of(topology, ranks, link), str(topology)
    elif isinstance(topology, (Mapping, Description)):
        network, name = topology_of(topology, ranks, link), "as described"
    elif hasattr(topology, "traffic"):
        network, ranks, name = topology, topology.ranks, type(topology).__name__
    else:
        raise ConfigError("topology", topology, "must be a name, a file, a table or a topology")
    groups = _groups(group, ranks)
    planner = Planner.of(network)
    planned = planner.plan(operation, groups, size_bytes, algorithm)
    calibrated = None
    if network.protocol(groups) is not None:
        calibrated = planner.plan(operation, groups, size_bytes, algorithm, protocol=True)
    return CollectiveResult(
        operation=operation,
        algorithm=planned.algorithm,
        size_bytes=size_bytes,
        ranks=ranks,
        topology=name,
        planned=planned,
        calibrated=calibrated,
        warnings=_unused(topology, name, link_gb_per_s, latency_us),
    )


def _size(size_bytes: object) -> float:
    """No message is smaller than a byte, but there may be none."""
    number = _number("size_bytes", size_bytes, 0.0, MAX_BYTES)
    if 0.0 < number < 1.0:
        raise ConfigError("size_bytes", size_bytes, f"must be 0 or from 1 to {MAX_BYTES:g}")
    return number


def _link(gb_per_s: float | None, latency_us: float | None) -> LinkSpec:
    if gb_per_s is None:
        gb_per_s = DEFAULT_LINK.bytes_per_s / 1e9
    return LinkSpec(
        bytes_per_s=_number("link_gb_per_s", gb_per_s, 1e-6, 1e9) * 1e9,
        latency_s=0.0 if latency_us is None else _number("latency_us", latency_us, 0, 1e9) * 1e-6,
    )


def _unused(
    topology: object, name: str, gb_per_s: float | None, latency_us: float | None
) -> tuple[str, ...]:
    """Settings of the caller's link where the topology is made of its own."""
    if topology is None or (isinstance(topology, str) and is_generic(topology)):
        return ()
    settings = (("bandwidth", gb_per_s, "GB/s"), ("latency", latency_us, "us"))
    return tuple(
        f"The {what} of {float(value):g} {unit} is unused: the topology {name} has links of its "
        "own."
        for what, value, unit in settings
        if value is not None
    )


def _operation(name: object) -> str:
    text = str(name).strip().lower().replace("_", "-").replace(" ", "-").replace("/", "-")
    text = _SPELLINGS.get(text, text)
    if text not in OPERATIONS:
        raise ConfigError("operation", name, f"must be one of {', '.join(OPERATIONS)}")
    return text


def _number(field: str, value: object, least: float, most: float) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not least <= number <= most:
        raise ConfigError(field, value, f"must be a number from {least:g} to {most:g}")
    return number


def _whole(field: str, value: object, most: int) -> int:
    try:
        number = _number(field, value, 1, most)
    except ConfigError:
        number = math.nan
    if not number.is_integer():
        raise ConfigError(field, value, f"must be a whole number from 1 to {most:,}")
    return int(number)


def _groups(group: Sequence[int] | Sequence[Sequence[int]] | None, ranks: int) -> Ints:
    if group is None:
        return one_group(ranks)
    try:
        groups = np.array(group)
        groups = groups[None, :] if groups.ndim == 1 else groups
        whole = groups.ndim == 2 and groups.size > 0 and np.issubdtype(groups.dtype, np.integer)
    except ValueError:  # rows of different length
        whole = False
    if not whole:
        raise ConfigError("group", group, "must be ranks, as in [0, 1, 2], or groups of equal size")
    wrong = groups[(groups < 0) | (groups >= ranks)]
    if len(wrong):
        raise ConfigError("group", wrong[0], f"ranks here are 0 to {ranks - 1:,}")
    if len(np.unique(groups)) != groups.size:
        raise ConfigError("group", group, "a rank can take part only once")
    return groups.astype(np.int64)

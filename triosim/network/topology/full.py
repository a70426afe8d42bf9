"""A link between any two GPUs."""

from __future__ import annotations

import numpy as np

from triosim.errors import ConfigError
from triosim.network.topology.base import Floats, Ints, LinkSpec, Reduction

MAX_FULLY_CONNECTED = 1024


class FullyConnected:
    """`ranks` GPUs, at most 1,024; the links of rank 0 to all others come first."""

    def __init__(self, ranks: int, link: LinkSpec) -> None:
        if not 1 <= ranks <= MAX_FULLY_CONNECTED:
            raise ConfigError(
                "topology",
                f"{ranks} fully connected GPUs",
                f"links between any two are for 1 to {MAX_FULLY_CONNECTED:,} GPUs",
            )
        self.ranks = ranks
        self._spec = link
        count = ranks * (ranks - 1)
        self.capacity_bytes_per_s: Floats = np.full(count, link.capacity_bytes_per_s)
        self.link_latency_s: Floats = np.full(count, link.latency_s)

    def _link(self, source: Ints, target: Ints) -> Ints:
        """The link of each pair of different ranks."""
        return source * (self.ranks - 1) + target - (target > source)

    def traffic(self, source: Ints, target: Ints, size_bytes: Floats) -> Floats:
        moves = source != target
        link, count = self._link(source[moves], target[moves]), len(self.capacity_bytes_per_s)
        size = np.asarray(size_bytes, dtype=np.float64)[moves]
        return np.asarray(np.bincount(link, size, count), dtype=np.float64)

    def exchange(self, groups: Ints, size_bytes: float) -> Floats:
        members = groups.shape[1]
        source, target = np.repeat(groups, members, axis=1).ravel(), np.tile(groups, members)
        return self.traffic(source, target.ravel(), np.full(len(source), size_bytes))

    def latency_s(self, source: Ints, target: Ints) -> Floats:
        return np.where(source == target, 0.0, self._spec.latency_s)

    def passing(self, link: int, source: Ints, target: Ints) -> Floats:
        """The share of what each source sends to its target that passes the link."""
        passes = (source != target) & (self._link(source, target) == link)
        return np.asarray(passes, dtype=np.float64)

    def strands(self) -> Ints:
        """Parallel connections that each link stands for."""
        return np.ones(len(self.capacity_bytes_per_s), dtype=np.int64)

    def diameter_s(self, groups: Ints) -> float:
        return self._spec.latency_s if groups.shape[1] > 1 else 0.0

    def protocol(self, groups: Ints) -> str | None:
        return self._spec.protocol if groups.shape[1] > 1 else None

    def units(self, ranks: Ints) -> list[Ints]:
        return []

    def shape(self) -> tuple[int, ...] | None:
        return None

    def reduction(self, groups: Ints) -> Reduction | None:
        return None

    def ends(self) -> tuple[Ints, Ints]:
        source = np.repeat(np.arange(self.ranks), max(self.ranks - 1, 0))
        other = np.tile(np.arange(self.ranks - 1), self.ranks)
        return source, other + (other >= source)

    def node_name(self, node: int) -> str:
        return f"GPU {node}"

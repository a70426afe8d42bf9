"""Hosts with any topology inside, joined by tiers of switches.

Traffic between hosts goes from the GPU to its network card and on, past the links inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from triosim.errors import ConfigError
from triosim.network.topology.base import Floats, Ints, Reduction, Topology
from triosim.network.topology.lines import joined
from triosim.network.topology.tiered import Tier, Tiered


class Hosts:
    """`ranks` GPUs in hosts that are alike inside; the last host may be partly empty.

    Link numbers: those inside each host in turn, then those of `outside`, a `Tiered` whose lowest
    tier are the hosts' own buses, from each GPU to its host's network cards. A bus is as wide as
    the way out of the host, so that it never limits what goes that way, and pays the latency of
    the tier above in its place: then traffic inside a host has no reason to go through it.
    """

    def __init__(self, inside: Topology, tiers: Sequence[Tier], ranks: int) -> None:
        if not tiers:
            raise ConfigError("topology", "no tiers", "needs at least one tier to join the hosts")
        self.ranks = ranks
        self._inside = inside
        self._per_host = inside.ranks
        self._hosts = -(-ranks // inside.ranks)
        first = tiers[0]
        width = first.link.bytes_per_s * (1 if first.per_gpu or first.rails else first.links)
        bus = Tier(name="host", children=inside.ranks, link=replace(first.link, bytes_per_s=width))
        out = replace(first, link=replace(first.link, latency_s=0.0))
        self._outside = Tiered([bus, out, *tiers[1:]], ranks)
        self._inner = len(inside.capacity_bytes_per_s)  # links inside a host
        self.capacity_bytes_per_s: Floats = self._by_link(
            inside.capacity_bytes_per_s, self._outside.capacity_bytes_per_s
        )
        self.link_latency_s: Floats = self._by_link(
            inside.link_latency_s, self._outside.link_latency_s
        )

    def _by_link(self, inside: Floats, outside: Floats) -> Floats:
        return np.concatenate((np.tile(inside, self._hosts), outside))

    def traffic(self, source: Ints, target: Ints, size_bytes: Floats) -> Floats:
        near = source // self._per_host == target // self._per_host
        far = ~near
        return np.concatenate(
            (
                self._traffic_inside(source[near], target[near], size_bytes[near]),
                self._outside.traffic(source[far], target[far], size_bytes[far]),
            )
        )

    def _traffic_inside(self, source: Ints, target: Ints, size_bytes: Floats) -> Floats:
        """Hosts in which the same happens are looked at once."""
        k = self._per_host
        host, at = np.unique(source // k, return_inverse=True)
        sizes = np.bincount(
            at * k * k + source % k * k + target % k, size_bytes, len(host) * k * k
        ).reshape(len(host), k * k)
        total = np.zeros((self._hosts, self._inner))
        while len(host):
            pattern = sizes[0]
            alike = (sizes == pattern).all(axis=1)
            pairs = np.flatnonzero(pattern)
            total[host[alike]] = self._inside.traffic(pairs // k, pairs % k, pattern[pairs])
            host, sizes = host[~alike], sizes[~alike]
        return total.ravel()

    def exchange(self, groups: Ints, size_bytes: float) -> Floats:
        source, target = self._pairs_inside(groups)
        ones = np.ones(len(source))
        # Counts of messages are whole numbers: what stays inside can be taken off exactly.
        outside = self._outside.exchange(groups, 1.0) - self._outside.traffic(source, target, ones)
        return size_bytes * np.concatenate((self._traffic_inside(source, target, ones), outside))

    def _pairs_inside(self, groups: Ints) -> tuple[Ints, Ints]:
        """All pairs of ranks of one group in one host."""
        row = np.arange(len(groups))[:, None]
        key = (row * self._hosts + groups // self._per_host).ravel()
        order = np.argsort(key, kind="stable")
        one, other = joined(key[order], key[order])
        ranks = groups.ravel()[order]
        return ranks[one], ranks[other]

    def latency_s(self, source: Ints, target: Ints) -> Floats:
        k = self._per_host
        near = source // k == target // k
        latency_s = self._outside.latency_s(source, target)
        latency_s[near] = self._inside.latency_s(source[near] % k, target[near] % k)
        return latency_s

    def passing(self, link: int, source: Ints, target: Ints) -> Floats:
        """The share of what each source sends to its target that passes the link."""
        k = self._per_host
        near = source // k == target // k
        share = np.zeros(len(source))
        if link >= self._hosts * self._inner:
            outside = self._outside.passing(link - self._hosts * self._inner, source, target)
            return np.where(near, share, outside)
        here = near & (source // k == link // self._inner)
        share[here] = self._inside.passing(link % self._inner, source[here] % k, target[here] % k)
        return share

    def strands(self) -> Ints:
        """Parallel connections that each link stands for."""
        return np.concatenate(
            (np.tile(self._inside.strands(), self._hosts), self._outside.strands())
        )

    def diameter_s(self, groups: Ints) -> float:
        source, target = self._pairs_inside(groups)
        k = self._per_host
        inside = self._inside.latency_s(source % k, target % k).max(initial=0.0)
        return max(float(inside), self._outside.diameter_s(groups) if self._leave(groups) else 0.0)

    def _leave(self, groups: Ints) -> bool:
        """Whether a group has ranks in several hosts."""
        host = groups // self._per_host
        return bool((host != host[:, :1]).any())

    def protocol(self, groups: Ints) -> str | None:
        if self._leave(groups):
            return self._outside.protocol(groups)
        return self._inside.protocol(groups % self._per_host)

    def units(self, ranks: Ints) -> list[Ints]:
        host, place = ranks // self._per_host, ranks % self._per_host
        inner = self._inside.units(np.arange(self._per_host))
        found = [host * self._per_host + unit[place] for unit in inner]
        return [
            *(unit for unit in found if 1 < len(np.unique(unit)) < len(ranks)),
            *self._outside.units(ranks),
        ]

    def shape(self) -> tuple[int, ...] | None:
        return None

    def reduction(self, groups: Ints) -> Reduction | None:
        return None

    def _inner_switches(self) -> int:
        """Nodes of one host besides its GPUs."""
        ends = np.concatenate(self._inside.ends())
        return int(ends.max(initial=self._per_host - 1)) + 1 - self._per_host

    def ends(self) -> tuple[Ints, Ints]:
        """Nodes: all places for GPUs, switches inside the hosts, hosts and switches outside."""
        host = np.arange(self._hosts)[:, None]
        places, switches = self._hosts * self._per_host, self._inner_switches()
        found = []
        for inner, outer in zip(self._inside.ends(), self._outside.ends(), strict=True):
            gpu = host * self._per_host + inner
            switch = places + host * switches + inner - self._per_host
            node = outer + (places + self._hosts * switches - self.ranks) * (outer >= self.ranks)
            inside = np.where(inner < self._per_host, gpu, switch)
            found.append(np.concatenate((inside.ravel(), node)))
        return found[0], found[1]

    def node_name(self, node: int) -> str:
        places, switches = self._hosts * self._per_host, self._inner_switches()
        if node < places:
            return f"GPU {node}" if node < self.ranks else f"free place {node}"
        if node < places + self._hosts * switches:
            host, switch = divmod(node - places, switches)
            return f"{self._inside.node_name(self._per_host + switch)} of host {host}"
        return self._outside.node_name(node - places - self._hosts * switches + self.ranks)

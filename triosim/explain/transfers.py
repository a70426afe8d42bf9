"""Why a transfer took as long as it did: latency, its bytes, and who shared its links.

What each transfer had of a link at an instant is not recorded, but what the link carried in all is;
so the others' part is what the link carried meanwhile less the transfer's own bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from triosim.engine.timeline import Floats, Timeline
from triosim.network.cluster import Carried

FULL = 1 - 1e-9  # of a link's bandwidth
MOST_LINKS = 64  # of a transfer that are looked at, those with most to carry first


@dataclass(frozen=True, kw_only=True, slots=True)
class Sharer:
    """Another transfer that used the same link meanwhile; `bytes` is all that it put on it."""

    task: int
    overlap_s: float
    bytes: float


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkUse:
    """The fullest link of a transfer while that was under way.

    `own_bytes` are the transfer's, `other_bytes` what others moved over the link meanwhile; for
    `full_s` seconds it carried all that it can. `sharers` are the others, the longest beside first.
    """

    name: str
    bytes_per_s: float
    own_bytes: float
    other_bytes: float
    full_s: float
    sharers: tuple[Sharer, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """One transfer: `seconds` = `latency_s` + `bytes_s` + `delay_s`.

    `bytes_s` is what its bytes take on links that it has for itself; `delay_s` the rest, links
    shared with others or, on optical networks, circuits that had to be set up. `algorithm` and
    `protocol` are empty where none was chosen.
    """

    size_bytes: float
    latency_s: float
    bytes_s: float
    delay_s: float
    circuits: bool
    algorithm: str
    protocol: str
    link: LinkUse | None


class Transfers:
    """The transfers of one timeline."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._usage: dict[int, tuple[Floats, Floats]] = {}

    def move(self, task: int) -> Move:
        """What a transfer's end waited for while it moved."""
        timeline, program = self._timeline, self._timeline.program
        transfer = program.transfer[task]
        load = program.loads[transfer]
        latency_s = sum(part.latency_s for part in load.parts)
        bytes_s = sum(
            max((size / program.links[k].bytes_per_s for k, size in part.bytes_by_link), default=0)
            for part in load.parts
        )
        seconds = float(timeline.end_s[task] - timeline.start_s[task])
        carried = load if isinstance(load, Carried) else None
        return Move(
            size_bytes=program.bytes[task],
            latency_s=latency_s,
            bytes_s=bytes_s,
            delay_s=max(0.0, seconds - latency_s - bytes_s),
            circuits=bool(load.circuits),
            algorithm=carried.algorithm if carried is not None else "",
            protocol=(carried.protocol or "") if carried is not None else "",
            link=self._fullest(transfer) if seconds > 0 else None,
        )

    def _fullest(self, transfer: int) -> LinkUse | None:
        """The link that was full longest; of equals the one with most of the transfer's bytes."""
        program, own = self._timeline.program, self._bytes(transfer)
        begin, end = self._when(transfer)
        found: tuple[float, float, LinkUse] | None = None
        heaviest = sorted(own, key=lambda k: -own[k] / program.links[k].bytes_per_s)
        for k in heaviest[:MOST_LINKS]:
            link = program.links[k]
            carried, full_s = self._carried(k, begin, end)
            rank = (full_s, own[k] / link.bytes_per_s)
            if found is None or rank > found[:2]:
                use = LinkUse(
                    name=link.name,
                    bytes_per_s=link.bytes_per_s,
                    own_bytes=own[k],
                    other_bytes=max(0.0, carried - own[k]),
                    full_s=full_s,
                    sharers=tuple(self._sharers(transfer, k)),
                )
                found = (*rank, use)
        return None if found is None else found[2]

    def _carried(self, link: int, begin: float, end: float) -> tuple[float, float]:
        """What a link carried in a window, and for how long it was full."""
        if link not in self._usage:
            self._usage[link] = self._timeline.usage(link)
        time_s, bytes_per_s = self._usage[link]
        first = max(0, int(np.searchsorted(time_s, begin, side="right")) - 1)
        last = int(np.searchsorted(time_s, end))
        rates = bytes_per_s[first:last]
        edges = np.clip(np.append(time_s[first:last], end), begin, end)
        spent = np.diff(edges)
        full = rates >= FULL * self._timeline.program.links[link].bytes_per_s
        return float((spent * rates).sum()), float(spent[full].sum())

    def _sharers(self, transfer: int, link: int) -> Iterator[Sharer]:
        begin, end = self._when(transfer)
        starts, ends = self._spans
        beside = np.flatnonzero((starts < end) & (ends > begin)).tolist()
        found = []
        for other in beside:
            size = 0.0 if other == transfer else self._bytes(other).get(link, 0.0)
            if size:
                overlap_s = min(end, float(ends[other])) - max(begin, float(starts[other]))
                task = self._timeline.program.ends[other][0]
                found.append(Sharer(task=task, overlap_s=overlap_s, bytes=size))
        yield from sorted(found, key=lambda sharer: -sharer.overlap_s)

    def _bytes(self, transfer: int) -> dict[int, float]:
        """A transfer's bytes on each of its links, over all of its parts."""
        sizes: dict[int, float] = {}
        for part in self._timeline.program.loads[transfer].parts:
            for link, size in part.bytes_by_link:
                sizes[link] = sizes.get(link, 0.0) + size
        return sizes

    def _when(self, transfer: int) -> tuple[float, float]:
        starts, ends = self._spans
        return float(starts[transfer]), float(ends[transfer])

    @cached_property
    def _spans(self) -> tuple[Floats, Floats]:
        """Start and end of every transfer."""
        first = [ends[0] for ends in self._timeline.program.ends]
        return self._timeline.start_s[first], self._timeline.end_s[first]

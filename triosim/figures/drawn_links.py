"""The links of a drawing: where each runs, and the load of the network's link behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from triosim.figures.places import Pair, Places, Point, curve
from triosim.figures.text import bytes_text, share_text
from triosim.network.links import Link
from triosim.result import Result

HUB = "remote memory"


@dataclass(frozen=True, kw_only=True, slots=True)
class DrawnLink:
    """One direction of a connection as drawn, and the load of the link that it stands for."""

    pair: Pair
    points: Sequence[Point]
    carried: str
    busy: str
    share: float
    hover: str

    @property
    def middle(self) -> Point:
        return self.points[len(self.points) // 2]


def links_between(result: Result, places: Places) -> list[DrawnLink]:
    """Every drawn direction between GPUs; the link of a folded ring stands for all of them."""
    links = result.tasks.program.links
    own = [i for i, link in enumerate(links) if link.source >= 0 and link.target >= 0]
    position = {(links[i].source, links[i].target): i for i in own}
    folded = own[0] if own and links[own[0]].members > 1 else None
    found = []
    for pair, bend in places.pairs.items():
        i = position.get(pair, folded)
        if i is not None:
            points = curve(places.at[pair[0]], places.at[pair[1]], bend)
            name = f"GPU {pair[0]} to GPU {pair[1]}"
            found.append(_drawn(result, i, pair, points, name))
    return found


def spokes(result: Result, places: Places) -> list[DrawnLink]:
    """From the middle to every GPU: what it fetches."""
    found = []
    for rank, point in places.at.items():
        i = remote_link(result, result.class_of(rank))
        points = curve((0.0, 0.0), point, 0.0)
        found.append(_drawn(result, i, (-1, rank), points, f"{HUB} to GPU {rank}"))
    return found


def remote_link(result: Result, rank_class: int) -> int:
    """The position of the link over which a class fetches."""
    rank = result.classes[rank_class].rank
    links: Sequence[Link] = result.tasks.program.links
    return next(i for i, k in enumerate(links) if k.source == -1 and k.target == rank)


def _drawn(result: Result, i: int, pair: Pair, points: Sequence[Point], name: str) -> DrawnLink:
    link = result.tasks.program.links[i]
    carried = float(result.tasks.carried_bytes[i])
    peak = float(result.tasks.peak_bytes_per_s[i])
    possible = link.bytes_per_s * result.tasks.total_s
    busy = share_text(carried, possible)
    return DrawnLink(
        pair=pair,
        points=points,
        carried=bytes_text(carried),
        busy=busy,
        share=carried / possible if possible else 0.0,
        hover=(
            f"<b>{name}</b><br>{bytes_text(carried)} in this step, {busy} of what it could carry"
            f"<br>bandwidth {bytes_text(link.bytes_per_s)}/s, highest rate {bytes_text(peak)}/s"
        ),
    )

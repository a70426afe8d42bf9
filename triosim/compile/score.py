"""How much a pair is worth, and which of two pairs goes first.

The order of torch 2.13's Inductor: kind of fusion, then kinds alike, bytes of memory traffic saved
and nearness in the graph. (Its fifth number, for reads of one buffer at different places, is
switched off by its default settings.)
"""

from __future__ import annotations

from dataclasses import dataclass

from triosim.compile.group import Group

# Kinds alike go first unless the other pair saves this many times more bytes.
DOMINATES = 16


def shared_bytes(a: Group, b: Group) -> int:
    """Bytes that need to pass only once when both run as one: of accesses that are the same.

    Of a product's template all accesses of a common buffer count, whatever their index.
    """
    if a.is_template or b.is_template:
        return sum(
            max(x.bytes, y.bytes) for x in a.accesses for y in b.accesses if x.buffer == y.buffer
        )
    return sum(access.bytes for access in a.accesses & b.accesses)


@dataclass(frozen=True, kw_only=True, slots=True)
class Score:
    """A pair's place in the order; more is better in every field, `distance` counts down.

    `template` is 0 for an operator before a product, 2 for pairs that share bytes without a
    template in front, 1 for the rest (an operator after a product).
    """

    template: int
    alike: bool
    bytes: int
    distance: int

    @classmethod
    def of(cls, a: Group, b: Group, saved: int) -> Score:
        after = 1 + (not a.is_template and saved > 0)
        return cls(
            template=0 if b.is_template else after,
            alike=a.is_reduction == b.is_reduction and saved > 0,
            bytes=saved,
            distance=a.distance(b),
        )

    def __lt__(self, other: Score) -> bool:
        if self.template != other.template:
            return self.template < other.template
        low, high = sorted((self.bytes, other.bytes))
        if high > low * DOMINATES:
            return self.bytes < other.bytes
        mine = self.alike, self.bytes, -self.distance
        return mine < (other.alike, other.bytes, -other.distance)

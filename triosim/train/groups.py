"""What one composite task stands for: a unit, or a whole part of the model on a stage."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

from triosim.engine.program import Part
from triosim.train.blocks import FORWARD, Blocks
from triosim.train.owned import padded
from triosim.train.passes import Pass
from triosim.train.plan import Unit


class Group:
    """Some units in order. Everything is worked out once and holds for every micro-batch."""

    def __init__(self, blocks: Blocks, units: Sequence[Unit]) -> None:
        self._blocks = blocks
        self.units = tuple(units)
        self.name = self.units[0].name if len(self.units) == 1 else "layers"
        self._parts: dict[tuple[str, bool, bool], tuple[Part, ...]] = {}

    def passes(self, kind: str, *, gathered: bool = False, reduced: bool = False) -> list[Pass]:
        """One pass for each unit, in the order in which they run."""
        units = self.units if kind == FORWARD else self.units[::-1]
        return [
            self._blocks.simulate(unit, kind, gathered=gathered, reduced=reduced) for unit in units
        ]

    def parts(self, kind: str, *, gathered: bool, reduced: bool) -> tuple[Part, ...]:
        """What the passes are made of together."""
        key = (kind, gathered, reduced)
        if key not in self._parts:
            sums: dict[tuple[str, tuple[str, str]], float] = {}
            for made in self.passes(kind, gathered=gathered, reduced=reduced):
                for part in made.parts:
                    at = (part.kind, part.key)
                    sums[at] = sums.get(at, 0.0) + part.seconds
            self._parts[key] = tuple(Part(*at, seconds) for at, seconds in sums.items())
        return self._parts[key]

    @cached_property
    def held(self) -> dict[str, float]:
        """What a micro-batch keeps for backward, or for the next tokens, by category of memory."""
        held: dict[str, float] = {}
        if self._blocks.plan.scenario.prefill:
            return {"activations": sum(self._blocks.cached_keys(unit) for unit in self.units)}
        for unit in self.units:
            category = "logits" if "head" in unit.parts else "activations"
            held[category] = held.get(category, 0.0) + self._blocks.memory(unit).kept
        return held

    @cached_property
    def _work(self) -> tuple[int, int]:
        memories = [self._blocks.memory(unit) for unit in self.units]
        return max(m.forward for m in memories), max(m.backward for m in memories)

    def work(self, kind: str) -> int:
        """What lives within a pass only: of several units the largest."""
        return self._work[0 if kind == FORWARD else 1]

    @cached_property
    def dense(self) -> int:
        """Parameters that every rank of the data-parallel groups shares, before sharding."""
        return sum(self._blocks.owned(unit).dense_count for unit in self.units)

    @cached_property
    def experts(self) -> int:
        return sum(self._blocks.owned(unit).expert_count for unit in self.units)

    @cached_property
    def count(self) -> int:
        return self.dense + self.experts

    @cached_property
    def padded(self) -> tuple[int, int]:
        """Parameters as they travel, with padding: dense ones and experts."""
        dense, experts = zip(
            *(padded(self._blocks.plan, self._blocks.owned(unit)) for unit in self.units),
            strict=True,
        )
        return sum(dense), sum(experts)

    @cached_property
    def gathered(self) -> float:
        """Bytes of whole parameters as they are gathered."""
        return sum(self._blocks.gathered(unit) for unit in self.units)


@dataclass(frozen=True, kw_only=True)
class UnitPair(Unit):
    """A unit's forward pass beside another unit's backward pass."""

    ahead: Unit
    behind: Unit

    @property
    def name(self) -> str:
        return f"{self.ahead.name} beside {self.behind.name}"


class Pair(Group):
    """A group's forward beside another one's backward, unit by unit; what is over runs alone."""

    def __init__(self, blocks: Blocks, ahead: Group, behind: Group, kind: str) -> None:
        self._kind = kind
        self._halves = list(zip_longest(ahead.units, behind.units[::-1]))
        super().__init__(blocks, [_named(*halves) for halves in self._halves])
        self._both = ahead.work(FORWARD) + behind.work(kind)

    def passes(self, kind: str, *, gathered: bool = False, reduced: bool = False) -> list[Pass]:
        """In the order in which they run, which is the units' own."""
        return [self._pass(*halves) for halves in self._halves]

    def _pass(self, ahead: Unit | None, behind: Unit | None) -> Pass:
        if ahead is not None and behind is not None:
            return self._blocks.simulate_pair(ahead, behind, self._kind)
        alone, kind = (ahead, FORWARD) if ahead is not None else (behind, self._kind)
        assert alone is not None
        return self._blocks.simulate(alone, kind)

    def work(self, kind: str) -> int:
        """What both passes have at their highest."""
        return self._both


def _named(ahead: Unit | None, behind: Unit | None) -> Unit:
    if ahead is not None and behind is not None:
        parts = tuple(dict.fromkeys((*ahead.parts, *behind.parts)))
        return UnitPair(parts=parts, layer=ahead.layer, ahead=ahead, behind=behind)
    alone = ahead or behind
    assert alone is not None
    return alone


class Groups:
    """The groups of each virtual stage: whole, unit by unit, and one beside another."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._pairs: dict[tuple[int, int, str], Pair] = {}
        self.whole = [Group(blocks, units) for units in blocks.plan.virtual_stages]
        self.single = [
            [Group(blocks, (unit,)) for unit in units] for units in blocks.plan.virtual_stages
        ]

    def of(self, virtual_stage: int, kind: str, *, layerwise: bool) -> Iterator[Group]:
        """In the order in which a pass of that kind runs them."""
        if not layerwise:
            yield self.whole[virtual_stage]
        else:
            single = self.single[virtual_stage]
            yield from single if kind == FORWARD else reversed(single)

    def pair(self, ahead: int, behind: int, kind: str) -> Pair:
        """A virtual stage's forward beside another one's pass of that kind."""
        key = (ahead, behind, kind)
        if key not in self._pairs:
            self._pairs[key] = Pair(self._blocks, self.whole[ahead], self.whole[behind], kind)
        return self._pairs[key]

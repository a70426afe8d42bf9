"""The layouts that training uses most, small enough to look at: tensors, what happens, collectives.

Only placements are written down here; shapes of shards, collectives and bytes follow from them.
Weights have torch's shape (outputs, inputs); activations are (tokens, features); elements are bf16.
"""

from __future__ import annotations

from dataclasses import dataclass

from triosim.errors import ConfigError
from triosim.mesh.device_mesh import DeviceMesh
from triosim.mesh.placements import Placements, parse_placements
from triosim.mesh.redistribute import Step, redistribute
from triosim.mesh.shards import Block, blocks

ELEMENT_BYTES = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacedTensor:
    """A tensor and who holds what of it."""

    name: str
    shape: tuple[int, ...]
    placements: Placements
    note: str

    def blocks(self, mesh: DeviceMesh) -> dict[int, Block]:
        return blocks(self.shape, mesh, self.placements)


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """A moment of the step: a tensor goes from one layout to another (or stays: nothing sent)."""

    when: str
    tensor: str
    shape: tuple[int, ...]
    before: Placements
    after: Placements

    def steps(self, mesh: DeviceMesh) -> tuple[Step, ...]:
        return redistribute(self.shape, ELEMENT_BYTES, mesh, self.before, self.after)


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    name: str
    title: str
    idea: str
    mesh: DeviceMesh
    tensors: tuple[PlacedTensor, ...]
    events: tuple[Event, ...]

    def collectives(self) -> list[tuple[Event, Step]]:
        """What is sent, in order."""
        steps = ((event, step) for event in self.events for step in event.steps(self.mesh))
        return [(event, step) for event, step in steps if step.sends]


def preset(name: str) -> Preset:
    """One of `PRESETS` by name."""
    for found in PRESETS:
        if found.name == name:
            return found
    names = ", ".join(found.name for found in PRESETS)
    raise ConfigError("preset", name, f"must be one of {names}")


def _tensor(name: str, shape: tuple[int, ...], placements: str, note: str) -> PlacedTensor:
    return PlacedTensor(name=name, shape=shape, placements=parse_placements(placements), note=note)


def _event(when: str, tensor: str, shape: tuple[int, ...], before: str, after: str) -> Event:
    return Event(
        when=when,
        tensor=tensor,
        shape=shape,
        before=parse_placements(before),
        after=parse_placements(after),
    )


_TP4 = DeviceMesh((4,), ("tp",))
_TOKENS, _HIDDEN, _FFN = 16, 8, 32

PRESETS = (
    Preset(
        name="column-linear",
        title="Column-parallel linear",
        idea="Each rank computes some of the output features from all of the input.",
        mesh=_TP4,
        tensors=(
            _tensor("X", (_TOKENS, _HIDDEN), "R", "input, on every rank"),
            _tensor("W", (_FFN, _HIDDEN), "S(0)", "rows of the weight: output features"),
            _tensor("Y", (_TOKENS, _FFN), "S(1)", "columns of the output"),
        ),
        events=(
            _event("forward: Y = X W^T", "Y", (_TOKENS, _FFN), "S(1)", "S(1)"),
            _event("backward: dX = dY W", "dX", (_TOKENS, _HIDDEN), "P", "R"),
        ),
    ),
    Preset(
        name="row-linear",
        title="Row-parallel linear",
        idea="Each rank multiplies some input features; the products are addends of the output.",
        mesh=_TP4,
        tensors=(
            _tensor("X", (_TOKENS, _FFN), "S(1)", "columns, as a column-parallel layer left them"),
            _tensor("W", (_HIDDEN, _FFN), "S(1)", "columns of the weight: input features"),
            _tensor("Y", (_TOKENS, _HIDDEN), "P", "addends of the output"),
        ),
        events=(
            _event("forward: Y = X W^T", "Y", (_TOKENS, _HIDDEN), "P", "R"),
            _event("backward: dX = dY W", "dX", (_TOKENS, _FFN), "S(1)", "S(1)"),
        ),
    ),
    Preset(
        name="sequence-parallel",
        title="Sequence parallel",
        idea="Between the linear layers each rank holds some tokens: an all-reduce becomes a "
        "reduce-scatter and an all-gather, of together the same bytes.",
        mesh=_TP4,
        tensors=(
            _tensor("X", (_TOKENS, _HIDDEN), "S(0)", "tokens, in norms and dropout"),
            _tensor("norm", (_HIDDEN,), "R", "parameters of the norm, on every rank"),
            _tensor("W1", (_FFN, _HIDDEN), "S(0)", "column-parallel"),
            _tensor("W2", (_HIDDEN, _FFN), "S(1)", "row-parallel"),
        ),
        events=(
            _event("forward: before W1", "X", (_TOKENS, _HIDDEN), "S(0)", "R"),
            _event("forward: after W2", "Y", (_TOKENS, _HIDDEN), "P", "S(0)"),
            _event("backward: before W2", "dY", (_TOKENS, _HIDDEN), "S(0)", "R"),
            _event("backward: after W1", "dX", (_TOKENS, _HIDDEN), "P", "S(0)"),
            _event("backward: norm", "d norm", (_HIDDEN,), "P", "R"),
        ),
    ),
    Preset(
        name="hsdp",
        title="HSDP",
        idea="Parameters are sharded inside a group and replicated across groups.",
        mesh=DeviceMesh((2, 4), ("dp_replicate", "dp_shard")),
        tensors=(
            _tensor("W", (_FFN, _HIDDEN), "R, S(0)", "at rest"),
            _tensor("gathered W", (_FFN, _HIDDEN), "R, R", "while its layer computes"),
            _tensor("X", (_TOKENS, _HIDDEN), "S(0), S(0)", "samples: each rank has its own"),
        ),
        events=(
            _event("forward: before the layer", "W", (_FFN, _HIDDEN), "R, S(0)", "R, R"),
            _event("backward: before the layer", "W", (_FFN, _HIDDEN), "R, S(0)", "R, R"),
            # Two events, as FSDP2 does it: DTensor's own way from P, P would all-reduce first.
            _event("backward: in the group", "dW", (_FFN, _HIDDEN), "P, P", "P, S(0)"),
            _event("backward: across groups", "dW", (_FFN, _HIDDEN), "P, S(0)", "R, S(0)"),
        ),
    ),
    Preset(
        name="fsdp2-tp",
        title="FSDP2 + TP on one dimension",
        idea="Tensor parallelism cuts the rows first, FSDP2 then cuts each part. The axis of FSDP2 "
        "stands further left, so its shard is strided.",
        mesh=DeviceMesh((2, 2), ("dp_shard", "tp")),
        tensors=(
            _tensor("W", (8, 6), "_S(0,2), S(0)", "column-parallel, at rest: rank 1 holds 4:6"),
            _tensor("gathered W", (8, 6), "R, S(0)", "while its layer computes"),
            _tensor("plain W", (8, 6), "S(0), S(0)", "not what FSDP2 makes: rank 1 holds 2:4"),
        ),
        events=(
            _event("forward: before the layer", "W", (8, 6), "_S(0,2), S(0)", "R, S(0)"),
            _event("backward: before the layer", "W", (8, 6), "_S(0,2), S(0)", "R, S(0)"),
            _event("backward: after the layer", "dW", (8, 6), "P, S(0)", "_S(0,2), S(0)"),
        ),
    ),
)

"""Which tensors are trained, and when the gradient of each is ready.

Trained: read by a forward operator and by an optimizer operator, written by no forward operator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from triosim.trace.model import Operator, Tensor, Trace


@dataclass(frozen=True, kw_only=True, slots=True)
class Gradient:
    """The gradient of one parameter.

    `producer` is the index of the operator after which it is ready; None: only the end of backward
    is certain. `output` names the producer's output where one was recognised: (operator, tensor).
    """

    parameter: int
    producer: int | None
    output: tuple[int, int] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameters:
    """Trained tensors in the order in which the forward pass reads them.

    `index` maps their tensor ids to positions in `tensors`; `aligned` maps the tensor ids of an
    optimizer's lists (gradients, state, the parameters themselves) to the parameter they stand
    beside. `gradients` has one entry per parameter, in the same order. `gradient_ids` are the
    tensors in an optimizer's lists of gradients, also those that no backward operator names.
    """

    tensors: Sequence[Tensor]
    index: Mapping[int, int]
    aligned: Mapping[int, int]
    gradients: Sequence[Gradient]
    gradient_ids: frozenset[int]

    @property
    def bytes(self) -> int:
        return sum(tensor.bytes for tensor in self.tensors)

    @property
    def unresolved(self) -> list[int]:
        """Parameters whose gradient is only known to be ready at the end of backward."""
        return [g.parameter for g in self.gradients if g.producer is None]


@lru_cache(maxsize=32)
def find_parameters(trace: Trace) -> Parameters:
    tensors = _trained(trace)
    index = {tensor.id: i for i, tensor in enumerate(tensors)}
    optimizer = [op for op in trace.operators if op.phase == "optimizer"]
    groups = _groups(index, optimizer)
    aligned = _align(tensors, index, groups, optimizer)
    outputs = _Outputs(list(_backward_outputs(trace)))
    named: dict[int, tuple[int, int]] = {}
    seeds: set[int] = set()
    for parameter, ids in _gradient_candidates(aligned, optimizer).items():
        match = outputs.named(ids, tensors[parameter])
        if match is not None:
            named[parameter], seed = match
            seeds.add(seed)
    return Parameters(
        tensors=tensors,
        index=index,
        aligned=aligned,
        gradients=_gradients(trace, tensors, outputs, named),
        gradient_ids=_gradient_lists(groups, optimizer, seeds),
    )


def _trained(trace: Trace) -> list[Tensor]:
    read: dict[int, Tensor] = {}
    written: set[int] = set()
    updated: set[int] = set()
    for op in trace.operators:
        if op.phase == "forward":
            for tensor in op.inputs:
                read.setdefault(tensor.id, tensor)
            written.update(tensor.id for tensor in op.outputs)
        elif op.phase == "optimizer":
            updated.update(tensor.id for tensor in op.inputs)
    return [tensor for i, tensor in read.items() if i in updated and i not in written]


def _groups(index: Mapping[int, int], optimizer: Sequence[Operator]) -> list[tuple[int, ...]]:
    """The lists of parameters that the optimizer's operators name."""
    groups: dict[tuple[int, ...], None] = {}
    for op in optimizer:
        named = tuple(index[t.id] for t in op.inputs if t.id in index)
        if named:
            groups[named] = None
    return list(groups)


def _align(
    tensors: Sequence[Tensor],
    index: Mapping[int, int],
    groups: Sequence[tuple[int, ...]],
    optimizer: Sequence[Operator],
) -> dict[int, int]:
    """Read an optimizer's argument lists position by position.

    An operator's inputs are several lists of equal length laid end to end, as in
    _foreach_addcdiv_(parameters, momenta, denominators) or addcdiv_(parameter, momentum, ...).
    The operators that name parameters give the lists; the others are matched by a tensor that is
    already aligned, else by the sequence of sizes.
    """
    aligned = dict(index)
    by_first: dict[int, list[tuple[int, ...]]] = {}
    by_sizes: dict[tuple[int, ...], int] = {}
    for number, group in enumerate(groups):
        by_first.setdefault(group[0], []).append(group)
        if len(group) > 1:
            by_sizes.setdefault(tuple(tensors[p].numel for p in group), number)
    order = {group: number for number, group in enumerate(groups)}
    pending = list(optimizer)
    while pending:
        left = []
        for op in pending:
            fitting = _fitting(op, by_first, aligned)
            if fitting:
                _lay_out(op, min(fitting, key=order.__getitem__), tensors, aligned)
            else:
                left.append(op)
        if len(left) == len(pending):
            break
        pending = left
    lengths = sorted({len(sizes) for sizes in by_sizes})
    for op in pending:
        numels = tuple(t.numel for t in op.inputs)
        alike = [by_sizes[numels[:n]] for n in lengths if numels[:n] in by_sizes]
        if alike:
            _lay_out(op, groups[min(alike)], tensors, aligned)
    return aligned


def _fitting(
    op: Operator, by_first: Mapping[int, Sequence[tuple[int, ...]]], aligned: Mapping[int, int]
) -> list[tuple[int, ...]]:
    """The groups that one of the operator's lists stands beside."""
    beside = [aligned.get(t.id) for t in op.inputs]
    return [
        group
        for start, first in enumerate(beside)
        if first is not None
        for group in by_first.get(first, ())
        if start % len(group) == 0 and tuple(beside[start : start + len(group)]) == group
    ]


def _lay_out(
    op: Operator, group: tuple[int, ...], tensors: Sequence[Tensor], aligned: dict[int, int]
) -> None:
    for values in (op.inputs, op.outputs):
        for position, tensor in enumerate(values):
            parameter = group[position % len(group)]
            if tensor.numel == tensors[parameter].numel:
                aligned.setdefault(tensor.id, parameter)


def _gradients(
    trace: Trace,
    tensors: Sequence[Tensor],
    outputs: _Outputs,
    named: Mapping[int, tuple[int, int]],
) -> list[Gradient]:
    """The rules in order of certainty; each output is claimed once.

    `named`: by the gradient's id, else by its storage at equal size. Else, in reverse order of the
    parameters, the first unclaimed output with as many elements; else the last backward operator
    that reads the parameter.
    """
    found = dict(named)
    claimed = set(found.values())
    left = {numel: iter(spots) for numel, spots in outputs.by_numel.items()}
    for parameter in reversed(range(len(tensors))):
        if parameter not in found:
            spots = left.get(tensors[parameter].numel, iter(()))
            spot = next((spot for spot in spots if spot not in claimed), None)
            if spot is not None:
                found[parameter] = spot
                claimed.add(spot)
    readers = _last_readers(trace)
    return [
        Gradient(parameter=p, producer=found[p][0], output=found[p])
        if p in found
        else Gradient(parameter=p, producer=readers.get(tensors[p].storage), output=None)
        for p in range(len(tensors))
    ]


def _gradient_lists(
    groups: Sequence[tuple[int, ...]], optimizer: Sequence[Operator], seeds: set[int]
) -> frozenset[int]:
    """Every tensor that stands in one list with a known gradient."""
    found = set(seeds)
    lengths = {len(group) for group in groups}
    for op in optimizer:
        for length in lengths:
            if len(op.inputs) % length:
                continue
            for start in range(0, len(op.inputs), length):
                chunk = {t.id for t in op.inputs[start : start + length]}
                if not chunk.isdisjoint(seeds):
                    found |= chunk
    return frozenset(found)


def _backward_outputs(trace: Trace) -> Iterator[tuple[int, Tensor]]:
    for i, op in enumerate(trace.operators):
        if op.phase == "backward":
            for tensor in op.outputs:
                yield i, tensor


def _gradient_candidates(
    aligned: Mapping[int, int], optimizer: Sequence[Operator]
) -> dict[int, dict[int, Tensor]]:
    """For each parameter, what the optimizer reads beside it and did not make itself."""
    made: set[int] = set()
    candidates: dict[int, dict[int, Tensor]] = {}
    parameters = set(aligned.values())
    own = {i for i, p in aligned.items() if p in parameters}
    for op in optimizer:
        for tensor in op.inputs:
            if tensor.id in own and tensor.id not in made:
                candidates.setdefault(aligned[tensor.id], {})[tensor.id] = tensor
        made.update(tensor.id for tensor in op.outputs)
    return candidates


class _Outputs:
    """The outputs of backward operators by what the rules ask for; later ones win."""

    def __init__(self, outputs: Sequence[tuple[int, Tensor]]) -> None:
        self.by_id = {(t.id, t.bytes): (operator, t.id) for operator, t in outputs}
        self.by_storage = {(t.storage, t.bytes): (operator, t.id) for operator, t in outputs}
        self.by_numel: dict[int, list[tuple[int, int]]] = {}
        for operator, tensor in outputs:
            self.by_numel.setdefault(tensor.numel, []).append((operator, tensor.id))

    def named(
        self, candidates: Mapping[int, Tensor], parameter: Tensor
    ) -> tuple[tuple[int, int], int] | None:
        """The output that is the gradient, and the optimizer's tensor that it is."""
        size = parameter.bytes
        by_id = [
            (self.by_id[i, size], i)
            for i in candidates
            if i != parameter.id and (i, size) in self.by_id
        ]
        if by_id:
            return max(by_id)
        by_storage = [
            (self.by_storage[t.storage, size], i)
            for i, t in candidates.items()
            if t.storage != parameter.storage and (t.storage, size) in self.by_storage
        ]
        return max(by_storage, default=None)


def _last_readers(trace: Trace) -> dict[int, int]:
    """The last backward operator that reads each storage."""
    return {
        tensor.storage: i for i in trace.phase("backward") for tensor in trace.operators[i].inputs
    }

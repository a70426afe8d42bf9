"""What passes are made of: operators, copies, collectives, and transfers beside computation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from triosim.hardware import Work
from triosim.network.collectives.planned import Planned
from triosim.train.costs import Costs
from triosim.train.network import Wires
from triosim.train.passes import PassWriter, Step
from triosim.workload import Op

PURPOSES: Mapping[str, str] = {
    "tp": "tensor parallel", "ep": "experts", "cp": "context parallel",
    "ulysses": "context parallel", "ring": "context parallel",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Plain:
    """A kernel that is no operator of a block."""

    name: str
    phase: str
    work: Work

    def write(self, writer: PassWriter, costs: Costs, wires: Wires) -> None:
        writer.kernel(self.name, self.phase, costs.kernel_s(self.work))


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerCalls:
    """What a share of an eager pass of a layer asks of the CPU beside launches."""

    share: float

    def write(self, writer: PassWriter, costs: Costs, wires: Wires) -> None:
        writer.calls(costs.layer_s * self.share)


@dataclass(frozen=True, kw_only=True, eq=False)
class Kernels:
    """An operator, cast to fp8 first where its products are scaled.

    `times`: how much longer it takes than with evenly spread work.
    """

    op: Op
    phase: str
    times: float = 1.0

    def write(self, writer: PassWriter, costs: Costs, wires: Wires) -> None:
        _cast(writer, costs, self.op, self.phase)
        writer.kernel(self.op.name, self.phase, costs.op_s(self.op) * self.times)


def _cast(writer: PassWriter, costs: Costs, op: Op, phase: str) -> None:
    """Operands of a scaled product become fp8 first."""
    cast_s = costs.cast_s(op) if costs.scaled(op) else 0.0
    if cast_s:
        writer.kernel(f"{op.name} cast", phase, cast_s)


@dataclass(frozen=True, kw_only=True, eq=False)
class Copy:
    """Bytes moved within the GPU: parameters out of a gathered buffer, gradients into one."""

    name: str
    phase: str
    size_bytes: float

    def write(self, writer: PassWriter, costs: Costs, wires: Wires) -> None:
        writer.kernel(self.name, self.phase, costs.moved_s(self.size_bytes))


@dataclass(frozen=True, kw_only=True, eq=False)
class Collective:
    """A transfer that what follows waits for; a `free` one waits for nothing itself."""

    operation: str
    axis: str
    size_bytes: float
    free: bool = False

    def write(self, writer: PassWriter, costs: Costs, wires: Wires) -> None:
        writer.await_transfer(self.start(writer, wires))

    def start(self, writer: PassWriter, wires: Wires) -> int:
        """Begin without letting anything wait for it."""
        planned = wires.planned(self.operation, self.axis, self.size_bytes)
        return _message(writer, planned, self.axis, 1, () if self.free else writer.before)


@dataclass(frozen=True, kw_only=True, eq=False)
class ProductBackward:
    """A tensor-parallel product's backward as Megatron-LM runs it.

    Its input is gathered again (`gather`) beside the input gradient, and that is summed over the
    ranks (`total`) beside the weight gradient.
    """

    gather: Collective | None
    inputs: tuple[Step, ...]
    total: Collective
    weights: tuple[Step, ...]

    def write(self, writer: PassWriter, costs: Costs, wires: Wires) -> None:
        gathered = None if self.gather is None else self.gather.start(writer, wires)
        for step in self.inputs:
            step.write(writer, costs, wires)
        summed = self.total.start(writer, wires)
        if gathered is not None:
            writer.await_transfer(gathered)
        for step in self.weights:
            step.write(writer, costs, wires)
        writer.await_transfer(summed)


@dataclass(frozen=True, kw_only=True, eq=False)
class Gathering:
    """Async tensor parallelism: products start on each part of the tokens as it arrives.

    The gather is cut into one message from each peer; the rank's own part is there already.
    """

    axis: str
    size_bytes: float
    ops: tuple[Op, ...]
    phase: str

    def write(self, writer: PassWriter, costs: Costs, wires: Wires) -> None:
        chunks = wires.size(self.axis)
        for op in self.ops:
            _cast(writer, costs, op, self.phase)
        planned = wires.planned("all-gather", self.axis, self.size_bytes)
        start = writer.before
        arrivals = [
            _message(writer, planned, self.axis, chunks - 1, start) for _ in range(chunks - 1)
        ]
        for chunk in range(chunks):
            waits = arrivals[chunk - 1 : chunk] if chunk else ()
            for op in self.ops:
                writer.kernel(op.name, self.phase, costs.op_s(op, chunks), waits)
                waits = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Scattering:
    """Async tensor parallelism: each part of a product's result leaves while the next is made."""

    axis: str
    size_bytes: float
    op: Op
    phase: str

    def write(self, writer: PassWriter, costs: Costs, wires: Wires) -> None:
        chunks = wires.size(self.axis)
        planned = wires.planned("reduce-scatter", self.axis, self.size_bytes)
        _cast(writer, costs, self.op, self.phase)
        last = -1
        for chunk in range(chunks):
            task = writer.kernel(self.op.name, self.phase, costs.op_s(self.op, chunks))
            if chunk < chunks - 1:  # the last part is the rank's own
                last = _message(writer, planned, self.axis, chunks - 1, (task,))
        writer.await_transfer(last)


def _message(
    writer: PassWriter, planned: Planned, axis: str, of: int, waits: tuple[int, ...]
) -> int:
    """One of so many equal messages that make up a collective."""
    sent = planned.pattern.sent_share * planned.size_bytes
    return writer.transfer(
        planned.operation,
        planned.operation,
        PURPOSES[axis],
        planned.time_s / of,
        size_bytes=planned.size_bytes / of,
        sent_bytes=sent / of,
        waits=waits,
        awaited=False,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class RingAttention:
    """Attention in as many steps as ranks of the ring: each sends on what it has just received.

    `shares` are the steps' parts of the mean work; `message_bytes` are what one hop carries and
    `home_bytes` what goes on to its owner after the last step.
    """

    op: Op
    phase: str
    axis: str
    message_bytes: float
    shares: tuple[float, ...]
    home_bytes: float = 0.0

    def write(self, writer: PassWriter, costs: Costs, wires: Wires) -> None:
        seconds = costs.op_s(self.op)
        arrived = writer.before
        for number, share in enumerate(self.shares):
            incoming = arrived
            if number < len(self.shares) - 1:
                # What has just arrived goes on while it is computed with.
                arrived = (self._hop(writer, wires, self.message_bytes, incoming),)
            waits = incoming if number else ()
            writer.kernel(self.op.name, self.phase, seconds * share, waits)
        if self.home_bytes:
            writer.await_transfer(self._hop(writer, wires, self.home_bytes, writer.before))

    def _hop(
        self, writer: PassWriter, wires: Wires, size_bytes: float, waits: tuple[int, ...]
    ) -> int:
        return writer.transfer(
            "send",
            "send/recv",
            PURPOSES[self.axis],
            wires.planned("send", self.axis, size_bytes).time_s,
            size_bytes=size_bytes,
            sent_bytes=size_bytes,
            waits=waits,
            awaited=False,
        )

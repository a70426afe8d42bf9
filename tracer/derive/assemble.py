"""From recorded calls to a trace: times from the roofline, tensors tied together.

Operators without kernels (views) are left out, as the tracer leaves them out; their tensors stay
connected by storage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tracer.convert import TP_OPS
from tracer.derive.names import gpu_name
from tracer.derive.record import Call
from tracer.derive.timing import kernel_s
from triosim.hardware import Gpu
from triosim.trace import Operator, Tensor


def assemble(
    calls: Sequence[Call], gradients: Mapping[int, Tensor], gpu: Gpu
) -> tuple[Operator, ...]:
    """The operators of the step; `gradients` are what the optimizer reads, by storage."""
    forward = {n: call for call in calls if call.phase == "forward" for n in call.sequence}
    last_read = {**_last_reads(calls), **dict.fromkeys(gradients, len(calls))}
    backward: set[int] = set()  # storages that backward operators wrote
    operators: list[Operator] = []
    for position, call in enumerate(calls):
        if not call.kernels:
            continue
        partner, inputs, outputs = call, call.inputs, call.outputs
        if call.phase == "backward":
            partner = forward.get(call.sequence[0], call)
            inputs, made = _backward_tensors(call)
            inputs = tuple(_as_incoming(t) if t.storage in backward else t for t in inputs)
            backward.update(t.storage for t in made)
            used = [t for t in made if last_read.get(t.storage, -1) > position]
            outputs = tuple(_as_gradient(t, gradients) for t in used or made)
        operators.append(_operator(len(operators) + 1, call, partner, inputs, outputs, gpu))
    return tuple(operators)


def _last_reads(calls: Sequence[Call]) -> dict[int, int]:
    """For each storage the last call that reads it."""
    found: dict[int, int] = {}
    for position, call in enumerate(calls):
        reads = [t for kernel in call.kernels for t in kernel.reads]
        for tensor in (*call.inputs, *reads):
            found[tensor.storage] = position
    return found


def _operator(
    number: int,
    call: Call,
    partner: Call,
    inputs: tuple[Tensor, ...],
    outputs: tuple[Tensor, ...],
    gpu: Gpu,
) -> Operator:
    times = [kernel_s(kernel, gpu) for kernel in call.kernels]
    longest = call.kernels[times.index(max(times))]
    return Operator(
        id=number,
        name=gpu_name(call, gpu),
        phase=call.phase,
        time_s=round(sum(times) * 1e6, 3) * 1e-6,  # a profiler's nanoseconds, and as read back
        inputs=inputs,
        outputs=outputs,
        tensor_parallel=call.phase != "optimizer" and partner.name.startswith(TP_OPS),
        module=partner.module,
        flops=round(sum(kernel.work.flops for kernel in call.kernels)),
        bytes=round(sum(kernel.work.bytes for kernel in call.kernels)),
        dtype=longest.work.dtype,
        saved_bytes=call.saved_bytes or None,
        provenance="roofline",
    )


def _backward_tensors(call: Call) -> tuple[tuple[Tensor, ...], list[Tensor]]:
    """What a node's kernels read that they did not make, and what they made.

    A memory counts once, as it was first read or last written.
    """
    inputs: dict[int, Tensor] = {}
    made: dict[int, Tensor] = {}
    for kernel in call.kernels:
        for tensor in kernel.reads:
            if tensor.storage not in made:
                inputs.setdefault(tensor.storage, tensor)
        for tensor in kernel.writes:
            made[tensor.storage] = tensor
    return tuple(inputs.values()), list(made.values())


def _as_gradient(tensor: Tensor, gradients: Mapping[int, Tensor]) -> Tensor:
    """A weight's gradient under the one name that the optimizer gives it."""
    known = gradients.get(tensor.storage)
    return known if known is not None and known.numel == tensor.numel else tensor


def _as_incoming(tensor: Tensor) -> Tensor:
    return replace(tensor, kind="grad_output")

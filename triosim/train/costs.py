"""How long one operator takes in a training step, and what its launch costs the CPU."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from statistics import NormalDist

from triosim.compile import LaunchCosts
from triosim.hardware import Gpu, Work, predict_s
from triosim.hardware.kinds import MATRIX_KINDS
from triosim.hardware.stacks import Stack
from triosim.train.plan import Plan
from triosim.workload import Op

# A value is read for its scale, read again and written in one byte; compiled, the scale is found
# where the value is made. Row-wise scaling needs a copy along rows and one along columns.
_CAST_BYTES, _COMPILED_CAST_BYTES = 2 + 2 + 1, 2 + 1
# Tensor cores take rows of 16 bytes: other 16-bit products run at a part of the rate. Fitted: on
# one rank, with a vocabulary of 50,257, vTrain's head reaches 85 TFLOP/s; divided, and padded, 230.
_ALIGNED, _UNALIGNED = 8, 0.37
_SCALED_NAMES = ("aten::linear", "aten::addmm", "aten::_grouped_mm")


@dataclass(frozen=True, eq=False)
class Costs:
    """Seconds on one GPU under one stack.

    A kernel takes its roofline time over the share that the stack reaches of it; products and
    attention also feel the clock that the GPU's power limit leaves.
    """

    gpu: Gpu
    stack: Stack
    precision: str
    compiled: bool
    cuda_graphs: bool
    ranks: int = 1
    padded: bool = False

    @classmethod
    def of(cls, plan: Plan) -> Costs:
        scenario = plan.scenario
        return cls(
            gpu=plan.gpu,
            stack=plan.stack,
            precision=scenario.precision,
            compiled=scenario.compiled,
            cuda_graphs=scenario.cuda_graphs,
            ranks=scenario.gpus,
            padded=plan.layout.tp > 1,  # a vocabulary that is divided is padded
        )

    def kernel_s(self, work: Work, *, backward: bool = False) -> float:
        """One kernel; never faster than its FLOPs at the peak or its bytes at full bandwidth."""
        stack, clock = self.stack, self.stack.clock_of(self.gpu.name)
        if work.kind in MATRIX_KINDS:
            share = stack.gemm.value * clock
        elif work.kind == "attention":
            share = stack.attention.value * clock
            share *= stack.attention_backward.value if backward else 1.0
        else:
            share = stack.memory.value
        return predict_s(self.gpu, work) / share

    def op_s(self, op: Op, chunks: int = 1) -> float:
        """A kernel of a block, or one of `chunks` equal parts of its tokens."""
        work = op.work
        scaled = self.scaled(op)
        if scaled:
            work = replace(work, dtype="fp8", bytes=work.bytes / 2)
        if chunks > 1:
            work = _part(work, op.part, chunks)
        seconds = self.kernel_s(work, backward=op.phase == "backward")
        if not (scaled or self.padded) and _unaligned(work):
            seconds /= _UNALIGNED
        if scaled and self.precision == "fp8-rowwise":
            seconds /= self.stack.fp8_rowwise.value
        return seconds

    def scaled(self, op: Op) -> bool:
        """Whether a product runs in fp8: those of layers, not the head (torchtitan's filter)."""
        if not self.precision.startswith("fp8") or op.kind != "gemm" or op.part == "bias":
            return False
        return op.origin in _SCALED_NAMES and op.split in ("column", "row", "expert", "replicated")

    def cast_s(self, op: Op) -> float:
        """Turning a scaled product's new operands into fp8: input and weight, then the gradient."""
        operands = op.kernel.reads[-2:]
        if op.phase == "backward":
            operands = operands[:1] if op.part == "wgrad" else ()
        elif self.stack.fp8_gather and self.precision == "fp8-tensorwise":
            operands = operands[:1]  # weights were turned before they were gathered
        elements = sum(v.numel for v in operands)
        if not elements:
            return 0.0
        copies = 2 if self.precision == "fp8-rowwise" else 1
        each = _COMPILED_CAST_BYTES if self.compiled else _CAST_BYTES
        size = copies * each * elements
        return self.kernel_s(Work(kind="elementwise", flops=elements, bytes=size, dtype="bf16"))

    def moved_s(self, size_bytes: float) -> float:
        """A copy within the GPU's memory: each byte is read and written."""
        work = Work(kind="copy", flops=0, bytes=2 * size_bytes, dtype="bf16")
        return self.kernel_s(work) if size_bytes else 0.0

    @property
    def launch_s(self) -> float:
        stack = self.stack
        launch_us = stack.compiled_launch_us if self.compiled else stack.launch_us
        return launch_us.value * self._slower_cpu * 1e-6

    @cached_property
    def _slower_cpu(self) -> float:
        """What the slowest of all ranks' CPUs takes over what stacks.toml says, which is for a core
        of another server and a mean; times are normal."""
        spread = self.stack.cpu_jitter.value
        # Blom's approximation of the largest of n standard normal values.
        share = (self.ranks - 0.375) / (self.ranks + 0.25)
        slowest = max(1.0, 1 + spread * NormalDist().inv_cdf(share)) if spread else 1.0
        return slowest / self.gpu.host_speed

    @property
    def layer_s(self) -> float:
        """What the CPU does in an eager pass of a layer beside launching its kernels."""
        return 0.0 if self.compiled else self.stack.layer_calls.value * self.launch_s

    @property
    def collective_s(self) -> float:
        return self.stack.collective_us.value * self._slower_cpu * 1e-6

    @property
    def resume_s(self) -> float:
        """What the CPU does at a graph break and to call the next graph."""
        costs = LaunchCosts()
        return (costs.break_s + costs.guard_s) * self._slower_cpu

    @property
    def graph_s(self) -> float:
        return self.stack.graph_us.value / self.gpu.host_speed * 1e-6


def _unaligned(work: Work) -> bool:
    sixteen = work.kind == "gemm" and work.dtype in ("bf16", "fp16")
    return sixteen and work.shape is not None and any(n % _ALIGNED for n in work.shape)


def _part(work: Work, part: str, chunks: int) -> Work:
    """One of equal parts of a product's tokens: rows of its result, or of a sum for weights."""
    shape = work.shape
    if shape is not None:
        m, n, k = shape
        rows, inner = (1, chunks) if part == "wgrad" else (chunks, 1)
        shape = (max(1, m // rows), n, max(1, k // inner))
    return replace(work, flops=work.flops / chunks, bytes=work.bytes / chunks, shape=shape)

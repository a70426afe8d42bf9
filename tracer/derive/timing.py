"""How long one kernel takes on the GPU that is meant."""

from __future__ import annotations

from tracer.derive.record import Kernel
from triosim.hardware import Gpu, predict_s
from triosim.trace import Operator
from triosim.trace.cost import work_of

# What the library does for these depends on shapes (cuDNN changes layouts, statistics take a pass
# of their own) in ways that the fits know; they count it from the tensors.
_BY_TENSORS = ("conv", "norm", "pool")


def kernel_s(kernel: Kernel, gpu: Gpu) -> float:
    """Seconds that a kernel takes, or the kernels that the library runs for it."""
    work = kernel.work
    if work.kind in _BY_TENSORS:
        dtype = "fp32" if work.dtype == "tf32" else work.dtype
        operator = Operator(
            id=0, name=kernel.name, phase="forward", time_s=0.0, inputs=kernel.reads,
            outputs=kernel.writes, dtype=dtype,
        )  # fmt: skip
        work = work_of(operator) or work
    return predict_s(gpu, work)

"""Names that differ between the CPU, whose operators are run, and the GPU that is meant."""

from __future__ import annotations

from tracer.derive.record import Call
from triosim.hardware import Gpu

_CPU_FLASH = "ScaledDotProductFlashAttentionForCpuBackward"
_BATCH_NORM = "NativeBatchNormBackward"


def gpu_name(call: Call, gpu: Gpu) -> str:
    """The operator's name on the GPU.

    Batch norms run in cuDNN or MIOpen; flash attention takes neither float32 nor a mask, for which
    PyTorch has its memory-efficient kernel.
    """
    if gpu.generation.endswith("cpu"):
        return call.name
    if _CPU_FLASH in call.name:
        masked = any(t.kind == "attn_mask" for kernel in call.kernels for t in kernel.reads)
        half = call.kernels[0].work.dtype in ("fp16", "bf16")
        kernel = "Flash" if half and not masked else "Efficient"
        return call.name.replace(_CPU_FLASH, f"ScaledDotProduct{kernel}AttentionBackward")
    vendor = "Miopen" if gpu.generation.startswith("cdna") else "Cudnn"
    return call.name.replace(_BATCH_NORM, f"{vendor}BatchNormBackward")

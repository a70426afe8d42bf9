"""One GPU as its data sheet gives it, and what its generation achieves of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DTYPES = ("fp32", "tf32", "fp16", "bf16", "fp8")
_SPELLINGS: Mapping[str, str] = {
    "float": "fp32", "float32": "fp32", "half": "fp16", "float16": "fp16", "bfloat16": "bf16",
    "float8": "fp8", "float8_e4m3fn": "fp8", "float8_e5m2": "fp8", "float8_e4m3fnuz": "fp8",
    "float8_e5m2fnuz": "fp8",
}  # fmt: skip
# What computes a type that the chip has no unit for: without FP8 the values are widened, without
# bfloat16 units (V100, T4) PyTorch computes in float32, without TF32 the option does nothing.
_WIDENED: Mapping[str, tuple[str, ...]] = {"fp8": ("bf16", "fp16")}


def canonical_dtype(dtype: str) -> str:
    """torch.bfloat16 and bfloat16 become bf16; whatever is no known float computes as fp32."""
    name = dtype.lower().removeprefix("torch.").removeprefix("c10::")
    name = _SPELLINGS.get(name, name)
    return name if name in DTYPES else "fp32"


@dataclass(frozen=True, kw_only=True, slots=True)
class MatmulFit:
    """How a generation's matrix products of one type fall short of the peak.

    An (m, n, k) product is cut into tiles that the processors work off in waves. Each tile costs as
    much as `ramp_k` further steps of k to begin and end; a tile of m x n keeps the units busy a
    share s / (s + small_tile) of the time, with s = mn / (m + n) multiply-adds per element loaded.
    `efficiency` is what is left of the peak beyond that, `overhead_s` a kernel's fixed time.
    """

    efficiency: float
    ramp_k: float
    small_tile: float
    overhead_s: float


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One device: data-sheet rates (dense, without sparsity) and fitted efficiencies.

    `peak_flops` maps a type of `DTYPES` to FLOP/s; `link_bytes_per_s` is one direction over all
    links to other GPUs; `processors` are its SMs or compute units. `host_speed` is that of one core
    of the servers it came in, in cores of the Xeon of 2023 whose time stacks.toml gives.
    `launch_s` is the fixed time of a kernel on the GPU, other than matrix products. `efficiency`
    maps a kind of work to what is achieved of the rate that limits it (of the memory bandwidth,
    except for "attention"); "memory" is the memory side of matrix products, whose compute side
    `matmul` describes by type (convolutions by kind instead; "default" is for what is not named).
    `sources` says where each field is from.
    """

    name: str
    aliases: tuple[str, ...]
    generation: str
    peak_flops: Mapping[str, float]
    memory_bytes: int
    memory_bytes_per_s: float
    link_bytes_per_s: float
    power_w: float
    processors: int
    host_speed: float
    launch_s: float
    efficiency: Mapping[str, float]
    matmul: Mapping[str, MatmulFit]
    sources: Mapping[str, str]

    def computes_in(self, dtype: str) -> str:
        """The type of `peak_flops` that a type is computed in on this chip."""
        name = canonical_dtype(dtype)
        for candidate in (name, *_WIDENED.get(name, ())):
            if candidate in self.peak_flops:
                return candidate
        return "fp32"

    def peak(self, dtype: str) -> float:
        """FLOP/s of a type."""
        return self.peak_flops[self.computes_in(dtype)]

    def fit(self, kind: str, dtype: str) -> MatmulFit:
        """How convolutions of a kind, or matrix products of a type, run."""
        name = kind if kind != "gemm" else self.computes_in(dtype)
        return self.matmul[name] if name in self.matmul else self.matmul["default"]

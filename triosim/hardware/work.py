"""What one operator asks of a GPU: floating-point operations and bytes, of one kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil

from triosim.errors import ConfigError
from triosim.hardware.kinds import KINDS, MATRIX_KINDS


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """The work of one operator.

    `flops` counts a multiply-add as two; `bytes` pass between memory and the chip at least once.
    `shape` is (m, n, k) of a matrix product or of a convolution's implicit one; `flops` above 2mnk
    means that many products side by side. `dtype` is the type that the arithmetic runs in, which
    for float32 convolutions is usually "tf32". An operator that runs several kernels one after the
    other has `parts`, whose times add up; it then counts their flops, bytes and kernels together.
    A view runs no kernel and costs nothing.
    """

    kind: str
    flops: float
    bytes: float
    dtype: str
    shape: tuple[int, int, int] | None = None
    kernels: int = 1
    parts: tuple[Work, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ConfigError("kind", self.kind, f"must be {', '.join(KINDS[:-1])} or {KINDS[-1]}")
        for name in ("flops", "bytes", "kernels"):
            if not getattr(self, name) >= 0:
                raise ConfigError(name, getattr(self, name), "must be at least 0")
        if self.shape is not None and min(self.shape) < 1:
            raise ConfigError("shape", self.shape, "must be three numbers from 1")

    @classmethod
    def of(cls, kind: str, parts: Sequence[Work]) -> Work:
        """One operator of several kernels."""
        return cls(
            kind=kind,
            flops=sum(part.flops for part in parts),
            bytes=sum(part.bytes for part in parts),
            dtype=parts[0].dtype if parts else "fp32",
            kernels=sum(part.kernels for part in parts),
            parts=tuple(parts),
        )

    def shard(self, ways: int) -> Work:
        """The largest part where `ways` ranks split the work.

        A product of known shape is split by columns (n): every rank reads the m x k operand whole,
        so it moves more than 1/ways of the bytes, and where `ways` does not divide n the slowest
        rank has one column more.
        """
        if self.parts:
            return Work.of(self.kind, [part.shard(ways) for part in self.parts])
        if self.shape is None or self.kind not in MATRIX_KINDS:
            return replace(self, flops=self.flops / ways, bytes=self.bytes / ways)
        m, n, k = self.shape
        columns = ceil(n / ways)
        share = columns / n
        whole = self.bytes * m * k / (m * k + k * n + m * n)
        return replace(
            self,
            flops=self.flops * share,
            bytes=whole + (self.bytes - whole) * share,
            shape=(m, columns, k),
        )

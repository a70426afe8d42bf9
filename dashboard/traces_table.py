"""A trace as tables: its operators with what they compute and move, and its tensors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import pandas as pd

from triosim import Trace
from triosim.hardware import kind_of
from triosim.trace.memory import find_memory
from triosim.trace.scale import works_of
from triosim.trace.sizes import compute_dtype

COLUMNS = (
    "number", "name", "phase", "module", "kind", "time_ms", "share", "flops_per_s",
    "bytes_per_s", "flops", "bytes", "dtype", "provenance",
)  # fmt: skip


@lru_cache(maxsize=16)
def operators_of(trace: Trace) -> pd.DataFrame:
    """One row for each operator, in order; NaN where unknown. Read it, never change it.

    Floating-point operations and bytes are the trace's own columns, else by the tensors' shapes.
    """
    works = works_of(trace)
    frame = pd.DataFrame(
        {
            "number": range(1, len(trace.operators) + 1),
            "name": [op.name for op in trace.operators],
            "phase": [op.phase for op in trace.operators],
            "module": [op.module for op in trace.operators],
            "kind": [kind_of(op.name) for op in trace.operators],
            "time_ms": [op.time_s * 1e3 for op in trace.operators],
            "flops": _known([op.flops for op in trace.operators], works, "flops"),
            "bytes": _known([op.bytes for op in trace.operators], works, "bytes"),
            "dtype": [
                compute_dtype(op) if work is None else work.dtype
                for op, work in zip(trace.operators, works, strict=True)
            ],
            "provenance": [op.provenance for op in trace.operators],
        }
    )
    total_ms = frame["time_ms"].sum()
    timed = frame["time_ms"].where(frame["time_ms"] > 0)
    frame["share"] = frame["time_ms"] / total_ms * 100 if total_ms else 0.0
    frame["flops_per_s"] = frame["flops"] / timed * 1e3
    frame["bytes_per_s"] = frame["bytes"] / timed * 1e3
    return frame[list(COLUMNS)]


def _known(own: Sequence[float | None], works: Sequence[object], what: str) -> pd.Series:
    """The trace's figure, else the one by shapes; none is as good as unknown."""
    values = [
        number if number is not None else getattr(work, what, None)
        for number, work in zip(own, works, strict=True)
    ]
    series = pd.Series(values, dtype="float64")
    return series.where(series > 0)


def chosen(
    operators: pd.DataFrame, phases: Sequence[str], kinds: Sequence[str], text: str
) -> pd.DataFrame:
    """The operators of some phases and kinds (none: all) with a text in name or module."""
    keep = pd.Series(True, index=operators.index)
    if phases:
        keep &= operators["phase"].isin(phases)
    if kinds:
        keep &= operators["kind"].isin(kinds)
    if text:
        wanted = text.casefold()
        keep &= operators["name"].str.casefold().str.contains(wanted, regex=False) | (
            operators["module"].str.casefold().str.contains(wanted, regex=False)
        )
    return operators[keep]


@lru_cache(maxsize=16)
def tensors_of(trace: Trace) -> pd.DataFrame:
    """One row for each tensor, in the order of first use, with the memory that it is in."""
    memory = find_memory(trace)
    role = {t.id: str(b.role) for b in memory.buffers for t in b.tensors}
    rows: dict[tuple[int, int], dict[str, object]] = {}
    for i, op in enumerate(trace.operators, 1):
        for tensor in (*op.inputs, *op.outputs):
            row = rows.setdefault(
                (tensor.id, tensor.numel),
                {
                    "tensor": tensor.id,
                    "shape": " x ".join(map(str, tensor.shape)) or "scalar",
                    "bytes": tensor.bytes,
                    "element_bytes": tensor.element_bytes,
                    "role": role.get(tensor.id, ""),
                    "first_use": i,
                    "first": op.name,
                },
            )
            row["last_use"], row["last"] = i, op.name
    columns = ("tensor", "shape", "bytes", "element_bytes", "role", "first_use", "first",
               "last_use", "last")  # fmt: skip
    return pd.DataFrame(list(rows.values()), columns=list(columns))

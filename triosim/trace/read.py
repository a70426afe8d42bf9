"""Read the two-file format: trace.csv (operators), tensor.csv (tensors), optional meta.json.

Columns are found by name, in any order; unknown ones are ignored. Anything that could change a
result is an error naming file, line, column and value; anything that cannot is a warning.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from triosim.errors import TraceFormatError, counted
from triosim.trace.digest import Stamp, trace_stamp
from triosim.trace.model import PHASES, PROVENANCES, Operator, Tensor, Trace
from triosim.trace.table import Row, read_rows

TIME = "Operator_cudatimenooverlap"
TIME_WITH_OVERLAP = "Operator_cudatime"
OPERATOR_COLUMNS = (
    "OperatorID",
    "OperatorName",
    "Operator_input",
    "Operator_output",
    TIME,
    "stage",
)
TENSOR_COLUMNS = ("TensorID", "TensorNumElement", "TensorEachByte", "TensorStorgeid")
TensorTable = Mapping[int, Mapping[int, Tensor]]


def load_trace(folder: str | Path) -> Trace:
    """`read_trace`, kept while the files do not change."""
    folder = Path(folder)
    return _load(str(folder), trace_stamp(folder))


@lru_cache(maxsize=32)
def _load(folder: str, stamp: Stamp) -> Trace:
    return read_trace(folder)


def read_trace(folder: str | Path) -> Trace:
    """Read a trace folder.

    Raises `TraceFormatError` for anything that cannot be read as a trace.
    """
    folder = Path(folder)
    if not os.path.isdir(folder):  # Path.is_dir raises where the name is too long
        raise TraceFormatError(
            f"{folder}: no such folder; it should hold trace.csv and tensor.csv."
        )
    warnings: list[str] = []
    meta = _read_meta(folder / "meta.json")
    rows = _read_operator_rows(folder / "trace.csv", warnings)
    tensors = _read_tensors(folder / "tensor.csv")
    default = _provenance(meta)
    operators = [_operator(row, tensors, warnings, default) for row in rows]
    batch_size = _batch_size(operators, meta, warnings)
    return Trace(
        name=str(meta.get("name", folder.resolve().name)),
        operators=tuple(operators),
        batch_size=batch_size,
        meta=meta,
        warnings=tuple(warnings),
    )


def _read_meta(path: Path) -> dict[str, Any]:
    try:
        meta = json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        problem = error.strerror or "cannot be read"
        raise TraceFormatError(f"{path.name}: {problem} ({path}).") from None
    except (ValueError, RecursionError) as error:
        raise TraceFormatError(f"{path.name}: not a JSON file ({error}).") from None
    if not isinstance(meta, dict):
        raise TraceFormatError(f"{path.name}: must hold a JSON object, not {type(meta).__name__}.")
    batch = meta.get("batch_size")
    if batch is not None and (isinstance(batch, bool) or not isinstance(batch, int) or batch < 1):
        raise TraceFormatError(f"{path.name}: batch_size is {batch!r}; a whole number from 1.")
    return meta


def _read_tensors(path: Path) -> TensorTable:
    """Tensors by id and number of elements (ids may be reused for another size)."""
    table: dict[int, dict[int, Tensor]] = defaultdict(dict)
    lines: dict[tuple[int, int], int] = {}
    for row in read_rows(path, TENSOR_COLUMNS):
        tensor = Tensor(
            id=row.integer("TensorID"),
            storage=row.integer("TensorStorgeid"),
            shape=_shape(row),
            numel=row.integer("TensorNumElement"),
            element_bytes=row.integer("TensorEachByte"),
            kind=row.text("TensorType"),
        )
        known = table[tensor.id].get(tensor.numel)
        if known and (known.storage, known.element_bytes) != (tensor.storage, tensor.element_bytes):
            raise row.error(
                "TensorID",
                f"line {lines[tensor.id, tensor.numel]} gives this tensor, with as many elements, "
                "another storage or element size",
            )
        lines.setdefault((tensor.id, tensor.numel), row.line)
        # The smallest description wins, so that the order of the rows does not matter.
        if known is None or (tensor.shape, tensor.kind) < (known.shape, known.kind):
            table[tensor.id][tensor.numel] = tensor
    return table


def _shape(row: Row) -> tuple[int, ...]:
    return tuple(row.integers("TensorShape")) if row.text("TensorShape") else ()


def _read_operator_rows(path: Path, warnings: list[str]) -> list[Row]:
    rows = list(read_rows(path, OPERATOR_COLUMNS))
    if not rows:
        raise TraceFormatError(f"{path.name}: it has a header and no operators.")
    _check_ids(rows, warnings)
    _check_gpu(rows)
    return rows


def _check_ids(rows: Sequence[Row], warnings: list[str]) -> None:
    lines: dict[int, int] = {}
    for row in rows:
        number = row.integer("OperatorID")
        if number in lines:
            warnings.append(
                f"{row.file}, lines {lines[number]} and {row.line}: OperatorID {number} stands "
                "twice; both operators count."
            )
        lines.setdefault(number, row.line)


def _check_gpu(rows: Sequence[Row]) -> None:
    placed = [row for row in rows if row.text("gpuid")]
    for row in placed:
        if row.text("gpuid") != placed[0].text("gpuid"):
            raise row.error(
                "gpuid", f"line {placed[0].line} is on another GPU and a trace is one GPU's"
            )


def _provenance(meta: Mapping[str, Any]) -> str:
    """Where times come from that no column tells of."""
    provenance = meta.get("provenance", "measured")
    if provenance not in PROVENANCES:
        raise TraceFormatError(
            f"meta.json: provenance is {provenance!r}; it must be {' or '.join(PROVENANCES)}."
        )
    return str(provenance)


def _operator(row: Row, tensors: TensorTable, warnings: list[str], provenance: str) -> Operator:
    phase = row.text("stage")
    if phase not in PHASES:
        raise row.error("stage", f"must be {', '.join(PHASES[:-1])} or {PHASES[-1]}")
    flag = row.integer("tpflag") if row.text("tpflag") else None
    if flag not in (None, 0, 1):
        raise row.error("tpflag", "must be 0 or 1")
    has_overlap = bool(row.text(TIME_WITH_OVERLAP))
    return Operator(
        id=row.integer("OperatorID"),
        name=row.text("OperatorName"),
        phase=phase,
        time_s=row.number(TIME) * 1e-6,
        busy_time_s=row.number(TIME_WITH_OVERLAP) * 1e-6 if has_overlap else None,
        inputs=_tensors(row, "Operator_input", "InputSize", tensors, warnings),
        outputs=_tensors(row, "Operator_output", "OutputSize", tensors, warnings),
        tensor_parallel=None if flag is None else bool(flag),
        **_extras(row, provenance),
    )


def _extras(row: Row, default: str) -> dict[str, Any]:
    """The optional columns at the end; empty cells count as absent."""
    provenance = row.text("provenance") or default
    if provenance not in PROVENANCES:
        raise row.error("provenance", f"must be {' or '.join(PROVENANCES)}")
    return {
        "module": row.text("module"),
        "flops": row.number("flops") if row.text("flops") else None,
        "bytes": row.number("bytes") if row.text("bytes") else None,
        "dtype": row.text("dtype"),
        "saved_bytes": row.integer("saved_bytes") if row.text("saved_bytes") else None,
        "provenance": provenance,
    }


def _tensors(
    row: Row, column: str, size_column: str, table: TensorTable, warnings: list[str]
) -> tuple[Tensor, ...]:
    ids = row.integers(column)
    sizes: Sequence[int | None] = row.integers(size_column) if row.text(size_column) else []
    if sizes and len(sizes) != len(ids):
        warnings.append(
            f"{row.file}, line {row.line}: {counted(len(ids), 'tensor')} in {column} but "
            f"{counted(len(sizes), 'size')} in {size_column}; sizes are taken from tensor.csv."
        )
    if len(sizes) != len(ids):
        sizes = [None] * len(ids)
    found = []
    for number, size in zip(ids, sizes, strict=True):
        by_size = table.get(number)
        if by_size is None:
            raise row.error(column, f"tensor {number} is not in tensor.csv")
        tensor = by_size.get(max(by_size) if size is None else size)
        if tensor is None:
            known = ", ".join(str(numel) for numel in sorted(by_size))
            raise row.error(
                size_column, f"tensor {number} has {size} elements here and {known} in tensor.csv"
            )
        found.append(tensor)
    return tuple(found)


def _batch_size(operators: Sequence[Operator], meta: Mapping[str, Any], warnings: list[str]) -> int:
    """meta.json, else the first dimension of the first forward operator's first input."""
    if meta.get("batch_size") is not None:
        return int(meta["batch_size"])
    for op in operators:
        if op.phase == "forward":
            shape = op.inputs[0].shape if op.inputs else ()
            if shape and shape[0] >= 1:
                return shape[0]
            break
    warnings.append("The trace does not show its batch size; it is taken as 1.")
    return 1

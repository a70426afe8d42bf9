"""Write the two-file format so that the original reader still accepts it.

That reader finds columns by position and wants integers as integers, so the columns stand in the
original order; a third file, meta.json, holds what the two have no column for.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from triosim.files import replace_files
from triosim.trace.model import Operator, Tensor, Trace

TRACE_HEADER = (
    "OperatorID", "OperatorName", "Operator_input", "Operator_output", "Operator_cudatime",
    "Operator_cudatimenooverlap", "InputSize", "OutputSize", "gpuid", "stage", "tpflag",
)  # fmt: skip
# Columns at the end, written where an operator has something to say in them.
EXTRA_HEADER = ("module", "flops", "bytes", "dtype", "saved_bytes", "provenance")
TENSOR_HEADER = (
    "Index", "TensorID", "TensorShape", "TensorNumElement", "TensorEachByte", "TensorType",
    "TensorStorgeid", "gpuid",
)  # fmt: skip


def write_trace(trace: Trace, folder: str | Path) -> None:
    """Write trace.csv, tensor.csv and meta.json into `folder`, which is made where absent."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    cells = [_extras(op, str(trace.meta.get("provenance", "measured"))) for op in trace.operators]
    extras = [name for name in EXTRA_HEADER if any(cell[name] != "" for cell in cells)]
    rows = (
        (*row, *(cell[name] for name in extras))
        for row, cell in zip(_operator_rows(trace), cells, strict=True)
    )
    meta = {**trace.meta, "name": trace.name, "batch_size": trace.batch_size}
    replace_files(
        {
            folder / "tensor.csv": _table(TENSOR_HEADER, _tensor_rows(trace)),
            folder / "meta.json": f"{json.dumps(meta, indent=2)}\n".encode(),
            folder / "trace.csv": _table((*TRACE_HEADER, *extras), rows),
        }
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return file.getvalue().encode()


def _extras(op: Operator, provenance: str) -> dict[str, object]:
    """The cells of the optional columns; "" where they say nothing beyond the default."""
    values = {name: getattr(op, name) for name in EXTRA_HEADER}
    values["provenance"] = None if op.provenance == provenance else op.provenance
    return {name: "" if value is None else value for name, value in values.items()}


def _operator_rows(trace: Trace) -> Iterable[Sequence[object]]:
    for op in trace.operators:
        busy_s = op.time_s if op.busy_time_s is None else op.busy_time_s
        yield (
            op.id, _text(op.name), _list(t.id for t in op.inputs), _list(t.id for t in op.outputs),
            _microseconds(busy_s), _microseconds(op.time_s),
            _list(t.numel for t in op.inputs), _list(t.numel for t in op.outputs),
            0, op.phase, int(bool(op.tensor_parallel)),
        )  # fmt: skip


def _tensor_rows(trace: Trace) -> Iterable[Sequence[object]]:
    index = 0
    for op in trace.operators:
        for tensor in (*op.inputs, *op.outputs):
            yield (
                index, tensor.id, _shape(tensor), tensor.numel, tensor.element_bytes,
                _text(tensor.kind), tensor.storage, 0,
            )  # fmt: skip
            index += 1


def _shape(tensor: Tensor) -> str:
    return str(list(tensor.shape))


def _text(text: str) -> str:
    """Python's csv module leaves a carriage return unquoted, and a reader ends the line there."""
    return text.replace("\r", " ")


def _list(items: Iterable[int]) -> str:
    return "[" + "; ".join(str(item) for item in items) + "]"


def _microseconds(seconds: float) -> str:
    """The shortest decimal that reads back as the same time; whole numbers without a point."""
    value = exact = seconds * 1e6
    for digits in range(18):
        value = round(exact, digits)
        if value * 1e-6 == seconds:
            break
    return str(int(value)) if value == int(value) else repr(value)

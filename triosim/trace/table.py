"""CSV rows with their place in the file, so that every complaint can name it."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from triosim.errors import TraceFormatError

MAX_INTEGER = 2**63 - 1
LEGAL = "from 0 to 2^63 - 1"
MAX_FIELD_CHARACTERS = 64 * 2**20  # one optimizer row of a large model lists thousands of tensors


@dataclass(frozen=True, slots=True)
class Row:
    """One record: its fields by column name, and where it stands."""

    file: str
    line: int
    fields: dict[str, str]

    def error(self, column: str, problem: str) -> TraceFormatError:
        value = _shown(self.fields.get(column, ""))
        return TraceFormatError(
            f"{self.file}, line {self.line}, column {column}, value {value}: {problem}."
        )

    def text(self, column: str) -> str:
        return self.fields.get(column, "").strip()

    def number(self, column: str) -> float:
        """A number from 0 to `MAX_INTEGER`."""
        value = _float(self.text(column))
        if not 0 <= value <= MAX_INTEGER:
            raise self.error(column, f"must be a number {LEGAL}")
        return value

    def integer(self, column: str) -> int:
        return self._integer(column, self.text(column))

    def integers(self, column: str) -> list[int]:
        """A list as the tracer writes it: [1; 2; 3]."""
        text = self.text(column)
        if not (text.startswith("[") and text.endswith("]")):
            raise self.error(column, "must be a list such as [4; 6; 8]")
        inner = text[1:-1].strip()
        separator = ";" if ";" in inner else ","
        return [self._integer(column, item.strip()) for item in inner.split(separator) if inner]

    def _integer(self, column: str, text: str) -> int:
        """Whole numbers, also when written as 4.0 or 1.5e3."""
        value: float
        try:
            value = int(text)
        except ValueError:
            value = _float(text)
        if not 0 <= value <= MAX_INTEGER or value != int(value):
            item = "" if text == self.text(column) else f"{_shown(text)} "
            raise self.error(column, f"{item}must be a whole number {LEGAL}")
        return int(value)


def _float(text: str) -> float:
    """NaN where it is no number."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _shown(text: str, limit: int = 60) -> str:
    """The beginning of a text, on one line whatever it holds."""
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")


def read_rows(path: Path, required: Sequence[str]) -> Iterator[Row]:
    """The records of a CSV file, columns found by name; blank lines are passed over."""
    name = path.name
    records = _records(path)
    try:
        line, header = next(records)
    except StopIteration:
        raise TraceFormatError(f"{name}: the file is empty, it has not even a header.") from None
    columns = [column.strip() for column in header]
    for column in required:
        if column not in columns:
            raise TraceFormatError(
                f"{name}, line {line}: column {column} is missing; it has "
                f"{_shown(', '.join(columns), 200)}."
            )
    repeated = {column for column, count in Counter(columns).items() if column and count > 1}
    if repeated:
        raise TraceFormatError(
            f"{name}, line {line}: column {_shown(min(repeated))} appears more than once; "
            "each column has a name of its own."
        )
    for line, values in records:
        if len(values) != len(columns):
            raise TraceFormatError(
                f"{name}, line {line}: {len(values)} of {len(columns)} fields; each line must have "
                "as many as the header."
            )
        yield Row(name, line, dict(zip(columns, values, strict=True)))


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Each record with the line that it begins on."""
    reader = csv.reader(io.StringIO(_decode(path), newline=""), strict=True)
    # One limit for the whole process: lowering it again could stop a reader in another thread.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_FIELD_CHARACTERS))
    line = 1
    try:
        for values in reader:
            if any(value.strip() for value in values):
                yield line, values
            line = reader.line_num + 1
    except csv.Error as error:
        raise TraceFormatError(
            f"{path.name}, line {line}: not CSV ({error}); a quoted field ends with a quote before "
            f"a comma or the end of the line and has at most {MAX_FIELD_CHARACTERS} characters."
        ) from None


def _decode(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        problem = error.strerror or "cannot be read"
        raise TraceFormatError(f"{path.name}: {problem} ({path}).") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TraceFormatError(
            f"{path.name}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8; "
            "save the file as UTF-8."
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise TraceFormatError(
            f"{path.name}, line {line}: holds a NUL character; save it as UTF-8 text."
        )
    return text

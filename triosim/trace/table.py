"""CSV rows with their place in the file, so that every complaint can name it."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from triosim.errors import TraceFormatError

MAX_INTEGER = 2**63 - 1
MAX_FIELD_CHARACTERS = 64 * 2**20  # one optimizer row of a large model lists thousands of tensors


@dataclass(frozen=True, slots=True)
class Row:
    """One record: its fields by column name, and where it stands."""

    file: str
    line: int
    fields: dict[str, str]

    def error(self, column: str, problem: str) -> TraceFormatError:
        value = self.fields.get(column, "")
        shown = value if len(value) <= 60 else value[:57] + "..."
        return TraceFormatError(
            f"{self.file}, line {self.line}, column {column}, value {shown!r}: {problem}."
        )

    def text(self, column: str) -> str:
        return self.fields.get(column, "").strip()

    def number(self, column: str) -> float:
        """A finite number that is not negative."""
        try:
            value = float(self.text(column))
        except ValueError:
            raise self.error(column, "must be a number") from None
        if not math.isfinite(value) or value < 0:
            raise self.error(column, "must be a finite number, 0 or more")
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
        try:
            value = int(text)
        except ValueError:
            try:
                number = float(text)
                value = int(number)
            except (ValueError, OverflowError):
                raise self.error(column, f"{text!r} must be a whole number") from None
            if value != number:
                raise self.error(column, f"{text!r} must be a whole number") from None
        if not 0 <= value <= MAX_INTEGER:
            raise self.error(column, f"{text!r} must lie between 0 and 2^63 - 1")
        return value


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
                f"{', '.join(columns)[:200]}."
            )
    repeated = {column for column in columns if column and columns.count(column) > 1}
    if repeated:
        raise TraceFormatError(
            f"{name}, line {line}: column {min(repeated)} appears more than once."
        )
    for line, values in records:
        if len(values) != len(columns):
            raise TraceFormatError(
                f"{name}, line {line}: {len(values)} of {len(columns)} fields; "
                f"the header names {len(columns)}."
            )
        yield Row(name, line, dict(zip(columns, values, strict=True)))


def _records(path: Path) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(_decode(path), newline=""), strict=True)
    previous = csv.field_size_limit(MAX_FIELD_CHARACTERS)
    try:
        for values in reader:
            if any(value.strip() for value in values):
                yield reader.line_num, values
    except csv.Error as error:
        raise TraceFormatError(f"{path.name}, line {reader.line_num}: not CSV ({error}).") from None
    finally:
        csv.field_size_limit(previous)


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
        raise TraceFormatError(f"{path.name}, line {line}: holds a NUL character; not a text file.")
    return text

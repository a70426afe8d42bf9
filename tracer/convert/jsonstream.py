"""Read a JSON document piece by piece: top-level values, and long arrays item by item.

The standard decoder parses each piece; this module finds where the pieces begin and repairs what
PyTorch writes wrong: it does not escape quotes, backslashes and line breaks in names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tracer.convert.source import Source
from triosim.errors import TraceFormatError

MAX_VALUE_CHARACTERS = 64 * 2**20  # one event or node; an optimizer's lists reach a few MiB
LEAST_ITEM_BYTES = 32  # an event or node with less in it says nothing, and millions take minutes
MAX_REPAIRS = 10_000
MAX_REPAIRED_CHARACTERS = 2**16  # of one item, so that a hostile file cannot make the search slow
_SPACE = re.compile(r"[ \t\r\n]*")
_NAME = re.compile(
    r'"name":\s*"(.*?)"(\s*,\s*"(?:pid|ctrl_deps|id|rf_id|tid|ph|cat|ts|parent)"\s*:)', re.DOTALL
)
_NEXT_ITEM = re.compile(r"\}\s*(?:,\s*(?=\{)|(?=\]))")
_CONTROL = "control characters in text were accepted"
_ESCAPE = "wrong escapes in text were repaired"
_QUOTE = "names with unescaped quotes were repaired"


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a streamed array, or one value of the top level (`index` is then None)."""

    key: str
    index: int | None
    value: object


class Reader:
    """The text from `_at` on; text that has been passed is forgotten."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._chunks = source.text()
        self._text = ""
        self._at = 0
        self._lines = 1  # the line of the file on which `_text` begins
        self._ended = False
        self._strict = json.JSONDecoder()
        self._lenient = json.JSONDecoder(strict=False)

    def items(self, arrays: frozenset[str]) -> Iterator[Item]:
        """Each top-level value; those of `arrays` item by item. A bare list has the key ""."""
        first = self._peek()
        if first == "[":
            yield from self._array("")
        elif first == "{":
            yield from self._object(arrays)
        else:
            raise self._error("not a JSON object or list")
        if self._peek():
            raise self._error("more text follows after the end of the document")

    def _object(self, arrays: frozenset[str]) -> Iterator[Item]:
        self._at += 1
        while self._peek() != "}":
            key = self._value("a key")
            if not isinstance(key, str):
                raise self._error("a key that is not text")
            self._expect(":")
            if key in arrays and self._peek() == "[":
                yield Item(key, None, [])
                yield from self._array(key)
            else:
                yield Item(key, None, self._value(key))
            self._separator("}")
        self._at += 1

    def _array(self, key: str) -> Iterator[Item]:
        self._at += 1
        index = 0
        where = key or "the list"
        most = self.source.max_bytes // LEAST_ITEM_BYTES + 1
        while self._peek() != "]":
            if index >= most:
                raise self._error(f"{where} has more than {most:,} entries; record fewer steps")
            yield Item(key, index, self._value(f"{where}[{index}]"))
            index += 1
            self._separator("]")
        self._at += 1

    def _separator(self, end: str) -> None:
        found = self._peek()
        if found == ",":
            self._at += 1
            if self._peek() == end:
                self.source.repairs["commas after the last item were ignored"] += 1
        elif found != end:
            raise self._error(f"',' or '{end}' expected")

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise self._error(f"'{character}' expected")
        self._at += 1

    def _peek(self) -> str:
        """The next character that is no space; "" at the end of the file."""
        while True:
            if self._at < len(self._text) and self._text[self._at] > " ":
                return self._text[self._at]
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._fill():
                return ""

    def _fill(self) -> bool:
        """Read one more chunk; False at the end of the file."""
        chunk = next(self._chunks, None)
        if chunk is None:
            self._ended = True
            return False
        if len(self._text) - self._at + len(chunk) > MAX_VALUE_CHARACTERS:
            raise self._error(f"one value has more than {MAX_VALUE_CHARACTERS} characters")
        self._lines += self._text.count("\n", 0, self._at)
        self._text = self._text[self._at :] + chunk
        self._at = 0
        return True

    def _more(self) -> bool:
        """Read as much again as is waiting, so that long values are not tried too often."""
        target = 2 * (len(self._text) - self._at)
        found = self._fill()
        while found and len(self._text) - self._at < target and self._fill():
            pass
        return found

    def _value(self, what: str) -> object:
        self._peek()
        repairs = 0
        while True:
            try:
                value, end = self._strict.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                if self._incomplete(error) and self._more():
                    continue
                if error.msg.startswith("Invalid control character"):
                    return self._leniently(what, error)
                repairs += 1
                if repairs <= MAX_REPAIRS and self._repair(error):
                    continue
                raise self._error(f"{what} is not JSON ({error.msg})", error.pos) from None
            except RecursionError:
                raise self._error(f"{what} is nested too deeply") from None
            except ValueError as error:  # a whole number of more digits than Python converts
                raise self._error(f"{what} cannot be read ({error})") from None
            # A number could go on in the next chunk.
            if end == len(self._text) and not self._ended:
                self._fill()
                continue
            self._at = end
            return value

    def _incomplete(self, error: json.JSONDecodeError) -> bool:
        return error.msg.startswith("Unterminated string") or error.pos > len(self._text) - 16

    def _leniently(self, what: str, error: json.JSONDecodeError) -> object:
        """Line breaks and tabs inside text; a quote that was not escaped can look the same."""
        while True:
            try:
                value, end = self._lenient.raw_decode(self._text, self._at)
            except json.JSONDecodeError as again:
                if self._incomplete(again) and self._more():
                    continue
                if self._repair(again):
                    continue
                raise self._error(f"{what} is not JSON ({error.msg})", error.pos) from None
            except RecursionError:
                raise self._error(f"{what} is nested too deeply") from None
            except ValueError as wrong:
                raise self._error(f"{what} cannot be read ({wrong})") from None
            self._at = end
            self.source.repairs[_CONTROL] += 1
            return value

    def _repair(self, error: json.JSONDecodeError) -> bool:
        """Change the text so that the value may be read; False where nothing is known to help."""
        if sum(self.source.repairs.values()) > MAX_REPAIRS:
            return False
        if error.msg.startswith("Invalid \\"):
            # The decoder points at the escape or behind it, depending on its kind.
            at = self._text.rfind("\\", self._at, error.pos + 1)
            if at < 0:
                return False
            self._text = self._text[:at] + "\\" + self._text[at:]
            self.source.repairs[_ESCAPE] += 1
            return True
        return self._repair_name()

    def _repair_name(self) -> bool:
        while (
            (end := _NEXT_ITEM.search(self._text, self._at)) is None
            and len(self._text) - self._at < MAX_REPAIRED_CHARACTERS
            and self._fill()
        ):
            pass
        stop = min(end.start() if end else len(self._text), self._at + MAX_REPAIRED_CHARACTERS)
        begin = self._text.find('"name"', self._at, stop)
        match = _NAME.match(self._text, begin, stop) if begin >= 0 else None
        if match is None:
            return False
        name = match.group(1)
        fixed = json.dumps(re.sub(r'\\(["\\])', r"\1", name))
        if fixed == f'"{name}"':
            return False
        self._text = f'{self._text[: match.start()]}"name": {fixed}{self._text[match.start(2) :]}'
        self.source.repairs[_QUOTE] += 1
        return True

    def _error(self, problem: str, at: int | None = None) -> TraceFormatError:
        at = self._at if at is None else at
        line = self._lines + self._text.count("\n", 0, at)
        cut = self._ended and at >= len(self._text.rstrip())
        column = at - self._text.rfind("\n", 0, at)
        place = f"{self.source.name}, line {line}, character {column}"
        if cut or (self._ended and "Unterminated" in problem):
            return TraceFormatError(f"{place}: the file is cut off here ({problem}).")
        return TraceFormatError(f"{place}: {problem}.")

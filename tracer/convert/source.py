"""Open a trace file: from a path or from bytes, gzip or plain, as chunks of text.

Nothing is held that has been handed on, and what a file may unpack to is limited, so that a small
upload cannot fill the memory.
"""

from __future__ import annotations

import codecs
import io
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from triosim.errors import TraceFormatError

Data = str | Path | bytes
MAX_BYTES = 4 * 2**30  # decompressed; the largest real file known to us has 2.1 GB
CHUNK_BYTES = 2**20
GZIP = b"\x1f\x8b"
ENCODINGS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(kw_only=True)
class Source:
    """One file: its name for messages, its text, and what had to be repaired to read it."""

    name: str
    data: Data
    max_bytes: int = MAX_BYTES
    repairs: Counter[str] = field(default_factory=Counter)

    def text(self) -> Iterator[str]:
        """The decoded text in chunks; what is not in the file's encoding becomes U+FFFD."""
        decoder: codecs.IncrementalDecoder | None = None
        for raw in self._bytes():
            if decoder is None:
                decoder = codecs.getincrementaldecoder(_encoding(raw))(errors="replace")
            yield self._counted(decoder.decode(raw))
        if decoder is None:
            raise TraceFormatError(f"{self.name}: the file is empty.")
        yield self._counted(decoder.decode(b"", final=True))

    def _counted(self, text: str) -> str:
        lost = text.count("\ufffd")
        if lost:
            self.repairs["characters that are not in the file's encoding were replaced"] += lost
        return text

    def _bytes(self) -> Iterator[bytes]:
        with self._open() as file:
            head = file.read(4)
            file.seek(0)
            if head.startswith(b"PK\x03\x04"):
                raise TraceFormatError(
                    f"{self.name}: a zip archive; unpack it and give the JSON file inside."
                )
            chunks = self._unpacked(file) if head.startswith(GZIP) else _plain(file)
            total = 0
            for chunk in chunks:
                total += len(chunk)
                if total > self.max_bytes:
                    raise TraceFormatError(
                        f"{self.name}: more than {self.max_bytes} bytes when unpacked; record "
                        "fewer steps, or without stacks."
                    )
                yield chunk

    def _open(self) -> BinaryIO:
        if isinstance(self.data, bytes):
            return io.BytesIO(self.data)
        try:
            return Path(self.data).open("rb")
        except (OSError, ValueError) as error:
            problem = getattr(error, "strerror", None) or "cannot be opened"
            raise TraceFormatError(f"{self.name}: {problem}.") from None

    def _unpacked(self, file: BinaryIO) -> Iterator[bytes]:
        """gzip members one after the other, at most CHUNK_BYTES of their content at a time."""
        total = 0
        member = zlib.decompressobj(wbits=31)
        data = b""
        while True:
            data = data or file.read(CHUNK_BYTES)
            if not data:
                break
            if member.eof:
                if not data.strip(b"\0"):  # padding after the last member
                    return
                member = zlib.decompressobj(wbits=31)
            try:
                chunk = member.decompress(data, CHUNK_BYTES)
            except zlib.error as error:
                raise TraceFormatError(
                    f"{self.name}: damaged gzip data after {total} unpacked bytes ({error})."
                ) from None
            data = member.unused_data if member.eof else member.unconsumed_tail
            total += len(chunk)
            if chunk:
                yield chunk
        if not member.eof:
            raise TraceFormatError(
                f"{self.name}: the gzip data is cut off after {total} unpacked bytes."
            )


def _plain(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(CHUNK_BYTES):
        yield chunk


def _encoding(head: bytes) -> str:
    return next((name for mark, name in ENCODINGS if head.startswith(mark)), "utf-8")


def name_of(data: Data, default: str) -> str:
    """The file name to use in messages."""
    return default if isinstance(data, bytes) else Path(data).name or str(data)

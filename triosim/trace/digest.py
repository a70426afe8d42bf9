"""What a trace folder holds, as a stamp (quick) and a digest: files change under their names."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from triosim.errors import TraceFormatError

FILES = ("trace.csv", "tensor.csv", "meta.json")
ABSENT = (0, 0)
Stamp = tuple[tuple[int, int], ...]


def trace_stamp(folder: str | Path) -> Stamp:
    """Changes whenever a file of the trace does: when each was written, and its size."""
    stamps = []
    for name in FILES:
        try:
            status = (Path(folder) / name).stat()
        except (OSError, ValueError):
            stamps.append(ABSENT)
        else:
            stamps.append((status.st_mtime_ns, status.st_size))
    return tuple(stamps)


def trace_digest(folder: str | Path) -> str:
    """SHA-256 of the files of a trace, in hexadecimal.

    Raises `TraceFormatError` where they cannot be read.
    """
    return _digest(str(folder), trace_stamp(folder))


@lru_cache(maxsize=64)
def _digest(folder: str, stamps: Stamp) -> str:
    whole = sha256()
    for name, stamp in zip(FILES, stamps, strict=True):
        if stamp == ABSENT:
            continue
        try:
            content = (Path(folder) / name).read_bytes()
        except OSError as error:
            problem = error.strerror or "cannot be read"
            raise TraceFormatError(f"{folder}/{name}: {problem}.") from None
        whole.update(f"{name} {len(content)}\n".encode())
        whole.update(content)
    return whole.hexdigest()

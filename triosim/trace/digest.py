"""What a trace folder holds, as one number: folders move and files change under their names."""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from triosim.errors import TraceFormatError

FILES = ("trace.csv", "tensor.csv", "meta.json")


def trace_digest(folder: str | Path) -> str:
    """SHA-256 of the files of a trace, in hexadecimal.

    Raises `TraceFormatError` where they cannot be read.
    """
    folder = Path(folder)
    stamps = []
    for name in FILES:
        try:
            status = (folder / name).stat()
        except (OSError, ValueError):
            stamps.append((0, 0))
        else:
            stamps.append((status.st_mtime_ns, status.st_size))
    return _digest(str(folder), tuple(stamps))


@lru_cache(maxsize=64)
def _digest(folder: str, stamps: tuple[tuple[int, int], ...]) -> str:
    whole = sha256()
    for name, stamp in zip(FILES, stamps, strict=True):
        if stamp == (0, 0):
            continue
        try:
            content = (Path(folder) / name).read_bytes()
        except OSError as error:
            problem = error.strerror or "cannot be read"
            raise TraceFormatError(f"{folder}/{name}: {problem}.") from None
        whole.update(f"{name} {len(content)}\n".encode())
        whole.update(content)
    return whole.hexdigest()

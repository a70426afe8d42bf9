"""Memory that is free again goes back to the system, as a server that stays up for long needs.

A C library's own choice is speed: glibc keeps a heap for each of up to eight threads per processor
(and a page's script runs in a new thread each time), and freed blocks of up to 32 MiB for later.
"""

from __future__ import annotations

import ctypes
import time

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # glibc's malloc.h
ARENAS = 2
LARGE_BYTES = 2**20  # blocks from here on are the system's own
TRIM_EVERY_S = 10.0


def _library() -> ctypes.CDLL | None:
    """The C library where it is glibc."""
    try:
        library = ctypes.CDLL(None)
        _ = library.mallopt, library.malloc_trim
    except (OSError, AttributeError, TypeError):
        return None
    return library


class Memory:
    """What this process keeps of its free memory; nothing changes on other C libraries."""

    def __init__(self) -> None:
        self._library = _library()
        self._trimmed_s = time.monotonic()
        if self._library is not None:
            self._library.mallopt(M_ARENA_MAX, ARENAS)
            self._library.mallopt(M_MMAP_THRESHOLD, LARGE_BYTES)
            self._library.mallopt(M_TRIM_THRESHOLD, LARGE_BYTES)

    def trim(self) -> None:
        """Give free pages back, now and then: it takes a few milliseconds."""
        now_s = time.monotonic()
        if self._library is not None and now_s - self._trimmed_s > TRIM_EVERY_S:
            self._trimmed_s = now_s
            self._library.malloc_trim(0)

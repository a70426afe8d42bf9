"""The latest answers, for all sessions: read them, never change them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Any

# Counted as they travel between processes; in memory an answer takes about three times as much.
MOST_BYTES = 32 * 2**20
# What pages work out from an answer, however small it is, stays with it.
BESIDE_BYTES = 2**16


class Kept:
    """Answers by key, up to a size of all together; who was not asked for longest goes first."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._size_bytes = 0

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: Hashable) -> Any:
        """The answer, or None."""
        with self._lock:
            if key not in self._found:
                return None
            self._found.move_to_end(key)
            return self._found[key][0]

    def put(self, key: Hashable, answer: Any, size_bytes: int) -> None:
        """One larger than all that may be kept stays until the next comes."""
        with self._lock:
            _, before = self._found.pop(key, (None, 0))
            size_bytes += BESIDE_BYTES
            self._found[key] = answer, size_bytes
            self._size_bytes += size_bytes - before
            while self._size_bytes > MOST_BYTES and len(self._found) > 1:
                _, (_, gone) = self._found.popitem(last=False)
                self._size_bytes -= gone

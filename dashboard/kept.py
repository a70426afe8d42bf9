"""Answers that cost something, kept for all sessions: read them, never change them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any

import streamlit as st

from dashboard.runner import in_worker

MAX_KEPT = 64  # under each name


class Kept:
    """The latest answers."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable) -> Any:
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
            return self._found.get(key)

    def put(self, key: Hashable, answer: Any) -> None:
        with self._lock:
            self._found[key] = answer
            while len(self._found) > MAX_KEPT:
                self._found.popitem(last=False)


@st.cache_resource(max_entries=64, show_spinner=False)
def kept(name: str) -> Kept:
    """What is kept under a name."""
    return Kept()


def once(
    doing: str,
    function: Callable[..., Any],
    *arguments: Any,
    here: bool = False,
    heavy: bool = False,
) -> Any:
    """What a function of hashable arguments returns, from before or from a worker.

    `here`: it is quick, so that it runs without one; `heavy`: it takes seconds. Raises what it
    raises.
    """
    own = kept(f"{function.__module__}.{function.__qualname__}")
    found = own.get(arguments)
    if found is None:
        if here:
            found = function(*arguments)
        else:
            found = in_worker(doing, function, *arguments, heavy=heavy)
        own.put(arguments, found)
    return found

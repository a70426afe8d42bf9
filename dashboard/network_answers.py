"""Answers of the engine for the page Network, kept for all sessions; large ones from a worker."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any

import streamlit as st

from dashboard.network_optical import Comparison, compare
from dashboard.network_overlap import Overlap, Wish, overlap
from dashboard.network_study import Network, Question, Study, study
from dashboard.runner import in_worker
from triosim.figures.step_player import step_player
from triosim.network.collectives.steps import script
from triosim.scenario import Scenario

# The engine lays out all algorithms for so many ranks in a moment; more goes to a worker.
AT_ONCE = 4096
MAX_KEPT = 32


class Kept:
    """The latest answers; shared between sessions: read them, never change them."""

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


@st.cache_resource(max_entries=1, show_spinner=False)
def _kept() -> Kept:
    return Kept()


def _answer(doing: str, large: bool, function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns, from before, from a worker or from here.

    Raises `TrioSimError`.
    """
    kept = _kept()
    key = function.__name__, arguments
    found = kept.get(key)
    if found is None:
        found = in_worker(doing, function, *arguments) if large else function(*arguments)
        kept.put(key, found)
    return found


def studied(question: Question) -> Study:
    """All algorithms for a collective."""
    large = question.network.ranks > AT_ONCE
    found: Study = _answer("Laying out all algorithms", large, study, question)
    found.shares.flags.writeable = False
    return found


def overlapped(network: Network, wishes: tuple[Wish, Wish], offset_s: float) -> Overlap:
    """Two collectives at once."""
    large = network.ranks > AT_ONCE
    found: Overlap = _answer("Running both", large, overlap, network, wishes, offset_s)
    return found


def compared(electrical: Scenario, optical: Scenario) -> Comparison:
    """A step over both kinds of interconnect, at several set-up times."""
    found: Comparison = _answer("Simulating both", True, compare, electrical, optical)
    return found


@st.cache_data(max_entries=64, show_spinner=False)
def frames(
    operation: str,
    algorithm: str,
    ranks: int,
    hosts: tuple[int, ...] | None,
    shape: tuple[int, ...] | None,
) -> dict[str, Any]:
    """What the step player shows."""
    return step_player(script(operation, algorithm, ranks, hosts=hosts, shape=shape))

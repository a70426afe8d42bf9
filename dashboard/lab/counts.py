"""What a class answered: anonymous counts in the server's memory, by preset and question.

One vote for each session and question, its first answer. Nothing is written to disk.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

import streamlit as st

MAX_POLLS = 512
MAX_VOTERS = 5000

Key = tuple[str, str]


@dataclass(slots=True)
class _Poll:
    votes: dict[str, str] = field(default_factory=dict)
    revealed: bool = False


class ClassCounts:
    """Votes of all sessions; every method may be called from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._polls: OrderedDict[Key, _Poll] = OrderedDict()

    def vote(self, preset: str, question: str, voter: str, label: str) -> None:
        """Count a session's answer; later ones of the same session do not count."""
        with self._lock:
            votes = self._poll(preset, question).votes
            if len(votes) < MAX_VOTERS:
                votes.setdefault(voter, label)

    def total(self, preset: str, question: str) -> int:
        """How many have answered."""
        with self._lock:
            found = self._polls.get((preset, question))
            return len(found.votes) if found else 0

    def counts(self, preset: str, question: str) -> Mapping[str, int]:
        """Answers by label, the most frequent first; empty until they are revealed."""
        with self._lock:
            found = self._polls.get((preset, question))
            if found is None or not found.revealed:
                return {}
            return dict(Counter(found.votes.values()).most_common())

    def revealed(self, preset: str, question: str) -> bool:
        with self._lock:
            found = self._polls.get((preset, question))
            return found is not None and found.revealed

    def reveal(self, preset: str, question: str, *, shown: bool = True) -> None:
        """Let everybody see the counts, or hide them again."""
        with self._lock:
            self._poll(preset, question).revealed = shown

    def clear(self, preset: str, question: str) -> None:
        """Start again, hidden and without votes."""
        with self._lock:
            self._polls.pop((preset, question), None)

    def _poll(self, preset: str, question: str) -> _Poll:
        """The poll, made where there is none; the one unused for longest goes where there are too
        many."""
        key = (preset, question)
        poll = self._polls.setdefault(key, _Poll())
        self._polls.move_to_end(key)
        while len(self._polls) > MAX_POLLS:
            self._polls.popitem(last=False)
        return poll


@st.cache_resource(max_entries=1, show_spinner=False)
def shared_counts() -> ClassCounts:
    """The server's."""
    return ClassCounts()

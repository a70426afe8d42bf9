"""Searches on the server's patient workers."""

from __future__ import annotations

from collections.abc import Hashable

from dashboard.search_settings import Question, layouts
from dashboard.sweep_board import Run, attend, board
from dashboard.sweep_workers import Lane
from triosim.search import search

TOP = 10


def search_of(question: Question) -> Run | None:
    """The search as far as it is; None where it has to be asked for."""
    return attend("search", key_of(question))


def key_of(question: Question) -> Hashable:
    return "search", question


def begin(question: Question) -> Run:
    """Start it, or start it again."""

    def work(run: Run, lane: Lane) -> None:
        def advance(doing: str, done: int, total: int) -> None:
            run.advance(done, total, doing)

        run.found = search(
            question.base,
            micro_batch_sizes=question.micro_batch_sizes,
            recompute=question.recompute,
            schedules=question.schedules,
            zero=question.zero,
            most_cp=question.most_cp,
            limits=question.limits,
            top=TOP,
            executor=lane,
            on_progress=advance,
        )

    return board().begin(key_of(question), layouts(question), work)

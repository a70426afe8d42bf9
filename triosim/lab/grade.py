"""Grading a guess: right within 5 %, close within 25 %, and the slip that it comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass

from triosim.lab.question import NUMBER, RANKING, Question, Slip, Value

RIGHT, CLOSE, WRONG = "right", "close", "wrong"
RIGHT_WITHIN, CLOSE_WITHIN = 0.05, 0.25
# A guess that is a slip's value but for rounding.
SLIP_WITHIN = 0.02


@dataclass(frozen=True, kw_only=True, slots=True)
class Grade:
    """How good a guess is, and the known slip that leads to it."""

    verdict: str
    slip: Slip | None = None

    @property
    def label(self) -> str:
        """What a class's counts call it."""
        return self.verdict if self.slip is None else self.slip.name


def grade(question: Question, guess: Value) -> Grade:
    """The verdict on a guess; a guess that is right has no slip."""
    verdict = _verdict(question, guess)
    if verdict == RIGHT:
        return Grade(verdict=RIGHT)
    slips = (slip for slip in question.slips if _is(question, guess, question.wrong(slip)))
    return Grade(verdict=verdict, slip=next(slips, None))


def _verdict(question: Question, guess: Value) -> str:
    right = question.right
    if question.kind == NUMBER:
        error = _error(guess, right, right)
        return RIGHT if error <= RIGHT_WITHIN else CLOSE if error <= CLOSE_WITHIN else WRONG
    if guess == right:
        return RIGHT
    return CLOSE if question.kind == RANKING and _one_swap(guess, right) else WRONG


def _is(question: Question, guess: Value, value: Value) -> bool:
    """Whether a guess is a slip's value."""
    if question.kind != NUMBER:
        return guess == value
    return _error(guess, value, value or question.right) <= SLIP_WITHIN


def _error(guess: Value, value: Value, scale: Value) -> float:
    """The distance of two numbers as a share of a third."""
    assert isinstance(guess, int | float)
    assert isinstance(value, int | float)
    assert isinstance(scale, int | float)
    if not math.isfinite(guess):
        return math.inf
    # Rounding must not decide at the edge.
    return round(abs(guess - value) / abs(scale), 12)


def _one_swap(guess: Value, right: Value) -> bool:
    """Whether two neighbours of a ranking have changed places and nothing else."""
    assert isinstance(guess, tuple)
    assert isinstance(right, tuple)
    wrong = [i for i, (a, b) in enumerate(zip(guess, right, strict=True)) if a != b]
    return len(wrong) == 2 and wrong[1] == wrong[0] + 1

"""The question bank: SEMINAR's answers, the engine beside the formulas, and every slip's hint."""

from __future__ import annotations

import pytest

from triosim.errors import ConfigError
from triosim.lab import (
    CHOICE,
    CLOSE,
    NUMBER,
    QUESTIONS,
    RANKING,
    RIGHT,
    WRONG,
    Question,
    grade,
    question,
)

# Answers as SEMINAR.md has them, asked first and then what is shown with it; None: not there.
SEMINAR: dict[str, tuple[object, ...]] = {
    "D1": (2.75, 2.95),
    "D2": (2.56, 10.2),
    "D3": (50,),
    "F1": (14.0,),
    "F2": (42.2, 47.8, 28.1),
    "F3": (1.02, 8.65, 20.6, 20),
    "M1": (9, "(2, 0)"),
    "M2": (8.75, 17.5, "Partial, nothing sent"),
    "M3": ("4:6",),
    "T1": (66.8, 0.522, 100.2),
    "T2": (0.857, 5.03, 1.64, 9.6),
    "T3": (512, 384, 1.33),
    "P1": (28.5, 33, 27),
    "P2": (63, 70),
    "P3": (1.30,),
    "L1": (
        ("Ulysses, c = 8", "ring, c = 4", "ring, c = 8", "Ulysses, c = 4"),
        403, 503, 470, 294, 5,
    ),
    "L2": (1.875, 333, 3000),
    "L3": (12.8, 3.5, 0.273),
    "R1": (1.325, 0.214, 0.101),
    "R2": (50.6, 33),
    "R3": (11.1, 1.02),
    "K1": (224, 447, 537),
    "K2": (20, 1.5, 1.2, 3, 3),
    "K3": ("8 GPUs, paper: 0.163 s", 0.386, 0.408, 0.375, 0.163, 6.0),
    "C1": (17.5, 57.1, 100),
    "C2": (0.94, 5.7),
    "C3": (6.39, 23.9, 37.5),
    "A1": (11.8, 0.79, 32, "tp"),
    "A2": (39, 386),
    "A3": ("Interleaved: faster and smaller, but it should not be smaller", 8.0, 8.0, 1.44),
}  # fmt: skip
ALL = pytest.mark.parametrize("asked", QUESTIONS.values(), ids=QUESTIONS)


def test_the_bank_is_the_seminars() -> None:
    assert list(QUESTIONS) == list(SEMINAR)
    assert len(QUESTIONS) == 30


@ALL
def test_the_formula_gives_the_seminars_answer(asked: Question) -> None:
    quantities = (asked.answer, *asked.also)
    for quantity, expected in zip(quantities, SEMINAR[asked.id], strict=True):
        value = asked.closed(quantity)
        if isinstance(expected, int | float):
            # Printed with so many digits; 20 times and 39 % are rounded to whole numbers.
            digits = len(str(expected).partition(".")[2])
            assert value == pytest.approx(expected, abs=0.51 * 10**-digits), quantity.label
        else:
            assert value == expected, quantity.label


@ALL
def test_the_engine_agrees_with_the_formula(asked: Question) -> None:
    for quantity in (asked.answer, *asked.also):
        closed, engine = asked.closed(quantity), asked.engine(quantity)
        if isinstance(closed, int | float):
            assert engine == pytest.approx(closed, rel=quantity.tolerance), quantity.label
        else:
            assert engine == closed, quantity.label


@ALL
def test_a_tolerance_has_a_reason(asked: Question) -> None:
    for quantity in (asked.answer, *asked.also):
        assert quantity.tolerance <= 0.02
        assert quantity.differs or asked.answer.differs or quantity.tolerance <= 1e-5


@ALL
def test_the_right_answer_is_right(asked: Question) -> None:
    found = grade(asked, asked.right)
    assert (found.verdict, found.slip) == (RIGHT, None)
    if asked.kind == CHOICE:
        assert asked.right in asked.options
    if asked.kind == RANKING:
        assert sorted(asked.options) == sorted(asked.right)  # type: ignore[arg-type]
        assert asked.options != asked.right


@ALL
def test_every_slip_gives_its_own_hint_and_is_not_right(asked: Question) -> None:
    assert asked.slips
    for slip in asked.slips:
        found = grade(asked, asked.wrong(slip))
        assert found.verdict != RIGHT, slip.name
        assert found.slip is slip, slip.name
        assert found.label == slip.name
        assert slip.hint.endswith(".")
    hints = [slip.hint for slip in asked.slips]
    assert len(set(hints)) == len(hints)


@ALL
def test_a_rounded_slip_is_still_recognised(asked: Question) -> None:
    """Three digits are what people type."""
    if asked.kind != NUMBER:
        return
    for slip in asked.slips:
        typed = float(f"{asked.wrong(slip):.3g}")
        assert grade(asked, typed).slip is slip, slip.name


@pytest.mark.parametrize(
    ("share", "verdict"),
    [(1, RIGHT), (1.05, RIGHT), (0.95, RIGHT), (1.051, CLOSE), (1.25, CLOSE), (1.26, WRONG)],
)
def test_right_within_5_and_close_within_25_percent(share: float, verdict: str) -> None:
    asked = question("C1")
    assert grade(asked, 17.5 * share).verdict == verdict


@pytest.mark.parametrize("guess", [float("inf"), float("-inf"), float("nan"), -17.5, 0.0, 1e300])
def test_odd_numbers_are_wrong(guess: float) -> None:
    assert grade(question("C1"), guess).verdict == WRONG


def test_a_ranking_with_two_neighbours_swapped_is_close() -> None:
    asked = question("l1")
    first, second, *rest = asked.right  # type: ignore[misc]
    assert grade(asked, (second, first, *rest)).verdict == CLOSE
    assert grade(asked, (*reversed(rest), second, first)).verdict == WRONG


def test_a_scenario_moves_and_the_formula_follows() -> None:
    asked = question("P1")
    moved = {"microbatches": 16, "chunks": 4}
    # 16 slots of 3, and 3 slots of bubble over 4 chunks.
    assert asked.closed(asked.answer, moved) == 16 * 3 + 3 * 3 / 4
    assert asked.engine(asked.answer, moved) == pytest.approx(50.25)
    assert asked.right == 28.5


def test_an_unknown_question_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="question P9: no such question; known are D1, D2"):
        question("P9")


@ALL
def test_what_can_be_moved_is_in_the_scenario_and_in_range(asked: Question) -> None:
    for parameter in asked.parameters:
        value = asked.given[parameter.name]
        assert parameter.low <= value <= parameter.high
        assert not parameter.whole or float(value).is_integer()

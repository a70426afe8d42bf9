"""A class's counts: anonymous, one vote a session, hidden until revealed, safe among threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.lab import counts as module
from dashboard.lab import pipeline
from dashboard.lab.counts import ClassCounts, shared_counts
from tests.dashboard.labs import charts, commit_number, open_question, press
from triosim.lab import question

SHORT = "seminar-10"


@pytest.fixture
def counts() -> ClassCounts:
    return ClassCounts()


def test_counts_are_hidden_until_they_are_revealed(counts: ClassCounts) -> None:
    for voter, label in (("a", "right"), ("b", "no chunks"), ("c", "right")):
        counts.vote("tuesday", "P1", voter, label)
    assert counts.total("tuesday", "P1") == 3
    assert counts.counts("tuesday", "P1") == {}
    counts.reveal("tuesday", "P1")
    assert dict(counts.counts("tuesday", "P1")) == {"right": 2, "no chunks": 1}
    counts.reveal("tuesday", "P1", shown=False)
    assert counts.counts("tuesday", "P1") == {}


def test_the_first_answer_of_a_session_counts(counts: ClassCounts) -> None:
    counts.vote("tuesday", "P1", "a", "wrong")
    counts.vote("tuesday", "P1", "a", "right")
    counts.reveal("tuesday", "P1")
    assert dict(counts.counts("tuesday", "P1")) == {"wrong": 1}


def test_classes_and_questions_are_apart(counts: ClassCounts) -> None:
    counts.vote("tuesday", "P1", "a", "right")
    assert counts.total("wednesday", "P1") == counts.total("tuesday", "P2") == 0
    counts.clear("tuesday", "P1")
    assert counts.total("tuesday", "P1") == 0
    assert not counts.revealed("tuesday", "P1")


def test_no_vote_is_lost_among_threads(counts: ClassCounts) -> None:
    with ThreadPoolExecutor(16) as pool:
        for number in range(2000):
            pool.submit(counts.vote, "tuesday", "P1", f"voter {number}", f"label {number % 3}")
    assert counts.total("tuesday", "P1") == 2000
    counts.reveal("tuesday", "P1")
    assert sorted(counts.counts("tuesday", "P1").values()) == [666, 667, 667]


def test_memory_is_limited(counts: ClassCounts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_POLLS", 3)
    monkeypatch.setattr(module, "MAX_VOTERS", 2)
    for preset in "abcd":
        for voter in "xyz":
            counts.vote(preset, "P1", voter, "right")
    assert [counts.total(preset, "P1") for preset in "abcd"] == [0, 2, 2, 2]


def _said(at: AppTest) -> list[str]:
    return [caption.value for caption in at.caption if caption.value.startswith("Class:")]


def test_two_sessions_are_one_class_and_the_instructor_reveals() -> None:
    lab, asked = pipeline.LAB, question("P1")
    shared_counts().clear(SHORT, asked.id)
    student, other = (open_question(lab, asked, preset=SHORT) for _ in range(2))
    student = commit_number(student, asked, 33)
    other = commit_number(other, asked, float(asked.right))  # type: ignore[arg-type]
    assert _said(other) == ["Class: 2 answers, hidden"]
    assert not [chart for chart in charts(other) if "no chunks" in chart]
    assert not [button for button in other.button if "class" in button.label]
    teacher = open_question(lab, asked, preset=SHORT, present="1")
    assert charts(teacher) == []
    teacher = press(teacher, "Show the class's answers")
    (shown,) = charts(teacher)
    assert '"no chunks"' in shown
    student = student.run()
    assert _said(student) == ["Class: 2 answers"]
    assert [chart for chart in charts(student) if "no chunks" in chart]


def test_a_question_that_is_not_in_the_preset_is_answered_alone() -> None:
    asked = question("P3")
    at = open_question(pipeline.LAB, asked, preset=SHORT)
    at = commit_number(at, asked, 2.0)
    assert _said(at) == []
    assert shared_counts().total(SHORT, asked.id) == 0

"""What all labs have in common: nothing is given away, grades, hints, addresses, the file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.frame import FRAME
from dashboard.lab import page
from dashboard.lab.answers import STATE, Try, table_of, value_text
from dashboard.lab.lab import Lab
from dashboard.lab.links import read_lab
from dashboard.lab.predict import label_of, right_label
from dashboard.network_settings import SETTINGS as NETWORK
from dashboard.settings import SETTINGS as SIMULATE
from dashboard.traces_links import NAMES as TRACES
from dashboard.train_settings import SETTINGS as TRAIN
from tests.dashboard.labs import (
    CASES,
    LABS,
    STRIPS,
    charts,
    commit_number,
    open_question,
    press,
    words,
)
from tests.dashboard.reading import open_page
from triosim.lab import CHOICE, NUMBER, RANKING, Question, grade, question

EACH = pytest.mark.parametrize(("lab", "asked"), CASES, ids=[asked.id for _, asked in CASES])
ONE = pytest.mark.parametrize("lab", [*LABS, *STRIPS], ids=lambda lab: lab.code)


@ONE
def test_a_lab_is_complete(lab: Lab) -> None:
    assert len(lab.idea.split()) <= 60
    assert lab.formula
    assert lab.source
    assert len(lab.questions) == 3
    assert lab.explain
    assert lab.not_modelled
    assert set(lab.quick) <= set(lab.questions)


def test_no_name_of_an_address_belongs_to_two_pages() -> None:
    pages = [set(lab.all_settings()) for lab in LABS]
    pages += [set(SIMULATE), set(NETWORK), set(TRAIN), set(TRACES) - set(SIMULATE), {"v", *FRAME}]
    for number, names in enumerate(pages):
        for others in pages[number + 1 :]:
            assert not names & others


@EACH
def test_a_question_from_the_first_look_to_play(lab: Lab, asked: Question) -> None:
    at = open_question(lab, asked)
    nothing_gives_the_answer_away(at, lab, asked)
    if asked.kind == NUMBER:
        for slip in asked.slips:
            at = commit_number(at, asked, float(asked.wrong(slip)))  # type: ignore[arg-type]
            said = " ".join(element.value for element in (*at.error, *at.warning))
            assert _plain(slip.hint) in _plain(said), slip.name
            assert charts(at) == []
        guess = 1.01 * float(asked.right)  # type: ignore[arg-type]
        at = commit_number(at, asked, guess)
        assert at.success[0].value.startswith("Right: ")
        axis = charts(at)[0]
        for name in ("Formula", "Simulation", "Your guess"):
            assert f'"name":"{name}"' in axis
        assert f"{guess:.6g}"[:6] in axis
    else:
        at = press(at, "Show me")
    everything_is_open(at, lab, asked)


def nothing_gives_the_answer_away(at: AppTest, lab: Lab, asked: Question) -> None:
    assert charts(at) == []
    assert not at.metric
    assert not at.slider
    assert not at.get("arrow_data_frame")
    said = words(at)
    assert asked.why not in said
    for quantity in (asked.answer, *asked.also):
        value = asked.closed(quantity)
        shown = f"{value_text(value)} {quantity.unit}".strip()
        known = shown in f"{asked.text} {asked.options}"
        # A lone digit without a unit is on every page.
        if isinstance(value, int | float) and len(shown) > 1 and not known:
            assert not re.search(rf"(?<![\d.,]){re.escape(shown)}", said), quantity.label
        # The general formula of the Idea may be a quantity's; one with a value of its own is not.
        if quantity.formula and quantity.formula not in lab.formula:
            assert quantity.formula not in said
    for slip in asked.slips:
        assert slip.hint not in said
    assert [heading.value for heading in at.subheader] == [lab.title]


def everything_is_open(at: AppTest, lab: Lab, asked: Question) -> None:
    assert not at.exception
    headings = [heading.value for heading in at.subheader]
    assert "Play" in headings
    assert headings[-1] == "Explain"
    value = f"{value_text(asked.right)} {asked.answer.unit}".strip()
    assert value in map(_plain, headings)
    assert charts(at) or at.get("bidi_component")
    assert len(at.slider) + len(at.select_slider) == len(lab.parameters(asked))


def test_nothing_typed_is_no_answer() -> None:
    lab, asked = CASES[0]
    at = press(open_question(lab, asked), "Commit")
    assert at.warning[0].value == "Type a number first."
    assert charts(at) == []


def test_answering_again_closes_it() -> None:
    lab, asked = CASES[0]
    at = press(open_question(lab, asked), "Show me")
    at = press(at, "Answer again")
    assert charts(at) == []
    assert at.number_input(key=f"guess_{asked.id}").value is None


def test_an_answer_stays_while_other_questions_are_looked_at() -> None:
    lab = LABS[-1]
    first, second, _ = lab.asked
    at = press(open_question(lab, first), "Show me")
    at.get("button_group")[0].set_value(second.id).run()
    assert charts(at) == []
    at.get("button_group")[0].set_value(first.id).run()
    assert charts(at)


def test_sliders_are_in_the_address_and_reset_to_the_question() -> None:
    lab = LABS[-1]
    asked = lab.asked[0]
    at = press(open_question(lab, asked, p1_microbatches="12"), "Show me")
    assert at.slider(key="p1_microbatches").value == 12
    at = press(at, "Reset to the question")
    assert at.slider(key="p1_microbatches").value == 8


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({"pipeline_q": ["P9"]}, "pipeline_q P9: must be one of P1, P2, P3."),
        ({"p1_stages": ["99"]}, "p1_stages 99: must be a whole number from 1 to 16."),
        ({"p1_stages": ["x"]}, "p1_stages x: must be a whole number from 1 to 16."),
        ({"p1_stages": ["1", "2"]}, "p1_stages 1 and 2: a setting has one value."),
        ({"p1_schedule": ["fast"]}, "p1_schedule fast: must be one of gpipe, 1f1b,"),
        ({"answer": ["28.5"]}, "answer 28.5: this page has no such setting."),
        ({"present": ["yes"]}, "present yes: must be 1, or absent."),
        ({"preset": ["nobody"]}, "preset nobody: must be one of seminar-10, seminar-30, "),
        ({"slide": ["-1"]}, "slide -1: must be a step from 1 to 99."),
        ({"v": ["9"]}, "v 9: this page reads links of version 1,"),
    ],
)
def test_what_an_address_says_wrongly_gets_a_sentence(
    raw: dict[str, list[str]], sentence: str
) -> None:
    link = read_lab(LABS[-1], raw)
    assert len(link.rejected) == 1
    assert link.rejected[0].startswith(sentence)
    assert link.values == {}


def test_the_frames_own_parameters_are_no_settings() -> None:
    said = {"present": "1", "preset": "seminar-30", "slide": "3"}
    link = read_lab(LABS[0], {name: [text] for name, text in said.items()})
    assert link.values == {}
    assert link.parameters == {"v": "1", **said}
    assert set(FRAME) == set(said)


def test_the_file_has_every_try_and_no_answer_that_is_not_open() -> None:
    lab = LABS[-1]
    asked = lab.asked[0]
    at = commit_number(open_question(lab, asked), asked, 33)
    assert _file(at) == [["P1", asked.text, "1", "33", "units of time", "close", "no chunks", ""]]
    at = commit_number(at, asked, 28.5)
    assert [line[2:] for line in _file(at)] == [
        ["1", "33", "units of time", "close", "no chunks", "28.5"],
        ["2", "28.5", "units of time", "right", "", "28.5"],
    ]


def test_the_file_is_written_outside_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the browser asks for it there is no session to look into."""
    offered: list[Callable[[], bytes]] = []
    monkeypatch.setattr(
        page.st, "download_button", lambda label, data, *rest, **more: offered.append(data)
    )
    asked = LABS[-1].asked[0]
    commit_number(open_question(LABS[-1], asked), asked, 33)
    head, line = csv.reader(io.StringIO(offered[-1]().decode()))
    assert line[: head.index("unit")] == ["P1", asked.text, "1", "33"]


def test_counts_call_options_by_name_and_numbers_by_grade() -> None:
    for name, kind in (("K3", CHOICE), ("L1", RANKING), ("P1", NUMBER)):
        asked = question(name)
        assert asked.kind == kind
        assert right_label(asked) == (asked.right if kind == CHOICE else "right")
    asked = question("P1")
    assert label_of(asked, Try(33.0, grade(asked, 33.0))) == "no chunks"


def _plain(text: str) -> str:
    return re.sub(r"\\", "", text)


def _file(at: AppTest) -> list[list[str]]:
    """The student's file, as the session would download it now."""
    found = at.session_state[STATE]
    rows = list(csv.reader(io.StringIO(table_of(found).decode())))
    assert rows[0][0] == "question"
    return rows[1:]


def test_an_empty_preset_has_no_counts() -> None:
    lab, asked = CASES[0]
    at = open_question(lab, asked)
    assert not [caption for caption in at.caption if caption.value.startswith("Class:")]


def test_the_redirect_opens_the_network_page_with_a_question() -> None:
    at = open_page("pages/lab_collectives.py")
    assert not at.exception
    assert "C1." in words(at)
    assert charts(at) == []

"""The Seminar page, and an instructor's screen as far as a server without a browser shows it."""

from __future__ import annotations

from functools import partial
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.address import read_parameters
from dashboard.compare_links import value_of as compared
from dashboard.frame import FRAME
from dashboard.lab.counts import shared_counts
from dashboard.lab.links import read_lab
from dashboard.network_links import read_network
from dashboard.plain import plain
from dashboard.seminar.outline import outline
from dashboard.seminar.places import LABS, lab_of_question, place_of_step
from dashboard.seminar.presets import read_folder
from dashboard.sweep_links import read_sweep
from dashboard.train_links import read_train
from dashboard.validation_links import read_view
from tests.dashboard.labs import charts, commit_number, press, words
from tests.dashboard.reading import open_page
from triosim.lab import QUESTIONS, question

SEMINAR = "pages/seminar.py"
LONGEST = list(read_folder()[0].values())[-1]
STEPS = list(enumerate(LONGEST.steps, 1))
# Who reads the addresses of pages that are no labs.
READ = {
    "pages/sweep.py": read_sweep,
    "pages/train.py": read_train,
    "pages/network.py": read_network,
    "pages/validation.py": read_view,
    "pages/compare.py": partial(read_parameters, value_of=compared),
}
ASKED = [(number, step) for number, step in STEPS if step.question]


def open_step(number: int) -> AppTest:
    """A step of the longest preset, by its own address."""
    place = place_of_step(LONGEST.steps[number - 1])
    frame = {"present": "1", "preset": LONGEST.name, "slide": str(number)}
    return open_page(place.page, **place.address, **frame)  # type: ignore[arg-type]


def plainly(text: str) -> str:
    """Without the marks that keep Markdown from reading it."""
    return text.replace("\\", "")


def texts(at: AppTest) -> list[str]:
    """Every text, that of the bar among them."""
    return [text.value for text in at.markdown]


def test_every_node_and_every_question_of_the_outline_is_linked() -> None:
    at = open_page(SEMINAR)
    assert not at.exception
    links = [link.proto for link in at.get("page_link")]
    labels = [link.label for link in links]
    assert len(outline()) == 16
    for node in outline():
        assert any(node.title in text.value for text in at.markdown)
        assert set(node.questions) <= set(labels)
        assert set(node.more) <= set(labels)
    asked = {name for node in outline() for name in node.questions}
    assert asked <= set(lab_of_question()) == set(QUESTIONS)
    # Data parallel and the first two on collectives are no nodes of the mind map.
    assert set(QUESTIONS) - asked == {"D1", "D2", "D3", "C1", "C2"}


def test_nodes_come_in_the_mind_maps_order() -> None:
    titles = [node.title for node in outline()]
    assert titles[0] == "What problem does TorchTitan solve?"
    assert titles[1:5] == [
        "Fully Sharded Data Parallel", "Tensor Parallel", "Pipeline Parallel", "DTensor",
    ]  # fmt: skip
    assert titles[-1].startswith("Half the memory")


@pytest.mark.parametrize("node", outline(), ids=lambda node: node.title)
def test_a_nodes_links_are_accepted_by_their_pages(node) -> None:
    labs = {lab.page: partial(read_lab, lab) for lab in LABS}
    read = {**labs, **READ}
    for place in [*(node.place(name) for name in node.questions), *node.more.values()]:
        link = read[place.page]({name: [text] for name, text in place.address.items()})
        assert link.rejected == []


def test_answers_show_in_the_progress() -> None:
    at = open_page("pages/lab_pipeline.py", v="1", pipeline_q="P1")
    at = press(at, "Show me")
    at = at.switch_page(SEMINAR).run()
    assert f"1 of {len(QUESTIONS)} questions answered" in words(at)
    icons = {link.proto.label: link.proto.icon for link in at.get("page_link")}
    assert icons["P1"] == ":material/check_circle:"
    assert icons["P2"] == ":material/radio_button_unchecked:"


def test_a_wrong_try_shows_as_one() -> None:
    at = open_page("pages/lab_pipeline.py", v="1", pipeline_q="P1")
    at = commit_number(at, question("P1"), 33)
    at = at.switch_page(SEMINAR).run()
    icons = {link.proto.label: link.proto.icon for link in at.get("page_link")}
    assert icons["P1"] == ":material/pending:"


def test_a_class_finds_its_questions_in_the_presets_order() -> None:
    at = open_page(SEMINAR, v="1", preset=LONGEST.name)
    assert any(LONGEST.title in text.value for text in at.markdown)
    labels = [link.proto.label for link in at.get("page_link")]
    first = labels.index(LONGEST.questions[0], 3)  # after the links that start presenting
    assert tuple(labels[first : first + len(LONGEST.questions)]) == LONGEST.questions


def test_presets_are_offered_by_name_and_start_at_the_first_step() -> None:
    at = open_page(SEMINAR)
    starts = [link.proto for link in at.get("page_link") if "slide=1" in link.proto.query_string]
    assert len(starts) == 3
    for link in starts:
        said = parse_qs(link.query_string)
        assert set(FRAME) <= set(said)


def test_an_address_with_something_else_gets_a_sentence() -> None:
    at = open_page(SEMINAR, v="1", colour="red", preset="a b")
    (warning,) = at.warning
    assert "colour red: this page has no such setting" in warning.value
    assert "preset a b: must be one of seminar-10" in plainly(warning.value)


def test_an_uploaded_preset_can_be_presented() -> None:
    at = open_page(SEMINAR)
    text = 'title = "Mine"\n[[steps]]\nquestion = "P1"\n'
    at.get("file_uploader")[0].upload("my week.toml", text.encode()).run()
    assert not at.exception
    (mine,) = [link.proto for link in at.get("page_link") if link.proto.label == "Mine"]
    assert "preset=my-week" in mine.query_string


def test_an_odd_upload_gets_a_sentence() -> None:
    at = open_page(SEMINAR)
    at.get("file_uploader")[0].upload("x.toml", b"\xff\xfe").run()
    assert not at.exception
    (error,) = at.error
    assert "is no TOML" in error.value


def opened(number: int, step) -> AppTest:
    """A step as it begins: everything is accepted, and no note is on the screen."""
    at = open_step(number)
    assert not at.exception
    assert not [one.value for one in at.warning if "in this link" in one.value]
    assert f"step {number} of {len(STEPS)}" in texts(at)
    assert plain(step.note) not in texts(at)
    return at


@pytest.mark.parametrize(
    ("number", "step"),
    [one for one in STEPS if one not in ASKED],
    ids=lambda one: getattr(one, "title", one),
)
def test_a_scenario_opens(number: int, step) -> None:
    at = opened(number, step)
    assert charts(at)
    assert not [button.label for button in at.button if button.label.startswith("Reveal")]


@pytest.mark.parametrize(
    ("number", "step"), ASKED, ids=[f"{number}-{step.title}" for number, step in ASKED]
)
def test_a_question_is_revealed_in_parts_and_reset_closes_it(number: int, step) -> None:
    asked = question(step.question)
    at = opened(number, step)
    said = words(at)
    assert charts(at) == []
    assert asked.why not in said
    assert all(slip.hint not in said for slip in asked.slips)
    for part in step.reveal:
        at = press(at, f"Reveal {part} (R)")
        assert not at.exception
        assert (asked.why in plainly(words(at))) == (part == "answer") or not asked.why
        if part == "picture":
            assert charts(at) or at.get("bidi_component") or at.metric or at.get("arrow_data_frame")
    assert shared_counts().revealed(LONGEST.name, asked.id)
    at = press(at, "Reset to the question")
    assert charts(at) == []
    assert "Reveal class (R)" in [button.label for button in at.button]
    assert not shared_counts().revealed(LONGEST.name, asked.id)


def test_the_note_is_shown_when_it_is_asked_for() -> None:
    at = open_step(1)
    at.toggle(key="present_note_shown").set_value(True).run()
    assert plain(LONGEST.steps[0].note) in texts(at)


@pytest.mark.parametrize(("number", "label"), [(1, "Back"), (len(STEPS), "Next")])
def test_the_ends_have_no_way_on(number: int, label: str) -> None:
    ways = {button.label: button.disabled for button in open_step(number).button}
    assert ways[label]
    assert not ways["Next" if label == "Back" else "Back"]


def test_leaving_gives_the_page_back() -> None:
    at = press(open_step(ASKED[0][0]), "Leave")
    assert not at.exception
    assert not [text for text in texts(at) if text.startswith("step ")]
    assert "Commit" in [button.label for button in at.button]


def test_an_unknown_preset_is_harmless() -> None:
    at = open_page("pages/lab_pipeline.py", v="1", preset="nobody", present="1", slide="3")
    assert not at.exception
    assert "Commit" in [button.label for button in at.button]
    assert not [text for text in texts(at) if text.startswith("step ")]
    assert "preset nobody: must be one of seminar-10" in plainly(at.warning[0].value)


def test_a_step_that_a_preset_does_not_have_gets_a_sentence() -> None:
    at = open_page(SEMINAR, v="1", preset="seminar-10", present="1", slide="40")
    assert "slide 40: must be a step from 1 to 5" in plainly(at.warning[0].value)
    assert "5 steps" in texts(at)
    assert "Next" in [button.label for button in at.button if not button.disabled]

"""The questions on collectives beside the Network page's own pictures."""

from __future__ import annotations

import pytest

from dashboard.lab.collectives import LAB, SCENES
from dashboard.lab.strip import scene
from dashboard.links import text_of
from dashboard.network_links import read_network
from dashboard.network_settings import SETTINGS
from tests.dashboard.labs import charts, commit_number, press, words
from tests.dashboard.reading import open_page
from triosim.lab import Question


@pytest.mark.parametrize("asked", LAB.asked, ids=LAB.questions)
def test_nothing_is_drawn_before_the_answer_is_asked_for(asked: Question) -> None:
    at = open_page("pages/network.py", v="1", ask=asked.id)
    assert not at.exception
    assert not at.metric
    assert not at.tabs
    assert charts(at) == []
    assert asked.why not in words(at)
    at = press(at, "Show me")
    assert not at.exception
    assert at.metric
    assert asked.why in words(at)


@pytest.mark.parametrize("name", LAB.questions)
def test_choosing_a_question_sets_the_page_to_its_scenario(name: str) -> None:
    at = open_page("pages/network.py", v="1", ranks="64", op="all-gather")
    at.get("button_group")[0].set_value(name).run()
    for key in ("net", "op", "algo"):
        assert at.selectbox(key=key).value == scene(name)[key]
    assert at.number_input(key="ranks").value == scene(name)["ranks"]
    assert charts(at) == []


def test_the_page_gives_the_answer_of_the_scenario() -> None:
    """C1: 17.5 ms, 57.1 and 100 GB/s."""
    given = {name: text_of(value) for name, value in SCENES["C1"].items()}
    at = open_page("pages/network.py", **{**given, "v": "1", "ask": "C1", "show": "Links"})
    at = commit_number(at, LAB.asked[0], 17.5)
    assert at.success[0].value == "Right: 17.5 ms."
    assert [at.metric[i].value for i in range(3)] == ["17.5 ms", "57.1 GB/s", "100 GB/s"]


def test_without_a_question_the_page_is_as_ever() -> None:
    at = open_page("pages/network.py", v="1")
    assert at.metric
    assert "Collectives" not in [heading.value for heading in at.subheader]


def test_scenes_are_legal_and_links_of_a_class_are_accepted() -> None:
    for values in SCENES.values():
        assert set(values) <= set(SETTINGS)
    link = read_network({"ask": ["C3"], "preset": ["seminar-10"], "present": ["1"]})
    assert link.rejected == []
    assert read_network({"preset": ["a b"]}).rejected
    assert read_network({"c1_ranks": ["8"]}).values == {"c1_ranks": 8}

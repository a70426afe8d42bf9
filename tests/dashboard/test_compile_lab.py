"""The pictures of the lab on compilation."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.lab.compiling import BREAK, GREEDY, LAB, LAUNCHES, WHY
from tests.dashboard.labs import charts, open_play
from triosim.lab import Question
from triosim.lab.fusion_steps import CYCLE, GRAPHS, greedy

K1, K2, K3 = LAB.asked


def opened(question: Question = K1, **parameters: str) -> AppTest:
    return open_play(LAB, question, **parameters)


@pytest.mark.parametrize("view", [GREEDY, LAUNCHES, BREAK])
def test_every_picture_is_drawn(view: str) -> None:
    at = opened(k1_view=view)
    assert len(charts(at)) == 2
    assert not at.warning


@pytest.mark.parametrize("graph", GRAPHS)
def test_every_graph_is_gone_through_pair_by_pair(graph: str) -> None:
    last = len(greedy(graph).history)
    at = opened(k1_graph=graph, k1_pair=str(last))
    table = at.dataframe[-1].value
    assert set(table["pair"]) == set(range(1, last + 1))
    assert all(outcome for outcome in table["outcome"])


def test_a_pair_that_was_not_looked_at_has_no_outcome() -> None:
    at = opened(k1_graph=CYCLE, k1_pair="1")
    outcomes = at.dataframe[-1].value.set_index("pair")["outcome"].to_dict()
    assert outcomes == {1: "taken", 2: ""}
    assert at.metric[0].value == "5"
    at.number_input(key="k1_pair").set_value(2).run()
    assert any(text.value.endswith("Refused: cycle.") for text in at.markdown)
    assert at.metric[0].value == "5"


def test_a_shorter_graph_takes_the_pair_back_to_its_last() -> None:
    at = opened(k1_graph="a layer of Llama 3 8B", k1_pair="30")
    at.selectbox(key="k1_graph").set_value(GRAPHS[0]).run()
    assert not at.exception
    assert at.number_input(key="k1_pair").value == 2
    assert at.metric[0].value == "1"


def test_the_questions_kernels_take_what_the_question_says() -> None:
    """SEMINAR K2: 1.5 to 1.2 ms."""
    at = opened(K2)
    assert [metric.value for metric in at.metric] == ["1.50 ms", "1.20 ms"]


def test_launches_of_a_layer_have_three_ways_with_cpu_and_gpu() -> None:
    at = opened(K2, k2_work="one layer")
    figure = json.loads(charts(at)[1])
    lanes = figure["layout"]["yaxis"]["categoryarray"]
    assert lanes == [f"{way}, {where}" for way in ("eager", "fused", "replayed")
                     for where in ("CPU", "GPU")]  # fmt: skip
    assert {trace["name"] for trace in figure["data"]} == {
        "launch", "guards and breaks", "kernel", "waits for a launch",
    }  # fmt: skip


def test_a_break_by_hand_has_its_cost() -> None:
    none = opened(K2, k2_view=BREAK)
    assert [metric.value for metric in none.metric][2:] == ["0 ms", "0 ms"]
    cut = opened(K2, k2_view=BREAK, k2_broken="after attention")
    assert cut.metric[0].value == "4"
    assert cut.metric[2].value.startswith("+")
    labels = json.loads(charts(cut)[1])["data"][0]["y"]
    assert "<b>after attention</b>" in labels


def test_eight_against_128_has_both_pairs_and_names_none_the_answer() -> None:
    at = opened(K3)
    said = " ".join(text.value for text in at.markdown)
    assert "The odd one is 0.163 s on 8 GPUs" in said
    assert "None of the four is *the* answer." in said
    assert len(at.toggle) == 4
    assert WHY == "8 against 128"
    before = at.dataframe[-1].value.iloc[-1, 1:].tolist()
    at.toggle(key="k3_exposed_gather").set_value(True).run()
    assert not at.exception
    assert at.dataframe[-1].value.iloc[-1, 1:].tolist() != before

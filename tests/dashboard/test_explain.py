"""Why is this GPU idle: gaps from the list, the critical path and what-ifs on both pages."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import triosim as ts
from dashboard.explain import CHOSEN, INNER, RANK, Chosen, clicked, what_if_of
from dashboard.timeline import PATH
from dashboard.train_timeline import PATH as TRAIN_PATH
from tests.dashboard.reading import open_page
from triosim.explain import explain
from triosim.figures.critical import NAME
from triosim.figures.gantt_bars import CUSTOM_DATA

Open = Callable[..., AppTest]


def open_train(**parameters: str) -> AppTest:
    """The page Train at some address."""
    return open_page("pages/train.py", v="1", **parameters)


@pytest.fixture
def train_page() -> AppTest:
    """A pipeline."""
    return open_train(model="llama3.2-1b", world="16", pp="4")


def shown(at: AppTest) -> str:
    assert not at.exception
    return "\n".join(element.value for element in (*at.markdown, *at.caption))


def charts(at: AppTest) -> dict[str, dict]:
    found = {}
    for element in at.get("plotly_chart"):
        key = element.proto.id.rpartition("-")[2]
        found[key] = json.loads(element.proto.spec or element.proto.figure.spec)
    return found


def drawn(at: AppTest) -> set[str]:
    return {trace.get("name") for chart in charts(at).values() for trace in chart["data"]}


def test_a_gap_from_the_list_is_explained(simulate_page: Open) -> None:
    at = simulate_page(v="1", case="2", gpus="8")
    result = ts.simulate(ts.Scenario(case=2, gpus=8))
    found = explain(result)
    longest = found.longest(0, 1)[0]
    picker = at.selectbox(key=f"{CHOSEN}_list")
    assert picker.value is None
    assert "waits for a transfer: all-reduce of bucket" in picker.options[0]
    at = picker.set_value(found.gaps(0).index(longest)).run()
    text = shown(at)
    assert "all-reduce of bucket 5 of 5" in text
    assert "Its fullest link is ring" in text


def test_what_was_explained_is_gone_with_its_step(simulate_page: Open) -> None:
    at = simulate_page(v="1", case="2", gpus="8")
    at = at.selectbox(key=f"{CHOSEN}_list").set_value(0).run()
    assert "computes nothing for" in shown(at)
    at = at.number_input(key="gpus").set_value(4).run()
    assert "computes nothing for" not in shown(at)


def test_each_gpu_has_a_list(simulate_page: Open) -> None:
    at = simulate_page(v="1", case="4", gpus="4")
    assert at.selectbox(key=RANK).options == ["GPU 0", "GPU 1", "GPU 2", "GPU 3"]
    at = at.selectbox(key=RANK).set_value(3).run()
    picker = at.selectbox(key=f"{CHOSEN}_list")
    assert picker.label.startswith("Longest gaps of GPU 3")
    assert any("waits for another stage" in option for option in picker.options)


def test_the_critical_path_is_drawn_on_request(simulate_page: Open) -> None:
    at = simulate_page(v="1", case="2", gpus="8")
    assert NAME not in drawn(at)
    at = at.toggle(key=PATH).set_value(True).run()
    assert NAME in drawn(at)
    assert "The critical path by kind" in shown(at)
    linked = simulate_page(v="1", case="2", gpus="8", critical_path="true")
    assert NAME in drawn(linked)
    assert not linked.warning


def test_what_would_help_is_simulated_on_demand(simulate_page: Open) -> None:
    at = simulate_page(v="1", case="1", gpus="8", latency="0")
    at = at.button(key="ask_what_if").click().run()
    assert "What would make it shorter" in shown(at)
    at = at.run()
    assert not [button for button in at.button if button.key == "ask_what_if"]  # known by now


def test_the_worker_finds_what_the_engine_does() -> None:
    scenario = ts.Scenario(case=1, gpus=4)
    assert what_if_of(scenario) == explain(ts.simulate(scenario)).what_if()


def test_gaps_of_a_training_step(train_page: AppTest) -> None:
    assert train_page.selectbox(key=RANK).options == [f"stage {i}" for i in range(4)]
    at = train_page.selectbox(key=f"{CHOSEN}_list").select_index(0).run()
    text = shown(at)
    assert "Stage 0 computes nothing for" in text
    assert "Meanwhile, one after the other:" in text
    at = at.toggle(key=TRAIN_PATH).set_value(True).run()
    assert NAME in drawn(at)


def test_a_gap_between_kernels_is_explained() -> None:
    """Small kernels on few tokens: the CPU cannot launch them fast enough."""
    at = open_train(model="llama3.2-1b", world="8", tp="8", seq="512", stack="generic")
    at = at.selectbox(key="train_unit").set_value("layer 0").run()
    at = at.selectbox(key=f"{INNER}_list").select_index(0).run()
    assert "GPU 0 computes nothing for" in shown(at)
    # One of the step and one of the pass stand beside each other.
    at = at.selectbox(key=f"{CHOSEN}_list").select_index(0).run()
    assert shown(at).count("computes nothing for") == 2


def click(monkeypatch: pytest.MonkeyPatch, custom: tuple) -> dict:
    """What a click on a bar with such custom data leaves in the session."""
    selection = SimpleNamespace(points=[{"customdata": custom}])
    state = {"chart": SimpleNamespace(selection=selection)}
    monkeypatch.setattr(st, "session_state", state)
    clicked("chart", "step", CHOSEN, CUSTOM_DATA, ("task", "rank", "gap"))
    return state


def test_a_click_on_a_gap_is_the_gap_and_one_on_a_span_the_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gap = ("why", "1 ms", "0 ms", "", "", 7, 3, 2)
    state = click(monkeypatch, gap)
    assert state[CHOSEN] == Chosen(of="step", rank=3, gap=2)
    assert state[RANK] == 3
    span = ("aten::mm", "1 ms", "0 ms", "", "", 7, 3, -1)
    assert click(monkeypatch, span)[CHOSEN] == Chosen(of="step", rank=3, task=7)

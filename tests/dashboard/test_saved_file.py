"""Saved files open on the page that they belong to, set as they were saved."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit import config
from streamlit.testing.v1 import AppTest

import triosim as ts
from dashboard.compare_export import saved
from dashboard.compare_links import PAGE, link_to
from dashboard.examples import EXAMPLES, RUNNING
from dashboard.saved_file import place_of
from triosim.figures.text import time_text

APP = Path(__file__).parents[2] / "app.py"
SLOW = ts.Scenario(case=1, gpus=16, rank_speed={3: 0.5})


def opened(page: str, **parameters: str) -> AppTest:
    config.set_option("global.disableWidgetStateDuplicationWarning", True)
    at = AppTest.from_file(str(APP), default_timeout=60)
    for name, text in parameters.items():
        at.query_params[name] = text
    at.switch_page(page)
    return at.run()


def brought(at: AppTest, data: bytes) -> AppTest:
    label = "Open a saved scenario, result or settings (JSON)"
    [field] = [one for one in at.get("file_uploader") if one.proto.label == label]
    return field.set_value(("saved.json", data, "application/json")).run()


@pytest.mark.parametrize("page", ["pages/simulate.py", "pages/train.py"])
@pytest.mark.parametrize("scenario", [SLOW, EXAMPLES[1].scenario, RUNNING], ids=lambda s: s.gpus)
def test_a_scenario_opens_from_either_page(page: str, scenario: ts.Scenario) -> None:
    at = opened(page, **({"look": "Export"} if "train" in page else {}))
    at = brought(at, json.dumps(saved(scenario)).encode())
    assert not at.exception
    assert not at.warning
    traced = isinstance(scenario, ts.Scenario)
    result = ts.simulate(scenario) if traced else ts.train(scenario)
    assert at.metric[0].value == time_text(result.total_ms)


def test_a_file_that_cannot_be_used_is_a_sentence_and_changes_nothing() -> None:
    at = opened("pages/simulate.py", gpus="4")
    before = [metric.value for metric in at.metric]
    at = brought(at, b"[]")
    [error] = at.error
    assert "must hold one scenario or result" in error.value
    assert [metric.value for metric in at.metric] == before


def test_what_no_other_page_can_say_opens_on_compare() -> None:
    link = {"gb_per_s": 10}
    # Longer than a link may be.
    drawn = [{"between": [f"gpu {i}", f"gpu {i + 1}"], "link": link} for i in range(199)]
    network = {"kind": "graph", "gpus": [f"gpu {i}" for i in range(200)], "connections": drawn}
    scenario = replace(SLOW, case=2, topology=network, gpus=200, rank_speed=None)
    assert place_of(json.dumps(saved(scenario)).encode()) == (PAGE, link_to([scenario]))
    two = {"steps": [{"scenario": saved(SLOW)}, {"scenario": saved(RUNNING)}]}
    assert place_of(json.dumps(two).encode()) == (PAGE, link_to([SLOW, RUNNING]))


def test_the_settings_of_the_page_network_come_back() -> None:
    parameters = {"v": "1", "net": "torus", "show": "Description"}
    data = json.dumps({"page": "network", "parameters": parameters}).encode()
    assert place_of(data) == ("pages/network.py", parameters)
    at = brought(opened("pages/simulate.py"), data)
    assert not at.exception
    assert not at.warning
    [net] = [box for box in at.selectbox if box.key == "net"]
    assert net.value == "torus"


@pytest.mark.parametrize(
    "values",
    [
        {"page": "other", "parameters": {}},
        {"page": "network", "parameters": [1]},
        {"page": "network", "parameters": {"gpus": 4}},
    ],
)
def test_settings_of_no_page_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(ts.ConfigError):
        place_of(json.dumps(values).encode())

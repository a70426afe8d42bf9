"""Networks and imperfections of the simulation page in a browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from dashboard.links import query
from tests.browser import acting
from triosim import Scenario, simulate
from triosim.figures.text import time_text

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser
Visits = Callable[..., Any]
DEAD = "NVSwitch 0-top of rack 0:0"


def choose(page: Any, label: str, option: str) -> None:
    """Open a list of the sidebar, type and take what it finds."""
    field = page.get_by_test_id("stSidebar").get_by_role("combobox", name=label)
    acting.choose(field, page.get_by_role("option", name=option, exact=True), typed=option)


def step_time(page: Any) -> Any:
    return page.get_by_test_id("stMetricValue").first


def text_of(scenario: Scenario) -> str:
    return time_text(simulate(scenario).total_ms)


def test_two_hosts_lose_a_link_and_start_to_jitter(visit: Visits) -> None:
    one = visit()
    page = one.open("/simulate?v=1&gpus=16")
    choose(page, "Network", "seminar-h100")
    scenario = {"case": 2, "gpus": 16, "topology": "seminar-h100"}
    expect(page.get_by_role("heading").first).to_contain_text("16 GPUs on seminar-h100")
    expect(step_time(page)).to_have_text(text_of(Scenario(**scenario)))
    expect(page.get_by_text("Its own links count")).to_be_visible()
    expect(page.get_by_text("GPU to GPU bandwidth")).to_have_count(0)
    page.get_by_text("Imperfections").click()
    choose(page, "Connection", DEAD)
    expect(page.get_by_role("textbox", name="Bad links")).to_have_value(DEAD)
    broken = Scenario(**scenario, dead_links=(DEAD,))
    expect(page.get_by_text(f"Bad links: {DEAD} dead.")).to_be_visible()
    expect(step_time(page)).to_have_text(text_of(broken))
    page.locator(".st-key-jitter_slider input[type=range]").press("ArrowRight")
    expect(page).to_have_url(re.compile("jitter=0.01"))
    jittered = Scenario(**scenario, dead_links=(DEAD,), jitter=0.01)
    times = simulate(jittered).step_times
    expect(page.get_by_text(f"P95 {time_text(times.p95_ms)}")).to_be_visible()
    path = urlsplit(page.url)
    other = visit().open(f"{path.path}?{path.query}")
    expect(step_time(other)).to_have_text(text_of(jittered))
    assert parse_qs(path.query) == parse_qs(query(jittered))
    assert one.complaints == []


def test_a_deep_link_to_a_network_with_sizes(visit: Visits) -> None:
    one = visit()
    scenario = Scenario(
        case=2, gpus=16, topology="torus:2x8", algorithm="torus", dead_links=("0-1=0.5",)
    )
    page = one.open(f"/simulate?{query(scenario)}&tab=Network")
    expect(step_time(page)).to_have_text(text_of(scenario))
    expect(page.get_by_role("combobox", name="Network")).to_have_value("torus:2x8")
    expect(page.get_by_test_id("stPlotlyChart")).to_have_count(2)
    assert parse_qs(urlsplit(page.url).query) == {**parse_qs(query(scenario)), "tab": ["Network"]}
    assert one.complaints == []


def test_a_bad_network_is_said_and_the_rest_of_the_link_counts(visit: Visits) -> None:
    one = visit()
    page = one.open("/simulate?v=1&gpus=4&topology=spaghetti&jitter=9&dead_links=0-1%3D0.5,2-9")
    alert = page.get_by_test_id("stAlert")
    for sentence in (
        "topology spaghetti: must be one of ring,",
        "jitter 9: must be a number from 0 to 1.",
        "dead_links 2-9: no such link",
    ):
        expect(alert).to_contain_text(sentence)
    scenario = Scenario(case=2, gpus=4, dead_links=("0-1=0.5",))
    expect(step_time(page)).to_have_text(text_of(scenario))
    assert parse_qs(urlsplit(page.url).query) == parse_qs(query(scenario))
    assert one.complaints == []


def test_a_typed_network_that_is_none_is_said_beside_its_list(visit: Visits) -> None:
    page = visit().open("/simulate?v=1&gpus=4")
    field = page.get_by_role("combobox", name="Network")
    field.fill("spaghetti")
    field.press("Enter")
    alert = page.get_by_test_id("stSidebar").get_by_test_id("stAlert")
    expect(alert).to_contain_text("Network spaghetti: must be one of")
    choose(page, "Network", "switch")
    expect(alert).to_have_count(0)
    expect(page.get_by_role("heading").first).to_contain_text("4 GPUs on switch")


def test_the_entry_for_the_usual_stays_it_through_other_choices(visit: Visits) -> None:
    """What it stands for changes with the trace and with the network; what it says does not."""
    page = visit().open("/simulate?v=1&gpus=4")
    wrong = page.get_by_test_id("stAlert")
    heading = page.get_by_role("heading").first
    for trace in ("bert-base", "convnet"):
        choose(page, "Trace", trace)
        expect(page).to_have_url(re.compile(f"trace={trace}"))
        expect(heading).to_contain_text(trace)
    usual = "TrioSim's: a ring, or a chain"
    for network in ("ring", usual, "ring"):
        choose(page, "Network", network)
    algorithm = page.get_by_role("combobox", name="All-reduce algorithm")
    expect(algorithm).to_have_value("TrioSim's ring, else the cheapest")
    choose(page, "Network", usual)
    page.get_by_text("optical", exact=True).click()
    expect(page).to_have_url(re.compile("interconnect=optical"))
    page.get_by_text("electrical", exact=True).click()
    expect(page.get_by_role("combobox", name="Network")).to_have_value(usual)
    choose(page, "Network", usual)
    choose(page, "GPU type", "as traced")
    number = page.get_by_role("spinbutton", name="Link latency")
    number.fill("1")
    number.press("Enter")
    expect(page).to_have_url(re.compile("latency_us=1"))
    scenario = Scenario(case=2, gpus=4, trace_dir="sample_trace/convnet", latency_us=1)
    expect(step_time(page)).to_have_text(text_of(scenario))
    assert parse_qs(urlsplit(page.url).query) == parse_qs(query(scenario))
    expect(wrong).to_have_count(0)

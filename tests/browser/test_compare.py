"""The page Compare in a browser: links of whole comparisons, pins from page to page, one zoom."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import triosim as ts
from dashboard.compare_links import link_to
from triosim.compare import compare

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser
Visits = Callable[..., Any]
SMALL = ts.TrainScenario(
    model=None, layers=4, hidden=256, heads=4, ffn=512, vocab=1000, seq_len=256, gpus=4
)
FOUR = (
    ts.Scenario(case=1, gpus=4),
    ts.Scenario(case=2, gpus=4),
    SMALL,
    replace(SMALL, tp=2),
)


def test_a_link_of_four_opens_for_a_stranger(visit: Visits) -> None:
    one = visit(stranger=True)
    page = one.page
    page.goto(f"{one.address}/compare?" + urlencode({**link_to(FOUR), "against": "C"}))
    # Four steps, from a server whose workers may just be starting.
    expect(page.get_by_text("baseline", exact=True)).to_be_visible(timeout=90_000)
    found = compare(*FOUR)
    for number in (1, 2, 3):
        expect(page.get_by_text(found.paragraph(number).split(":")[0]).first).to_be_visible()
    expect(page.get_by_text(re.compile(r"\(A\) to .* \(C\)"))).to_be_visible()
    page.get_by_role("tab", name="Timelines").click()
    expect(page.locator("[data-testid=stPlotlyChart] .subplot.xy4").first).to_be_attached()
    page.get_by_role("tab", name="Memory").click()
    expect(page.locator("[data-testid=stPlotlyChart] .scatterlayer .trace")).to_have_count(4)
    page.get_by_role("tab", name="Settings").click()
    expect(page.locator("[data-testid=stDataFrame]")).to_be_visible()
    expect(page).to_have_url(re.compile("picture=Settings"))
    assert one.complaints == []
    hosts = {url.split("/")[2] for url in one.requests if url.startswith("http")}
    assert hosts == {one.address.removeprefix("http://")}


def test_a_pinned_result_is_compared_with_one_of_another_page(visit: Visits) -> None:
    one = visit()
    page = one.open("/simulate?v=1&gpus=4")
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.get_by_role("button", name="Pinned")).to_be_visible()
    page.get_by_role("link", name="Start").click()
    page.get_by_role("link", name="Train").click()
    page.get_by_role("button", name="Compare with pinned").click()
    expect(page).to_have_url(re.compile(r"/compare\?.*scenarios="))
    expect(page.get_by_text("distributed data parallel, 4 GPUs").first).to_be_visible()
    expect(page.get_by_text("llama3-8b on 8 GPUs").first).to_be_visible()
    expect(page.get_by_text("slower").first).to_be_visible()
    link = page.url
    page.get_by_role("button", name="Baseline").click()
    expect(page.get_by_text("faster").first).to_be_visible()
    assert page.url != link
    page.get_by_role("link", name="Simulate").click()
    expect(page.locator("h3").first).to_contain_text("distributed data parallel, 4 GPUs")
    page.go_back()
    expect(page.locator("h3").first).to_have_text("Compare")
    expect(page.get_by_text("faster").first).to_be_visible()
    # Streamlit has left the parameters of Compare in the entry of the page that opened it.
    page.go_back()
    expect(page.locator("h3").first).to_contain_text("llama3-8b on 8 GPUs")
    expect(page.get_by_text("Not everything in this link")).to_have_count(0)
    assert one.complaints == []


def test_a_zoom_into_one_timeline_is_a_zoom_into_all(visit: Visits) -> None:
    one = visit()
    page = one.open("/compare?" + urlencode({**link_to(FOUR[:2]), "picture": "Timelines"}))
    chart = page.locator("[data-testid=stPlotlyChart] .js-plotly-plot").first
    drag = chart.locator(".nsewdrag[data-subplot=xy]").bounding_box()
    page.mouse.move(drag["x"] + 0.5 * drag["width"], drag["y"] + drag["height"] / 2)
    page.mouse.down()
    page.mouse.move(drag["x"] + 0.7 * drag["width"], drag["y"] + drag["height"] / 2, steps=5)
    page.mouse.up()
    page.wait_for_function(
        "chart => chart._fullLayout.xaxis.range[0] > 0", arg=chart.element_handle()
    )
    ranges = chart.evaluate(
        "chart => Object.keys(chart._fullLayout._plots).map("
        "name => chart._fullLayout._plots[name].xaxis.range)"
    )
    assert len(ranges) == 2
    assert ranges[0] == ranges[1]
    assert one.complaints == []


def test_a_comparison_is_taken_along_and_comes_back(visit: Visits, tmp_path: Path) -> None:
    one = visit()
    page = one.open("/compare?" + urlencode(link_to(FOUR[:2])))
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Comparison (JSON)").click()
    file = tmp_path / "comparison.json"
    download.value.save_as(file)
    other = visit()
    other.page.goto(f"{other.address}/compare")
    other.page.locator("input[type=file]").set_input_files(file)
    paragraph = compare(*FOUR[:2]).paragraph(1).split(":")[0]
    expect(other.page.get_by_text(paragraph).first).to_be_visible()
    expect(other.page).to_have_url(re.compile("scenarios="))
    assert one.complaints == other.complaints == []


def test_nothing_scrolls_sideways_on_a_phone(visit: Visits) -> None:
    one = visit(stranger=True)
    one.page.set_viewport_size({"width": 390, "height": 844})
    page = one.open("/compare?" + urlencode(link_to(FOUR)))
    expect(page.get_by_text("baseline", exact=True)).to_be_visible()
    for tab in ("Where the difference is", "Timelines", "Memory"):
        page.get_by_role("tab", name=tab).click()
        panel = page.get_by_role("tabpanel", name=tab)
        expect(panel.locator("[data-testid=stPlotlyChart] .main-svg").first).to_be_visible()
        wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0
    assert one.complaints == []

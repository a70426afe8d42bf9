"""The page Validation in a browser: a point opens its run, Back returns, files can be taken."""

import csv
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.browser.acting import choose, click_until, middle

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser
Visits = Callable[..., Any]
PATIENCE_MS = 120_000  # predictions come from a worker, and a loaded machine is slow, not wrong


def test_a_source_is_drawn_and_stays_on_this_machine(patient_visit: Visits) -> None:
    one = patient_visit()
    page = one.open("/validation?v=1&source=torchgpipe")
    expect(page.get_by_test_id("stMetricValue").first).to_contain_text("%")
    expect(page.get_by_test_id("stPlotlyChart").locator(".point")).to_have_count(8)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    assert one.complaints == []
    hosts = {url.split("/")[2] for url in one.requests if url.startswith("http")}
    assert hosts == {one.address.removeprefix("http://")}


def test_a_click_on_a_point_opens_the_run_and_back_returns(patient_visit: Visits) -> None:
    one = patient_visit()
    page = one.open("/validation")
    # The first predictions are on the page before all are made.
    point = page.get_by_test_id("stPlotlyChart").first.locator(".point").last
    expect(page.get_by_text(re.compile("of 53 runs predicted"))).to_have_count(
        0, timeout=PATIENCE_MS
    )
    expect(page.get_by_text(re.compile("asked for: 8 % or less: .*met"))).to_be_visible()
    opened = partial(expect(page).to_have_url, re.compile(r"/train\?v=1"))
    click_until(opened, page, lambda: middle(point.bounding_box()))
    expect(page.get_by_text("Published by TorchTitan")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("How far off are the predictions?")).to_be_visible()
    assert one.complaints == []


def test_the_source_is_in_the_address_and_comes_back(patient_visit: Visits) -> None:
    page = patient_visit().open("/validation?v=1&source=torchgpipe")
    source = page.get_by_role("combobox", name="Source")
    choose(source, page.get_by_role("option", name="bubble-rates"))
    expect(page).to_have_url(re.compile("source=bubble-rates"))
    expect(page.get_by_text("48 of 48")).to_be_visible()
    page.get_by_role("link", name="Start").click()
    expect(page.get_by_text("What happens to a training step")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("48 of 48")).to_be_visible()


def test_downloads_hold_what_they_say(patient_visit: Visits, tmp_path: Path) -> None:
    page = patient_visit().open("/validation?v=1&source=torchgpipe")
    page.get_by_role("button", name="Export").click()
    for label, file in (("Table (CSV)", "table"), ("Step time (HTML)", "picture")):
        with page.expect_download() as caught:
            page.get_by_role("button", name=label).click()
        caught.value.save_as(tmp_path / file)
    rows = list(csv.DictReader((tmp_path / "table").read_text().splitlines()))
    assert len(rows) == 8
    assert float(rows[0]["published (s)"]) == pytest.approx(220 / 81.796)
    offline = page.context.new_page()
    requests: list[str] = []
    offline.on("request", lambda request: requests.append(request.url))
    offline.goto((tmp_path / "picture").rename(tmp_path / "picture.html").as_uri())
    expect(offline.locator(".point")).to_have_count(8)
    assert [url for url in requests if not url.startswith(("file:", "data:", "blob:"))] == []
    offline.close()


def test_a_switch_of_the_question_moves_its_own_line(patient_visit: Visits) -> None:
    one = patient_visit()
    aspect = "Why%20does%20compile%20gain%20more%20on%20128%20GPUs%3F"
    page = one.open(f"/validation?v=1&aspect={aspect}")
    expect(page.get_by_text("None of the four is")).to_be_visible()
    points = page.get_by_test_id("stPlotlyChart").locator(".scatterlayer .trace").last
    before = points.inner_html()
    page.get_by_text("Exposed gather").first.click()
    expect(page).to_have_url(re.compile("why_exposed-gather=true"))
    page.wait_for_function(
        "([before]) => [...document.querySelectorAll('.scatterlayer .trace')].at(-1).innerHTML"
        " !== before",
        arg=[before],
    )
    assert one.complaints == []


@pytest.mark.parametrize("aspect", ["One%20source&source=torchgpipe", "All%20sources"])
def test_nothing_is_wider_than_a_phone(patient_visit: Visits, aspect: str) -> None:
    one = patient_visit()
    one.page.set_viewport_size({"width": 390, "height": 844})
    page = one.open(f"/validation?v=1&aspect={aspect}")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390

"""What every page gives along and takes back, in a browser."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import triosim as ts

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser
Visits = Callable[..., Any]


def test_a_chart_is_a_file_that_needs_nothing_else(visit: Visits, tmp_path: Path) -> None:
    one = visit()
    page = one.open("/simulate?v=1&tab=Memory")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as HTML: Memory in use on GPU 0").click()
    file = tmp_path / "memory.html"
    download.value.save_as(file)
    assert download.value.suggested_filename == "memory-in-use-on-gpu-0.html"
    other = visit(stranger=True)
    other.page.goto(file.as_uri())
    expect(other.page.locator(".main-svg").first).to_be_visible()
    expect(other.page.locator(".legendtext").first).to_be_visible()
    assert [url for url in other.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert one.complaints == other.complaints == []


def test_a_saved_scenario_opens_where_it_belongs(visit: Visits, tmp_path: Path) -> None:
    file = tmp_path / "scenario.json"
    file.write_text(ts.Scenario(case=1, gpus=16, rank_speed={3: 0.5}).to_json(), encoding="utf-8")
    one = visit()
    page = one.open("/simulate?v=1&gpus=4&case=2")
    page.get_by_role("button", name="Export").click()
    page.get_by_test_id("stPopoverBody").locator("input[type=file]").set_input_files(file)
    heading = page.locator("h3").first
    expect(heading).to_contain_text("standard data parallel, 16 GPUs")
    expect(page.get_by_label("GPUs, exact")).to_have_value("16")
    values = {**json.loads(file.read_text(encoding="utf-8")), "gpus": 8}
    file.write_text(json.dumps(values), encoding="utf-8")
    page.goto(f"{one.address}/train?v=1&look=Export")
    panel = page.get_by_role("tabpanel", name="Export")
    panel.locator("input[type=file]").set_input_files(file)
    expect(heading).to_contain_text("standard data parallel, 8 GPUs")
    assert one.complaints == []

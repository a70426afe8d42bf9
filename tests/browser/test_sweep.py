"""The page Sweep and search in a browser: a cell opens its step, Back returns, Stop stops."""

import csv
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.browser.acting import click_until, middle

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser
Visits = Callable[..., Any]
PATIENCE_MS = 120_000  # steps come from workers, and a loaded machine is slow, not wrong


def complete(page: Any) -> None:
    """Every step is there."""
    expect(page.get_by_test_id("stProgress")).to_have_count(0, timeout=PATIENCE_MS)


def grid(first: str, over: str, second: str, over2: str) -> str:
    pairs = {"vary": first, "over": over, "vary2": second, "over2": over2}
    return "/sweep?v=1&" + "&".join(f"{name}={quote(text)}" for name, text in pairs.items())


def test_a_click_on_a_cell_opens_its_step_and_back_returns(patient_visit: Visits) -> None:
    one = patient_visit()
    page = one.open(grid("tp", "1, 2", "recompute", "none, full, selective-op"))
    complete(page)
    cells = page.locator("[data-testid=stPlotlyChart] .scatterlayer .trace").last.locator(".point")
    expect(cells).to_have_count(6)
    # The second row and the second column: tp 2 with full recomputation.
    opened = partial(expect(page).to_have_url, re.compile(r"/train\?.*tp=2"))
    click_until(opened, page, lambda: middle(cells.nth(4).bounding_box()))
    expect(page).to_have_url(re.compile("recompute=full"))
    page.go_back()
    expect(page.get_by_text("Sweep over Tensor parallel and Recompute")).to_be_visible()
    expect(page.get_by_test_id("stProgress")).to_have_count(0)
    expect(cells).to_have_count(6)
    assert "vary2=recompute" in page.url
    # What the fields say is what is drawn.
    expect(page.get_by_role("combobox", name="and through")).to_have_value("Memory: Recompute")
    assert one.complaints == []


def test_a_sweep_can_be_stopped_and_goes_on(patient_visit: Visits) -> None:
    one = patient_visit()
    page = one.page
    page.goto(one.address + grid("extra_ms_per_step", "0 to 80 step 1", "tp", "1, 2"))
    # Streamlit's own header has a button of that name while a script runs.
    stop = page.get_by_test_id("stMain").get_by_role("button", name="Stop")
    page.get_by_role("button", name="Run the sweep").click()
    stop.click()
    said = page.get_by_text(re.compile(r"Stopped with [\d,]+ of 162 steps"))
    expect(said).to_be_visible()
    done = int(re.search(r"with ([\d,]+) of", said.inner_text())[1].replace(",", ""))
    assert done < 162
    page.wait_for_timeout(2000)
    expect(said).to_contain_text(f"Stopped with {done:,} of")
    page.get_by_role("button", name="Go on").click()
    expect(stop).to_be_visible()
    stop.click()
    expect(said).to_be_visible()


def test_a_sweep_of_the_pinned_step_is_in_the_address(patient_visit: Visits) -> None:
    one = patient_visit()
    page = one.open("/simulate?v=1")
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.get_by_role("button", name="Pinned")).to_be_visible()
    page.get_by_role("button", name="Explore").click()
    page.get_by_text("Sweep and search").click()
    page.get_by_role("button", name="Another step").click()
    page.get_by_role("button", name="The pinned one").click()
    expect(page.get_by_text("Sweep over GPUs")).to_be_visible()
    page.keyboard.press("Escape")
    complete(page)
    expect(page.get_by_text("Base: transformer")).to_be_visible()
    expect(page).to_have_url(re.compile("base="))


def test_the_table_opens_a_step_and_is_a_file(patient_visit: Visits, tmp_path: Path) -> None:
    page = patient_visit().page
    page.goto(patient_visit().address + grid("tp", "1, 3", "pp", "1") + "&drawn=Table")
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()
    complete(page)
    with page.expect_download() as caught:
        page.get_by_role("button", name="Table (CSV)").last.click()
    caught.value.save_as(tmp_path / "table")
    rows = list(csv.DictReader((tmp_path / "table").read_text().splitlines()))
    assert [row["tp"] for row in rows] == ["1", "3"]
    assert float(rows[0]["step_ms"]) > 0
    assert "must divide the 8 GPUs" in rows[1]["problem"]


def test_nothing_is_wider_than_a_phone(patient_visit: Visits) -> None:
    one = patient_visit()
    one.page.set_viewport_size({"width": 390, "height": 844})
    page = one.page
    page.goto(one.address + grid("tp", "1, 2, 3", "pp", "1, 2"))
    expect(page.get_by_text("Sweep over")).to_be_visible()
    complete(page)
    drawings = {
        "Picture": "stPlotlyChart",
        "Memory against speed": "stPlotlyChart",
        "Table": "stDataFrame",
        "Left out": "stDataFrame",
    }
    for name, drawing in drawings.items():
        page.get_by_role("tab", name=name).click()
        panel = page.get_by_role("tabpanel", name=name)
        expect(panel.get_by_test_id(drawing).first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_search_ranks_layouts_and_opens_one(patient_visit: Visits) -> None:
    one = patient_visit()
    page = one.page
    page.goto(
        one.address + "/sweep?v=1&part=Search&find_model=gpt2&find_gpus=4&find_batch=16"
        "&find_micro=2&find_recompute=none&find_schedules=1f1b"
    )
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.get_by_text("Fastest layout", exact=True)).to_be_visible()
    bar = page.get_by_test_id("stPlotlyChart").locator(".barlayer .point").first
    opened = partial(expect(page).to_have_url, re.compile(r"/train\?.*model=gpt2"))
    click_until(opened, page, lambda: middle(bar.bounding_box()))
    page.go_back()
    expect(page.get_by_text("Fastest layout", exact=True)).to_be_visible()
    assert one.complaints == []

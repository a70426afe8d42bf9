"""A click on a gap in a browser says why; the list does the same from the keyboard."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.browser.acting import SHORT_MS, click_until, middle, until

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser
Visits = Callable[..., Any]
CENTRES = """all => all.map(point => {
  const box = point.getBoundingClientRect();
  return [box.y + box.height / 2, box.x + box.width / 2];
})"""


def widest(bars: Any) -> dict[str, float]:
    """The box of the widest bar of a trace."""
    boxes = [box for i in range(bars.count()) if (box := bars.nth(i).bounding_box())]
    assert boxes
    return max(boxes, key=lambda box: box["width"])


def says(page: Any, text: str | re.Pattern[str]) -> Callable[..., None]:
    """What is expected of the panel beside the picture."""
    return partial(expect(page.locator(".st-key-explained_panel")).to_contain_text, text)


def middle_of_widest(plot: Any, trace: int) -> tuple[float, float]:
    """Of the bars of one trace of a chart."""
    plot.scroll_into_view_if_needed()
    return middle(widest(plot.locator(".barlayer .trace").nth(trace).locator(".point")))


def test_a_click_on_a_gap_says_why(visit: Visits) -> None:
    one = visit()
    page = one.open("/simulate?v=1&case=2&gpus=8")
    said = page.locator(".st-key-explained_panel")
    expect(page.get_by_role("combobox", name="Longest gaps of GPU 0")).to_be_visible()
    expect(said).to_have_count(0)
    plot = page.locator("[data-testid=stPlotlyChart]").nth(1)
    plot.locator(".barlayer .trace").last.locator(".point").last.wait_for(state="attached")
    gaps = partial(middle_of_widest, plot, -1)  # they are drawn last
    click_until(says(page, "GPU 0 computes nothing for"), page, gaps)
    expect(said).to_contain_text("waits for a transfer: all-reduce of bucket 5 of 5")
    # A bar that is no gap explains itself as well.
    text = re.compile(r"\(forward\) takes .* on GPU 0, stream compute")
    click_until(says(page, text), page, partial(middle_of_widest, plot, 0))
    assert one.complaints == []


def test_a_click_on_a_gap_of_a_training_step_says_why(visit: Visits) -> None:
    one = visit()
    page = one.open("/train?v=1&model=llama3.2-1b&world=16&pp=2")
    expect(page.get_by_role("combobox", name="Longest gaps of stage 0")).to_be_visible()
    plot = page.locator("[data-testid=stPlotlyChart]").first
    plot.scroll_into_view_if_needed()
    gaps = plot.locator(".barlayer .trace")

    def bubble() -> tuple[float, float]:
        boxes = [widest(gaps.nth(i).locator(".point")) for i in range(gaps.count())]
        return middle(max(boxes[3:] or boxes, key=lambda box: box["width"]))

    said = page.locator(".st-key-explained_panel")
    click_until(says(page, "computes nothing for"), page, bubble)
    expect(said).to_contain_text("waits for another stage")
    assert one.complaints == []


def test_a_click_on_a_raster_explains_what_is_there(patient_visit: Visits) -> None:
    one = patient_visit()
    page = one.open("/train?v=1&model=llama3.2-1b&world=8&pp=8&batch=512&train_path=true")
    expect(page.get_by_text("The critical path by kind", exact=True)).to_be_visible()
    plot = page.locator("[data-testid=stPlotlyChart]").first
    plot.scroll_into_view_if_needed()
    # The first stretch of the last stage: its first backward pass takes most of it.
    points = plot.locator(".scatterlayer .point")
    points.first.wait_for(state="attached")
    said = page.locator(".st-key-explained_panel")

    def first_of_last_stage() -> tuple[float, float]:
        boxes = points.evaluate_all(CENTRES)
        assert boxes
        lowest = max(y for y, _ in boxes)
        return min(x for y, x in boxes if lowest - y < 1), lowest

    click_until(says(page, "layers backward 0 (backward) takes"), page, first_of_last_stage)
    expect(said).to_contain_text("on stage 7, stream compute")
    assert "backward 0" in said.inner_text()
    assert one.complaints == []


def test_the_longest_gap_can_be_chosen_by_keyboard(visit: Visits) -> None:
    one = visit()
    page = one.open("/simulate?v=1&case=1&gpus=8")
    page.locator(".st-key-chart_operators .main-svg").first.wait_for()
    gaps = page.get_by_role("combobox", name="Longest gaps of GPU 0")

    def take_the_first() -> None:
        gaps.focus()
        page.keyboard.press("ArrowDown")
        expect(page.get_by_role("option").first).to_be_visible(timeout=SHORT_MS)
        page.keyboard.press("Enter")

    until(says(page, "all-reduce of all gradients"), take_the_first)
    page.get_by_text("Critical path", exact=True).click()
    expect(page.get_by_text("The critical path by kind", exact=True)).to_be_visible()
    page.get_by_role("button", name="What would make it shorter?").click()
    expect(page.get_by_text("Order, plan and algorithms stay as they are")).to_be_visible()
    assert one.complaints == []

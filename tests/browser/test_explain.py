"""A click on a gap in a browser says why; the list does the same from the keyboard."""

import contextlib
import re
from collections.abc import Callable
from typing import Any

import pytest

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser
Visits = Callable[..., Any]
CENTRES = """all => all.map(point => {
  const box = point.getBoundingClientRect();
  return [box.y + box.height / 2, box.x + box.width / 2];
})"""

NEXT_PICTURE = """() => new Promise(done => requestAnimationFrame(
  () => requestAnimationFrame(done)
))"""


def widest(bars: Any) -> dict[str, float]:
    """The box of the widest bar of a trace."""
    boxes = [bars.nth(i).bounding_box() for i in range(bars.count())]
    return max((box for box in boxes if box), key=lambda box: box["width"])


def click_on_a_gap(page: Any, chart: int) -> None:
    """Gaps are drawn last: the last trace of bars."""
    plot = page.locator("[data-testid=stPlotlyChart]").nth(chart)
    bars = plot.locator(".barlayer .trace").last.locator(".point")
    bars.last.wait_for(state="attached")
    plot.scroll_into_view_if_needed()
    box = widest(bars)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def test_a_click_on_a_gap_says_why(visit: Visits) -> None:
    one = visit()
    page = one.open("/simulate?v=1&case=2&gpus=8")
    said = page.locator(".st-key-explained_panel")
    expect(page.get_by_role("combobox", name="Longest gaps of GPU 0")).to_be_visible()
    expect(said).to_have_count(0)
    click_on_a_gap(page, 1)
    expect(said).to_contain_text("GPU 0 computes nothing for")
    expect(said).to_contain_text("waits for a transfer: all-reduce of bucket 5 of 5")
    # A bar that is no gap explains itself as well.
    bar = page.locator("[data-testid=stPlotlyChart]").nth(1).locator(".barlayer .trace").first
    box = widest(bar.locator(".point"))
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(said).to_contain_text(re.compile(r"\(forward\) takes .* on GPU 0, stream compute"))
    assert one.complaints == []


def test_a_click_on_a_gap_of_a_training_step_says_why(visit: Visits) -> None:
    one = visit()
    page = one.open("/train?v=1&model=llama3.2-1b&world=16&pp=2")
    expect(page.get_by_role("combobox", name="Longest gaps of stage 0")).to_be_visible()
    plot = page.locator("[data-testid=stPlotlyChart]").first
    plot.scroll_into_view_if_needed()
    gaps = plot.locator(".barlayer .trace")
    boxes = [widest(gaps.nth(i).locator(".point")) for i in range(gaps.count())]
    bubble = max(boxes[3:] or boxes, key=lambda box: box["width"])
    page.mouse.click(bubble["x"] + bubble["width"] / 2, bubble["y"] + bubble["height"] / 2)
    said = page.locator(".st-key-explained_panel")
    expect(said).to_contain_text("computes nothing for")
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
    for _ in range(5):  # the page may still be settling under the mouse
        boxes = points.evaluate_all(CENTRES)
        lowest = max(y for y, _ in boxes)
        page.mouse.click(min(x for y, x in boxes if lowest - y < 1), lowest)
        with contextlib.suppress(AssertionError):
            expect(said).to_contain_text("layers backward 0 (backward) takes", timeout=10_000)
            break
    expect(said).to_contain_text("on stage 7, stream compute")
    assert "backward 0" in said.inner_text()
    assert one.complaints == []


def test_the_longest_gap_can_be_chosen_by_keyboard(visit: Visits) -> None:
    one = visit()
    page = one.open("/simulate?v=1&case=1&gpus=8")
    page.locator(".st-key-chart_operators .main-svg").first.wait_for()
    page.get_by_role("combobox", name="Longest gaps of GPU 0").focus()
    page.evaluate(NEXT_PICTURE)  # focus scrolls there, and a list closes where the page scrolls
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("Enter")
    said = page.locator(".st-key-explained_panel")
    expect(said).to_contain_text("all-reduce of all gradients")
    page.get_by_text("Critical path", exact=True).click()
    expect(page.get_by_text("The critical path by kind", exact=True)).to_be_visible()
    page.get_by_role("button", name="What would make it shorter?").click()
    expect(page.get_by_text("Order, plan and algorithms stay as they are")).to_be_visible()
    assert one.complaints == []

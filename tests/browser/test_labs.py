"""The labs in a browser: predict, commit, reveal; on a phone; one class in two browsers."""

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser
Visits = Callable[..., Any]
PATIENCE_MS = 60_000  # the first chart of a browser loads the code that draws it
CHART = "[data-testid=stPlotlyChart] .main-svg"


def go(one: Any, path: str) -> Any:
    """A page that has no chart yet."""
    one.page.goto(one.address + path)
    one.page.get_by_role("button", name="Show me").wait_for()
    return one.page


def answer(page: Any, value: str) -> None:
    page.get_by_label("Your answer").fill(value)
    page.get_by_role("button", name="Commit").click()


def width(page: Any) -> int:
    return page.evaluate("document.documentElement.scrollWidth")


def test_predict_commit_reveal_and_play(visit: Visits) -> None:
    one = visit()
    page = go(one, "/lab_pipeline")
    assert page.locator(CHART).count() == 0
    answer(page, "33")
    expect(page.get_by_text("That is plain 1F1B")).to_be_visible()
    assert page.locator(CHART).count() == 0
    assert "33" not in urlsplit(page.url).query
    answer(page, "28.5")
    expect(page.get_by_text("Right: 28.5")).to_be_visible()
    page.locator(CHART).first.wait_for(timeout=PATIENCE_MS)
    slider = page.get_by_role("slider", name="Transfer to the next stage")
    slider.focus()
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("p1_transfer=0.1"))
    expect(page.get_by_text("Your guess was for the question's scenario.")).to_be_visible()
    expect(page.get_by_text("more than the formula")).to_be_visible()
    page.get_by_role("button", name="Reset to the question").click()
    expect(page.get_by_text("both give 28.5 units of time")).to_be_visible()
    assert one.complaints == []
    hosts = {url.split("/")[2] for url in one.requests if url.startswith("http")}
    assert hosts == {one.address.removeprefix("http://")}


def test_a_slider_that_moves_quickly_stays_connected(visit: Visits) -> None:
    one = visit()
    page = go(one, "/lab_tensor")
    page.get_by_role("button", name="Show me").click()
    page.locator(CHART).first.wait_for(timeout=PATIENCE_MS)
    page.locator("input[type=range]").first.focus()
    for _ in range(20):
        page.keyboard.press("Home")
        for _ in range(4):
            page.keyboard.press("ArrowRight")
        page.wait_for_timeout(350)  # runs end in between, and the next ones are cut short
    app = page.locator(".stApp")
    expect(app).to_have_attribute("data-test-script-state", "notRunning")
    expect(app).to_have_attribute("data-test-connection-state", "CONNECTED")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert one.complaints == []


def test_enter_commits_and_a_link_opens_another_question(visit: Visits) -> None:
    one = visit()
    page = go(one, "/lab_pipeline?v=1&pipeline_q=P2&p2_schedule=gpipe")
    expect(page.get_by_text("8 equal stages")).to_be_visible()
    field = page.get_by_label("Your answer")
    field.fill("63")
    field.press("Enter")
    expect(page.get_by_text("Right: 63")).to_be_visible()
    page.locator(CHART).first.wait_for(timeout=PATIENCE_MS)
    expect(page.get_by_role("combobox", name=re.compile("Schedule")).first).to_have_value("gpipe")
    assert one.complaints == []


def test_predict_works_on_a_phone(visit: Visits) -> None:
    one = visit()
    one.page.set_viewport_size({"width": 390, "height": 844})
    for path in ("/lab_pipeline", "/lab_data_parallel", "/network?v=1&ask=C3"):
        page = go(one, path)
        commit = page.get_by_role("button", name="Commit")
        commit.scroll_into_view_if_needed()
        box = commit.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert width(page) <= 390
        page.get_by_role("button", name="Show me").click()
        page.locator(CHART).first.wait_for(timeout=PATIENCE_MS)
        expect(page.get_by_text("Not modelled", exact=True)).to_be_visible()
        assert width(page) <= 390
    assert one.complaints == []


def test_an_unknown_preset_is_named_and_the_page_works(visit: Visits) -> None:
    one = visit()
    page = go(one, "/lab_data_parallel?v=1&present=1&preset=nobody")
    expect(page.get_by_text("preset nobody: must be one of seminar-10")).to_be_visible()
    page.get_by_role("button", name="Show me").click()
    page.locator(CHART).first.wait_for(timeout=PATIENCE_MS)
    assert one.complaints == []


def test_a_mesh_is_placed_redistributed_and_multiplied(visit: Visits) -> None:
    one = visit()
    page = go(one, "/lab_mesh")
    assert page.locator(CHART).count() == 0
    answer(page, "3")
    expect(page.get_by_text("There are three rows.")).to_be_visible()
    answer(page, "9")
    expect(page.get_by_text("Right: 9 ranks")).to_be_visible()
    drawing = page.locator(f".st-key-mesh_tensor {CHART}").first
    drawing.wait_for(timeout=PATIENCE_MS)
    expect(drawing.get_by_text("29", exact=True)).to_be_visible()
    page.get_by_role("radio", name="Redistribute").or_(
        page.get_by_role("button", name="Redistribute")
    ).first.click()
    expect(page.get_by_text("all-gather, all-gather")).to_be_visible()
    expect(page).to_have_url(re.compile("m1_view=Redistribute"))
    assert "9" not in re.sub(r".*\?", "", page.url)
    assert one.complaints == []

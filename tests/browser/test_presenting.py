"""Presenting in a browser: the keys, nothing to scroll, a class of two browsers, a phone."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from dashboard.seminar.presets import Preset, read_folder
from triosim.lab import question

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser
Visits = Callable[..., Any]
PRESETS = list(read_folder()[0].values())
SHORT = PRESETS[0]
PATIENCE_MS = 120_000
CHART = "[data-testid=stPlotlyChart] .main-svg"
AT_REST = """() => {
  const app = document.querySelector("[data-testid=stApp]");
  const charts = [...document.querySelectorAll("[data-testid=stPlotlyChart]")];
  return window.triosimFit && app.dataset.testScriptState === "notRunning" &&
    !document.querySelector("[data-testid=stSkeleton]") &&
    charts.every((chart) => !chart.offsetParent || chart.querySelector(".main-svg"));
}"""
# Formulas that run out of their column, and charts of which something lies outside their box.
WIDE = """[...document.querySelectorAll(".katex-display")]
  .some((math) => math.scrollWidth > math.clientWidth + 3)"""
CUT = """[...document.querySelectorAll(".js-plotly-plot")].some((plot) => {
    const inner = plot.querySelector(".svg-container")?.getBoundingClientRect();
    const box = plot.closest("[data-testid=stPlotlyChart]").getBoundingClientRect();
    return inner && (inner.bottom > box.bottom + 2 || inner.right > box.right + 2 ||
      getComputedStyle(plot).overflowY !== "visible");
  })"""
# Charts are drawn again while they are fitted: it is asked of the labels that are there.
LARGE = f"""() => {{
  const label = document.querySelector("{CHART} .xtick text");
  return label && parseFloat(getComputedStyle(label).fontSize) >= 18;
}}"""
FITS = """() => {
  const find = (id) => document.querySelector(`[data-testid=${id}]`).getBoundingClientRect();
  const shown = document.querySelector("[data-testid=stMainBlockContainer] > *");
  const rect = shown.getBoundingClientRect(), main = document.querySelector("[data-testid=stMain]");
  return rect.bottom <= find("stBottom").top + 1 && rect.right <= innerWidth + 1 &&
    find("stBottom").bottom <= innerHeight + 1 && getComputedStyle(main).overflowY === "hidden" &&
    !WIDE() && !CUT();
}""".replace("WIDE()", WIDE).replace("CUT()", CUT)


def rest(page: Any) -> None:
    page.wait_for_function(AT_REST, timeout=PATIENCE_MS)


def present(one: Any, preset: Preset, number: int = 1) -> Any:
    """A step by the one address that every preset's step has."""
    one.page.goto(f"{one.address}/seminar?present=1&preset={preset.name}&slide={number}")
    expect(one.page.get_by_text(f"step {number} of {len(preset.steps)}")).to_be_visible(
        timeout=PATIENCE_MS
    )
    rest(one.page)
    return one.page


def test_the_keys_walk_through_the_shipped_preset_without_scrolling(visit: Visits) -> None:
    one = visit()
    page = present(one, SHORT)
    for number, step in enumerate(SHORT.steps, 1):
        expect(page.get_by_text(f"step {number} of {len(SHORT.steps)}")).to_be_visible()
        expect(page).to_have_url(re.compile(f"slide={number}(&|$)"))
        rest(page)
        page.wait_for_function(FITS)
        for place, part in enumerate(step.reveal, 1):
            assert page.get_by_role("button", name=f"Reveal {part}").is_visible()
            page.keyboard.press("r")
            after = f"Reveal {step.reveal[place]}" if place < len(step.reveal) else "All revealed"
            expect(page.get_by_role("button", name=after)).to_be_visible(timeout=PATIENCE_MS)
            rest(page)
            page.wait_for_function(FITS)
        page.keyboard.press("ArrowRight")
    last = len(SHORT.steps)
    expect(page.get_by_text(f"step {last} of {last}")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_text(f"step {last - 1} of {last}")).to_be_visible()
    assert one.complaints == []
    hosts = {url.split("/")[2] for url in one.requests if url.startswith("http")}
    assert hosts == {one.address.removeprefix("http://")}


def question_step(preset: Preset, name: str) -> int:
    return [step.question for step in preset.steps].index(name) + 1


def test_a_slide_in_both_schemes_with_its_note_and_its_controls(visit: Visits) -> None:
    one = visit()
    number = question_step(SHORT, "P1")
    page = present(one, SHORT, number)
    text = page.locator(".st-key-slide_question p").first
    expect(text).to_have_css("color", "rgb(0, 0, 0)")
    page.emulate_media(color_scheme="dark")
    expect(text).to_have_css("color", "rgb(255, 255, 255)", timeout=PATIENCE_MS)
    expect(page.get_by_test_id("stMain")).to_have_css("background-color", "rgb(0, 0, 0)")
    note = page.get_by_text(SHORT.steps[number - 1].note)
    expect(note).to_have_count(0)
    page.get_by_text("Note", exact=True).click()
    expect(note).to_be_visible()
    for test_id in ("stSidebar", "stHeader"):
        expect(page.get_by_test_id(test_id)).to_be_hidden()
    for name in ("Reveal class", "Reveal answer", "Reveal picture"):
        page.get_by_role("button", name=name).click()
    expect(page.locator(CHART).first).to_be_visible(timeout=PATIENCE_MS)
    slider = page.get_by_role("slider", name="Stages")
    expect(slider).to_be_hidden()
    page.wait_for_function(LARGE)
    page.get_by_text("Controls", exact=True).click()
    expect(slider).to_be_visible()
    slider.focus()
    page.keyboard.press("ArrowRight")  # moves the slider, and not on to the next step
    expect(page).to_have_url(re.compile("p1_stages=5"))
    page.get_by_role("button", name="Reset to the question").click()
    expect(page.get_by_role("button", name="Reveal class")).to_be_visible()
    expect(page).not_to_have_url(re.compile("p1_stages"))
    expect(page).to_have_url(re.compile("p1_schedule=interleaved"))
    assert one.complaints == []


def test_two_browsers_see_one_class_count(visit: Visits) -> None:
    teacher, student = visit(), visit(stranger=True)
    board = present(teacher, SHORT, question_step(SHORT, "P1"))
    # Whoever presented on this server before has shown the class's answers.
    board.get_by_role("button", name="Reset to the question").click()
    expect(board.get_by_text("0 answers, hidden")).to_be_visible()
    page = student.page
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{student.address}/seminar?preset={SHORT.name}")
    page.locator(".st-key-follow").get_by_role("link", name="P1").click()
    field = page.get_by_label("Your answer")
    field.fill("33")
    commit = page.get_by_role("button", name="Commit")
    commit.scroll_into_view_if_needed()
    box = commit.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    commit.click()
    for one in (page, board):
        expect(one.get_by_text("Class: 1 answer, hidden")).to_be_visible()
        expect(one.locator(CHART)).to_have_count(0)
    board.keyboard.press("r")
    for one in (page, board):
        expect(one.get_by_text("Class: 1 answer", exact=True)).to_be_visible()
        expect(one.locator(CHART).first).to_be_visible(timeout=PATIENCE_MS)
    assert question("P1").why not in page.inner_text("[data-testid=stMain]")
    assert teacher.complaints == student.complaints == []

"""The page Traces in a real browser: uploads, markup in names, the way to Simulate."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dashboard.traces_table import chosen, operators_of
from triosim import load_trace
from triosim.scenario import SAMPLE_TRACES

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser
Visits = Callable[..., Any]
EVIL = '<img src="http://example.org/i" onerror="alert(1)">![i](http://example.org/j)<b>x</b>'
# Labels of the treemap as the browser shows them.
LABELS = """() => [...document.querySelectorAll(".treemaplayer text")].map(t => t.textContent)"""


def give(page: Any, *files: Any) -> None:
    page.locator("input[type=file]").set_input_files(list(files))


def assert_quiet(one: Any) -> None:
    """No complaint, no exception, and nothing asked of another machine."""
    expect(one.page.get_by_test_id("stException")).to_have_count(0)
    assert one.complaints == []
    inside = ("data:", "blob:", one.address)
    assert [url for url in one.requests if not url.startswith(inside)] == []


def test_a_recording_is_looked_at_and_simulated(visit: Visits, shared: Path) -> None:
    one, folder = visit(), shared / "upstream" / "tracer"
    page = one.open("/traces?v=1&view=Where+time+goes")
    give(page, *(folder / f"{kind}_vgg13-iter41.json.gz" for kind in ("profiler", "graph")))
    expect(page.get_by_role("heading")).to_contain_text("vgg13-iter41: one step", timeout=20_000)
    expect(page.get_by_test_id("stMetricValue").nth(0)).to_have_text("346 ms")
    expect(page.get_by_test_id("stMetricValue").nth(1)).to_have_text("77")
    expect(page.get_by_text("77 of 161 operators written")).to_be_visible()
    expect(page.locator(".treemaplayer text", has_text="conv").first).to_be_visible()
    page.get_by_role("tab", name="Operators").click()
    expect(page.get_by_text("77 of 77 operators, 100.0 % of the step")).to_be_visible()
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()
    page.get_by_role("link", name="Simulate this").click()
    expect(page.get_by_role("heading")).to_contain_text("distributed data parallel, 8 GPUs")
    expect(page).to_have_url(re.compile(r"/simulate\?v=1&trace=upload-[0-9a-f]{12}$"))
    expect(page.get_by_test_id("stPlotlyChart").first.locator(".main-svg").first).to_be_visible()
    assert_quiet(one)
    stranger = visit(stranger=True).open(page.url.removeprefix(one.address))
    expect(stranger.get_by_test_id("stAlert")).to_contain_text("upload the file with the digest")
    expect(stranger.get_by_role("heading")).to_contain_text("transformer")


def test_markup_in_names_is_shown_as_it_is(visit: Visits) -> None:
    one, folder = visit(), SAMPLE_TRACES / "mlp"
    text = (folder / "trace.csv").read_text().replace("aten::linear", EVIL.replace('"', '""'))
    lines = [re.sub(r"^(\d+),(<img.*?</b>),", r'\1,"\2",', line) for line in text.splitlines()]
    meta = {"batch_size": 2, "gpu": EVIL, "name": EVIL, "notes": [EVIL]}
    page = one.open("/traces?v=1&view=Where+time+goes&by=name")
    give(
        page,
        {"name": "t.csv", "mimeType": "text/csv", "buffer": "\n".join(lines).encode()},
        {"name": "x.csv", "mimeType": "text/csv", "buffer": (folder / "tensor.csv").read_bytes()},
        {"name": f"{EVIL}.json", "mimeType": "text/json", "buffer": json.dumps(meta).encode()},
    )
    expect(page.get_by_role("heading")).to_contain_text("<img src=")
    expect(page.get_by_test_id("stMetricValue").nth(3)).to_have_text("other")
    expect(page.get_by_test_id("stCaptionContainer").filter(has_text="<img").first).to_be_visible()
    page.wait_for_function(f"() => ({LABELS})().some(text => text.includes('<img'))")
    for tab in ("Roofline", "Memory", "Where it is from"):
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()
    expect(page.locator("img[src*=example]")).to_have_count(0)
    assert_quiet(one)


def test_filters_and_tabs_are_in_the_address(visit: Visits) -> None:
    one = visit()
    page = one.open("/traces?v=1&view=Roofline&inspect=resnet50")
    page.get_by_role("tab", name="Operators").click()
    page.get_by_role("button", name="backward").click()
    page.get_by_placeholder("Find in name or module").fill("layer1")
    page.get_by_placeholder("Find in name or module").press("Enter")
    expect(page).to_have_url(re.compile(r"phase=backward"))
    expect(page).to_have_url(re.compile(r"find=layer1"))
    every = operators_of(load_trace(SAMPLE_TRACES / "resnet50"))
    said = f"{len(chosen(every, ['backward'], [], 'layer1'))} of {len(every)} operators"
    expect(page.get_by_text(said)).to_be_visible()
    other = visit()
    other.page.goto(page.url)
    expect(other.page.get_by_text(said)).to_be_visible()
    assert_quiet(one)


# What a page sees of a click that Streamlit has lost: the tab has the focus and nothing more.
LOSE_A_CLICK = """() => {
  for (const name of ["pointerdown", "mousedown", "pointerup", "mouseup", "click"]) {
    document.querySelector(".stApp").addEventListener(
      name, event => event.stopPropagation(), {capture: true, once: true});
  }
}"""


def test_headline_and_picture_are_above_the_fold_and_a_lost_click_is_made_up_for(
    visit: Visits,
) -> None:
    page = visit().open("/traces?v=1&view=Where+time+goes")
    expect(page.locator(".treemaplayer path").first).to_be_visible()
    expect(page.get_by_test_id("stPlotlyChart")).to_be_in_viewport(ratio=0.95)
    page.evaluate(LOSE_A_CLICK)
    tab = page.get_by_role("tab", name="Memory")
    tab.click()
    expect(tab).to_have_attribute("aria-selected", "true")

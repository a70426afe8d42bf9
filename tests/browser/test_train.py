"""The page Train in a browser: a click opens a pass, a link brings the same step back."""

import re
from collections.abc import Callable
from typing import Any

import pytest

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser
Visits = Callable[..., Any]


def test_a_click_on_a_bar_opens_that_pass(visit: Visits) -> None:
    one = visit()
    page = one.open("/train?v=1&model=llama3.2-1b&world=16&pp=2")
    bars = page.locator("[data-testid=stPlotlyChart]").first.locator(".barlayer .trace")
    pass_chosen = page.get_by_role("combobox", name="Open a pass")
    expect(pass_chosen).to_have_value(re.compile("^stage 0"))
    bar = bars.first.locator(".point").last.bounding_box()
    page.mouse.click(bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2)
    expect(pass_chosen).to_have_value(re.compile("^stage 1"))
    assert one.complaints == []


def test_settings_are_in_the_address_and_come_back(visit: Visits) -> None:
    one = visit()
    page = one.open("/train")
    expect(page.get_by_text("Published by TorchTitan")).to_be_visible()
    page.get_by_label("tp: tensor").fill("2")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("tp=2"))
    heading = page.locator("h3").first
    expect(heading).to_contain_text("tp 2")
    other = visit()
    again = other.open(page.url.removeprefix(other.address))
    expect(again.locator("h3").first).to_have_text(heading.inner_text())
    assert one.complaints == other.complaints == []
    hosts = {url.split("/")[2] for url in one.requests if url.startswith("http")}
    assert hosts == {one.address.removeprefix("http://")}

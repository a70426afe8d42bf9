"""FSDP, recomputation and compilation in a browser: fusion by keyboard, pictures on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser
CHART = "[data-testid=stPlotlyChart] .main-svg"
PATIENCE_MS = 60_000


def test_a_fusion_is_stepped_through_and_every_lab_fits_a_phone(
    visit: Callable[..., Any],
) -> None:
    one = visit()
    page = one.page
    page.goto(one.address + "/lab_compile?v=1&k1_graph=a+cycle")
    page.get_by_label("Your answer").fill("224")
    page.get_by_role("button", name="Commit").click()
    page.locator(CHART).first.wait_for(timeout=PATIENCE_MS)
    expect(page.get_by_text("Taken: they run as one kernel.")).to_be_visible()
    pair = page.get_by_role("spinbutton", name=re.compile("Pair that is looked at"))
    pair.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Refused: cycle.")).to_be_visible()
    expect(page).to_have_url(re.compile("k1_pair=2"))
    page.set_viewport_size({"width": 390, "height": 844})
    for path in ("lab_fsdp", "lab_recompute?v=1&recompute_q=R3", "lab_compile?v=1&compile_q=K3"):
        page.goto(f"{one.address}/{path}")
        page.get_by_role("button", name="Show me").click()
        expect(page.get_by_text("Not modelled", exact=True)).to_be_visible(timeout=PATIENCE_MS)
        page.locator(CHART).nth(1).wait_for(timeout=PATIENCE_MS)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert one.complaints == []
    hosts = {url.split("/")[2] for url in one.requests if url.startswith("http")}
    assert hosts == {one.address.removeprefix("http://")}

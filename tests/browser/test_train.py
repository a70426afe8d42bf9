"""The page Train in a browser: a click opens a pass, a link brings the same step back."""

import json
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


def test_a_click_on_a_bar_opens_that_pass(visit: Visits) -> None:
    one = visit()
    page = one.open("/train?v=1&model=llama3.2-1b&world=16&pp=2")
    bars = page.locator("[data-testid=stPlotlyChart]").first.locator(".barlayer .trace")
    pass_chosen = page.get_by_role("combobox", name="Open a pass")
    expect(pass_chosen).to_have_value(re.compile("^stage 0"))
    bar = bars.first.locator(".point").last
    opened = partial(expect(pass_chosen).to_have_value, re.compile("^stage 1"))
    click_until(opened, page, lambda: middle(bar.bounding_box()))
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


def test_a_folded_group_is_drawn_when_opened_and_keeps_what_is_typed(visit: Visits) -> None:
    one = visit()
    page = one.open("/train?v=1&model=llama3.2-1b")
    title = page.get_by_text("Slow GPUs and lost time")
    field = page.get_by_role("spinbutton", name="More time per step")
    steps = page.get_by_test_id("stMetricValue").first
    before = steps.inner_text()
    expect(title).to_be_visible()
    assert page.locator(".st-key-extra").count() == 0
    title.click()
    expect(field).to_be_visible()
    field.fill("5000")
    field.press("Tab")  # leaving the field takes the number
    expect(page).to_have_url(re.compile("extra=5000"))
    expect(steps).not_to_have_text(before)
    title.click()
    expect(field).to_have_count(0)  # hidden
    other = visit()
    again = other.open(page.url.removeprefix(other.address))
    expect(again.get_by_test_id("stMetricValue").first).to_have_text(steps.inner_text())
    expect(again.locator(".st-key-extra")).to_be_attached()
    title.click()
    expect(field).to_have_value("5000")
    field.fill("0")
    field.press("Enter")
    expect(page).not_to_have_url(re.compile("extra"))
    expect(steps).to_have_text(before)
    title.click()
    expect(page.locator(".st-key-extra")).to_have_count(0)
    assert one.complaints == other.complaints == []


def test_a_preset_is_in_the_address_with_what_is_folded(visit: Visits) -> None:
    """TorchTitan's row 13: 405 B on 512 GPUs with an interleaved schedule."""
    one = visit()
    page = one.open("/train?v=1&model=llama3.2-1b")
    field = page.get_by_role("combobox", name="Start from a published run")
    row = "405B, 512 GPUs, dp_shard 8 tp 8 pp 8, micro-batch 4, interleaved"
    choose(field, page.get_by_role("option", name=re.compile(r"row 13\b")), typed=row)
    expect(page.locator("h3").first).to_contain_text("llama3.1-405b on 512 GPUs")
    for said in ("chunks=2", "async_tp=true", "pipeline=interleaved", "recompute=full"):
        expect(page).to_have_url(re.compile(said))
    page.get_by_role("spinbutton", name="pp: pipeline").fill("4")
    page.keyboard.press("Enter")
    expect(page.locator("h3").first).to_contain_text("pp 4")
    expect(page).to_have_url(re.compile("chunks=2"))
    assert one.complaints == []


def test_pointing_at_a_rank_shows_its_group(visit: Visits) -> None:
    one = visit()
    page = one.page
    page.goto(f"{one.address}/train?v=1&model=llama3.2-1b&world=16&tp=2&look=Mesh&colour_by=tp")
    ranks = page.locator(".ranks i")
    expect(ranks).to_have_count(16)
    together = page.locator(".ranks i.in")
    expect(together).to_have_text(["0", "1"])
    ranks.nth(10).hover()
    expect(together).to_have_text(["10", "11"])
    expect(page.locator(".mesh .rank")).to_have_text("Rank 10: dp_shard 5, tp 0")
    expect(page.locator(".host.crossed")).to_have_count(1)
    ranks.nth(5).click()
    page.locator(".mesh .rank").hover()
    expect(together).to_have_text(["4", "5"])
    page.get_by_role("button", name=re.compile("^dp_shard")).hover()
    expect(together).to_have_text(["1", "3", "5", "7", "9", "11", "13", "15"])
    expect(page.locator(".host.crossed")).to_have_count(2)
    page.locator(".mesh .rank").hover()
    page.locator("section.mesh").focus()
    page.keyboard.press("ArrowRight")
    expect(together).to_have_text(["6", "7"])
    assert one.complaints == []


CONFIG = {
    "model_type": "llama", "num_hidden_layers": 3, "hidden_size": 256, "num_attention_heads": 4,
    "intermediate_size": 512, "vocab_size": 1000, "max_position_embeddings": 512,
    "_name_or_path": "tiny",
}  # fmt: skip


def test_a_config_is_in_the_link_by_its_digest(visit: Visits, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(CONFIG), encoding="utf-8")
    one = visit()
    page = one.page
    page.goto(f"{one.address}/train?v=1&origin=a+config.json&world=4")
    page.locator("input[type=file]").set_input_files(file)
    expect(page.locator("h3").first).to_contain_text("tiny on 4 GPUs")
    expect(page).to_have_url(re.compile("config=upload-[0-9a-f]{12}"))
    digest = re.search("upload-([0-9a-f]{12})", page.url)
    assert digest is not None
    other = visit(stranger=True)
    again = other.page
    again.goto(page.url)
    asked = again.get_by_text(f"upload the file with the digest {digest[1]} here")
    expect(asked).to_be_visible()
    again.locator("input[type=file]").set_input_files(file)
    expect(again.locator("h3").first).to_contain_text("tiny on 4 GPUs")
    expect(again).to_have_url(page.url)
    assert one.complaints == other.complaints == []

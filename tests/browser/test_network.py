"""The page Network in a browser: its player, its drawing, its links."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from dashboard.examples import EXAMPLES
from tests.browser.acting import choose
from triosim.figures.step_player import step_player
from triosim.network.collectives.steps import script

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser
Visits = Callable[..., Any]
RING = "/network?v=1&net=ring&ranks=5&algo=ring&show=Step+by+step"


def open_player(one: Any, path: str) -> Any:
    one.page.goto(one.address + path)
    player = one.page.locator(".player")
    expect(player).to_be_visible()
    return player


def cells(player: Any) -> list[list[int]]:
    rows = player.locator("tbody tr").all()
    return [[int(text or 0) for text in row.locator("td").all_inner_texts()] for row in rows]


def test_the_player_steps_scrubs_and_plays(visit: Visits) -> None:
    one = visit()
    player = open_player(one, RING)
    data = step_player(script("all-reduce", "ring", 5))
    count, last = player.locator(".count"), len(data["steps"])
    expect(count).to_have_text(f"step 0 of {last}")
    assert cells(player) == data["held"][0]
    player.get_by_role("button", name="Step forward").click()
    expect(count).to_have_text(f"step 1 of {last}")
    assert cells(player) == data["held"][1]
    expect(player.locator(".said")).to_contain_text("rank 0 sends chunk 4 to rank 1, which adds it")
    expect(player.locator("svg .token")).to_have_count(5)
    player.press("ArrowRight")
    expect(count).to_have_text(f"step 2 of {last}")
    player.press("ArrowLeft")
    expect(count).to_have_text(f"step 1 of {last}")
    player.get_by_role("slider", name="Step").fill("6")
    expect(count).to_have_text(f"step 6 of {last}")
    assert cells(player) == data["held"][6]
    expect(one.page).to_have_url(re.compile("step=6"))
    other = open_player(visit(), one.page.url.removeprefix(one.address))
    expect(other.locator(".count")).to_have_text(f"step 6 of {last}")
    one.page.bring_to_front()  # no frames are drawn behind another page
    player.get_by_role("button", name="Play").click()
    expect(player.get_by_role("button", name="Pause")).to_be_visible()
    expect(count).to_have_text(f"step {last} of {last}")
    expect(player.get_by_role("button", name="Play")).to_be_visible()
    assert cells(player) == data["held"][-1] == [[5] * 5] * 5
    assert one.complaints == []


def test_a_pause_stays_and_frames_need_no_server(visit: Visits) -> None:
    one = visit()
    player = open_player(one, "/network?v=1&net=switch&ranks=7&algo=halving-doubling"
                              "&show=Step+by+step")  # fmt: skip
    one.page.context.set_offline(True)
    try:
        player.press(" ")
        expect(player.locator(".count")).to_have_text(re.compile("step [1-9]"))
        player.press(" ")
        stopped = player.locator(".count").inner_text()
        one.page.wait_for_timeout(1500)
        assert player.locator(".count").inner_text() == stopped
    finally:
        one.page.context.set_offline(False)


def test_a_deep_link_draws_its_network_and_a_change_another(visit: Visits) -> None:
    one = visit()
    page = one.open("/network?v=1&net=leaf-spine&sides=8x4&ranks=32&link=50")
    heading = page.get_by_role("heading", name="All-reduce of 1 GB, 32 GPUs, leaf-spine")
    expect(heading).to_be_visible()
    expect(page.locator(".annotation-text").filter(has_text="leaf")).to_have_text("leaf \u00d7 4")
    # One level above: the spine, a single one.
    expect(page.locator(".annotation-text").filter(has_text="spine")).to_have_text("spine")
    topology = page.get_by_role("combobox", name="Topology")
    choose(topology, page.get_by_role("option", name="ring", exact=True))
    expect(page.get_by_role("heading", name="32 GPUs, ring")).to_be_visible()
    expect(page).to_have_url(re.compile("net=ring"))
    expect(page.locator(".annotation-text")).to_have_count(0)
    assert one.complaints == []
    inside = ("data:", "blob:", one.address)
    assert [url for url in one.requests if not url.startswith(inside)] == []


def test_settings_are_there_again_after_another_page(visit: Visits) -> None:
    one = visit()
    page = one.open("/network?v=1&net=torus&sides=2x4&ranks=8&algo=torus")
    title = page.get_by_role("heading", name="8 GPUs, torus")
    expect(title).to_be_visible()
    page.get_by_role("link", name="Start").click()
    expect(page.get_by_text(EXAMPLES[-1].text)).to_be_visible()
    page.go_back()
    expect(title).to_be_visible()
    expect(page).to_have_url(re.compile("sides=2x4"))
    assert one.complaints == []


def test_back_from_a_door_with_settings_of_its_own_finds_the_network(visit: Visits) -> None:
    one = visit()
    page = one.open("/network?v=1&net=dgx-a100&ranks=32")
    page.get_by_role("tab", name="Description").click()
    page.get_by_role("link", name="Simulate a step on it").click()
    step = page.get_by_role("heading", name="32 GPUs on a described network")
    expect(step).to_be_visible()
    page.go_back()
    expect(page.get_by_role("tab", name="Description")).to_have_attribute("aria-selected", "true")
    expect(page).to_have_url(re.compile("net=dgx-a100&ranks=32&show=Description"))
    page.go_forward()
    expect(step).to_be_visible()
    assert one.complaints == []


def test_a_wrong_network_is_said_once_wherever_it_is_seen(visit: Visits) -> None:
    one = visit()
    page = one.page
    said = page.get_by_test_id("stAlert").filter(has_text="whole numbers with x between")
    seen = said.filter(visible=True)
    page.goto(one.address + "/network?v=1&net=torus&sides=4y4")
    expect(page.get_by_test_id("stSidebar").locator(said)).to_be_visible()
    expect(seen).to_have_count(1)
    expect(page.get_by_text("a setting in the sidebar has to change first")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()  # a phone opens the page with its sidebar closed
    expect(page.get_by_test_id("stMain").locator(said)).to_be_visible()
    expect(page.get_by_text("a setting in the sidebar has to change first")).to_be_hidden()


def test_a_wrong_number_is_typed_and_no_link_is_blamed(visit: Visits) -> None:
    one = visit()
    page = one.open("/network?v=1&show=Failures")
    alerts = page.get_by_test_id("stAlert")
    for field in ("GPUs", "Work between checkpoints (min)"):
        typed = page.get_by_test_id("stMain").get_by_label(field, exact=True)
        typed.fill("0")
        typed.press("Enter")
        expect(alerts).to_have_count(1)
        expect(alerts).to_contain_text("0: must be a")
        typed.fill("60")
        typed.press("Enter")
        expect(alerts).to_have_count(0)
    assert one.complaints == []


@pytest.mark.parametrize(
    ("network", "gpus"), [("", 16), ("&net=leaf-spine&sides=8x4&ranks=64", 64)]
)
def test_discs_do_not_touch_on_a_phone(visit: Visits, network: str, gpus: int) -> None:
    one = visit()
    one.page.set_viewport_size({"width": 390, "height": 844})
    page = one.open(f"/network?v=1&show=Links{network}")
    page.locator("path.point").nth(gpus).wait_for(state="attached")
    boxes = page.evaluate(
        """() => [...document.querySelectorAll("g.text")].flatMap((texts) => {
          const points = [...texts.parentElement.querySelectorAll("path.point")];
          return texts.textContent ? points.map((p) => p.getBoundingClientRect().toJSON()) : [];
        })"""
    )
    assert len(boxes) == gpus
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            apart = ((a["x"] - b["x"]) ** 2 + (a["y"] - b["y"]) ** 2) ** 0.5
            assert apart >= a["width"]


def test_a_phone_shows_it_without_scrolling_sideways(visit: Visits) -> None:
    one = visit()
    one.page.set_viewport_size({"width": 390, "height": 844})
    player = open_player(one, RING)
    wide = "document.documentElement.scrollWidth <= window.innerWidth"
    assert one.page.evaluate(wide)
    box = player.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390

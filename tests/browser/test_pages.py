"""What only a browser shows: addresses, drawn charts, downloads, the mouse."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from dashboard.examples import EXAMPLES, FIRST, RUNNING
from dashboard.links import query
from triosim import Scenario, simulate
from triosim.figures import gantt_bars
from triosim.figures.text import time_text
from triosim.train import train

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser
Visits = Callable[..., Any]
EDGES = "all => all.map(one => one.getBoundingClientRect()).map(box => [box.left, box.right])"


def step_time(page: Any) -> Any:
    return page.get_by_test_id("stMetricValue").first


def handle(page: Any, key: str, which: int = 0) -> Any:
    return page.locator(f".st-key-{key} input[type=range]").nth(which)


def parameters(page: Any) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def text_of(scenario: Scenario) -> str:
    return time_text(simulate(scenario).total_ms)


def bars(page: Any) -> Any:
    return page.get_by_test_id("stPlotlyChart").last.locator(".barlayer .point")


def expected_bars(scenario: Scenario, ranks: list[int]) -> int:
    result = simulate(scenario)
    figure = gantt_bars(result, ranks, (0.0, result.total_ms))
    return sum(len(trace.y) for trace in figure.data if trace.type == "bar")


# First in this file: a server that nobody has visited finds its pages in another way.
def test_a_cold_deep_link_opens_the_page_with_its_navigation(visit: Visits) -> None:
    one = visit()
    scenario = Scenario(case=1, gpus=6, ptp_bandwidth_gb_per_s=31.5)
    page = one.open(f"/simulate?{query(scenario)}")
    expect(step_time(page)).to_have_text(text_of(scenario))
    expect(page.get_by_role("link", name="Start")).to_have_count(1)
    expect(page.get_by_test_id("stSidebarNav")).to_have_count(0)
    assert parameters(page) == parse_qs(query(scenario))
    assert one.complaints == []


def assert_quiet(one: Any) -> None:
    """Drawn without complaint, and nothing asked of another machine."""
    page = one.page
    expect(page.get_by_test_id("stPlotlyChart")).to_have_count(2)
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    assert one.complaints == []
    inside = ("data:", "blob:", one.address)
    assert [url for url in one.requests if not url.startswith(inside)] == []


def test_start_is_above_the_fold(visit: Visits) -> None:
    one = visit()
    page = one.open("/")
    assert_quiet(one)
    expect(step_time(page)).to_have_text(time_text(train(RUNNING).step_ms))
    expect(page.get_by_text(EXAMPLES[-1].text)).to_be_in_viewport()
    expect(page.get_by_test_id("stPlotlyChart").last).to_be_in_viewport(ratio=1)


def test_the_gantt_has_a_bar_for_every_span(visit: Visits) -> None:
    page = visit().open("/simulate?v=1&case=1&gpus=2")
    expect(bars(page)).to_have_count(expected_bars(Scenario(case=1, gpus=2), [0]))
    page.get_by_text("Draw identical GPUs too").click()
    expect(bars(page)).to_have_count(expected_bars(Scenario(case=1, gpus=2), [0, 1]))
    expect(page).to_have_url(re.compile("all_ranks=true"))


def test_a_slider_moves_number_address_and_picture(visit: Visits) -> None:
    one = visit()
    page = one.open("/simulate")
    assert_quiet(one)
    before, after = (
        expected_bars(scenario, [0]) for scenario in (Scenario(case=2), Scenario(case=1, gpus=6))
    )
    assert before != after
    expect(bars(page)).to_have_count(before)
    handle(page, "gpus_slider").press("ArrowLeft")
    expect(page.get_by_role("spinbutton", name="GPUs, exact")).to_have_value("6")
    handle(page, "case").press("ArrowLeft")
    expect(step_time(page)).to_have_text(text_of(Scenario(case=1, gpus=6)))
    expect(page).to_have_url(re.compile(r"gpus=6"))
    expect(page).to_have_url(re.compile(r"case=1"))
    expect(page.get_by_role("heading")).to_contain_text("standard data parallel, 6 GPUs")
    expect(bars(page)).to_have_count(after)


def test_back_from_another_page_finds_the_settings_again(visit: Visits) -> None:
    page = visit().open("/simulate?v=1&case=4&gpus=3")
    heading = page.get_by_role("heading").first
    expect(heading).to_contain_text("pipeline parallel, 3 GPUs")
    page.get_by_role("link", name="Start").click()
    expect(heading).to_contain_text("What happens")
    page.go_back()
    expect(heading).to_contain_text("pipeline parallel, 3 GPUs")
    expect(page).to_have_url(re.compile(r"case=4"))


def test_back_leaves_the_page_whatever_has_been_changed_on_it(visit: Visits) -> None:
    page = visit().open("/")
    page.get_by_role("link", name="Data parallel").click()
    heading = page.get_by_role("heading").first
    expect(heading).to_contain_text("distributed data parallel, 4 GPUs")
    handle(page, "gpus_slider").press("ArrowLeft")  # an address that the server writes
    expect(page).to_have_url(re.compile("gpus=3"))
    handle(page, "case").press("ArrowLeft")  # and one that the browser writes
    expect(page).to_have_url(re.compile("case=1"))
    page.get_by_role("tab", name="Memory").click()
    expect(page).to_have_url(re.compile("tab=Memory"))
    handle(page, "gpus_slider").press("ArrowLeft")
    expect(page).to_have_url(re.compile("gpus=2"))
    page.go_back()
    expect(heading).to_contain_text("What happens")
    expect(page.get_by_test_id("stPlotlyChart")).to_have_count(2)
    page.go_forward()
    expect(heading).to_contain_text("standard data parallel, 2 GPUs")
    expect(page.get_by_role("tab", name="Memory")).to_have_attribute("aria-selected", "true")


def test_opening_a_link_adds_nothing_to_the_history(visit: Visits) -> None:
    one = visit()
    page = one.page
    page.goto("about:blank")
    for path in ("/lab_pipeline", "/simulate?v=1&trace=mlp&case=1&gpus=3", "/traces"):
        before = page.evaluate("history.length")
        page.goto(f"{one.address}{path}")
        expect(page.get_by_role("heading").first).to_be_visible()
        expect(page).to_have_url(re.compile(r"\?v=1"))
        assert page.evaluate("history.length") == before + 1


def test_a_typed_number_is_taken_or_refused_with_a_sentence(visit: Visits) -> None:
    page = visit().open("/simulate?v=1&gpus=4")
    number = page.get_by_role("spinbutton", name="GPUs, exact")
    heading = page.get_by_role("heading").first

    def type_in(text: str) -> None:
        number.fill(text)
        number.press("Enter")

    for wrong in ("1.5", "0", "-4", "9999999"):
        type_in(wrong)
        sentence = f"GPUs {wrong}: must be a whole number from 1 to 1,048,576."
        expect(page.get_by_test_id("stSidebar").get_by_text(sentence)).to_be_visible()
        expect(number).to_have_value("4")
        expect(heading).to_contain_text("4 GPUs")
        assert parameters(page)["gpus"] == ["4"]
    type_in("3")
    expect(heading).to_contain_text("3 GPUs")
    expect(page.get_by_text("must be a whole number")).to_have_count(0)
    type_in("1e3")
    expect(heading).to_contain_text("1,000 GPUs")


def test_a_link_taken_from_the_page_gives_the_same_page(visit: Visits) -> None:
    page = visit().open("/simulate?v=1&interconnect=optical&gpus=16")
    handle(page, "mesh_rows").press("ArrowRight")
    expect(page).to_have_url(re.compile("mesh_rows=2"))
    expect(handle(page, "mesh_cols_slider")).to_have_attribute("aria-valuetext", "8")
    page.get_by_role("spinbutton", name="Batch (samples)").fill("24")
    page.get_by_role("spinbutton", name="Batch (samples)").press("Enter")
    expect(page).to_have_url(re.compile("batch_size_sim=24"))
    page.get_by_role("tab", name="Memory").click()
    expect(page).to_have_url(re.compile("tab=Memory"))
    scenario = Scenario(case=2, gpus=16, interconnect="optical", mesh_rows=2, batch_size_sim=24)
    expect(step_time(page)).to_have_text(text_of(scenario))
    path = urlsplit(page.url)
    other = visit().open(f"{path.path}?{path.query}")
    expect(step_time(other)).to_have_text(text_of(scenario))
    expect(other.get_by_role("tab", name="Memory")).to_have_attribute("aria-selected", "true")
    expect(handle(other, "mesh_cols_slider")).to_have_attribute("aria-valuetext", "8")
    assert parameters(other) == parameters(page)


def test_a_slider_whose_code_comes_late_shows_what_the_page_is_about(visit: Visits) -> None:
    """On a slow line the page runs again before the browser can draw its sliders."""
    one = visit(stranger=True)
    page = one.page
    held: list[Any] = []
    page.route("**/Slider.*.js", lambda route: held.append(route))
    page.goto(f"{one.address}/simulate?v=1&interconnect=optical&gpus=16&mesh_rows=2&tab=Memory")
    scenario = Scenario(case=2, gpus=16, interconnect="optical", mesh_rows=2)
    expect(step_time(page)).to_have_text(text_of(scenario))
    page.emulate_media(color_scheme="dark")
    page.get_by_role("tab", name="Network").click()
    expect(page).to_have_url(re.compile("tab=Network"))
    for route in held:
        route.continue_()
    assert len(held) == 1
    expect(handle(page, "mesh_rows")).to_have_attribute("aria-valuetext", "2")
    expect(handle(page, "mesh_cols_slider")).to_have_attribute("aria-valuetext", "8")
    expect(step_time(page)).to_have_text(text_of(scenario))
    assert one.complaints == []


def test_a_bad_link_is_said_and_put_right(visit: Visits) -> None:
    one = visit()
    page = one.open("/simulate?v=1&case=9&gpus=4&colour=red&ptp_bandwidth_gb_per_s=fast")
    alert = page.get_by_test_id("stAlert")
    for sentence in (
        "case 9: must be",
        "colour: this page has no",
        "bandwidth_gb_per_s fast: must",
    ):
        expect(alert).to_contain_text(sentence)
    expect(page).to_have_url(re.compile(r"simulate\?v=1&gpus=4$"))
    handle(page, "gpus_slider").press("ArrowRight")
    expect(alert).to_have_count(0)
    assert one.complaints == []


def test_a_door_means_its_defaults_too(visit: Visits) -> None:
    page = visit().open("/simulate?v=1&case=4&gpus=6&micro_batch_size=2")
    page.get_by_role("link", name="Start").click()
    page.get_by_role("link", name="Data parallel").click()
    expect(page.get_by_role("heading")).to_contain_text("distributed data parallel, 4 GPUs")
    expect(step_time(page)).to_have_text(text_of(FIRST))
    assert parameters(page) == parse_qs(query(FIRST))
    page.go_back()
    expect(page.get_by_text(EXAMPLES[0].text)).to_be_visible()


def test_the_mouse_and_the_slider_choose_the_window(visit: Visits) -> None:
    page = visit().open("/simulate?v=1&gpus=4")
    expect(bars(page)).to_have_count(expected_bars(Scenario(case=2, gpus=4), [0]))
    whole = bars(page).count()
    area = page.get_by_test_id("stPlotlyChart").first.locator(".nsewdrag").bounding_box()
    middle = area["y"] + area["height"] / 2
    page.mouse.move(area["x"] + 0.2 * area["width"], middle)
    page.mouse.down()
    page.mouse.move(area["x"] + 0.3 * area["width"], middle, steps=5)
    page.mouse.move(area["x"] + 0.4 * area["width"], middle, steps=5)
    page.mouse.up()
    expect(page).to_have_url(re.compile("window="))
    low, high = map(float, parameters(page)["window"])
    assert (low, high) == (pytest.approx(20, abs=1), pytest.approx(40, abs=1))
    expect(bars(page)).not_to_have_count(whole)
    handle(page, "window", 0).press("ArrowRight")
    expect(page).to_have_url(re.compile(f"window={low + 0.1:.1f}"))


def download(page: Any, name: str, folder: Path) -> str:
    if not page.get_by_role("button", name=name).is_visible():
        page.get_by_role("button", name="Export").click()
    with page.expect_download() as caught:
        page.get_by_role("button", name=name).click()
    caught.value.save_as(folder / "file")
    return (folder / "file").read_text()


def test_downloads_hold_what_they_say(visit: Visits, tmp_path: Path) -> None:
    page = visit().open("/simulate?v=1&case=4&gpus=3")
    scenario = Scenario(case=4, gpus=3)
    events = json.loads(download(page, "Perfetto trace", tmp_path))["traceEvents"]
    result = simulate(scenario)
    assert sum(event["ph"] == "X" for event in events) == len(result.timeline)
    rows = list(csv.DictReader(download(page, "Timeline (CSV)", tmp_path).splitlines()))
    assert list(rows[0]) == list(result.timeline.columns)
    assert len(rows) == len(result.timeline)
    saved = json.loads(download(page, "Scenario (JSON)", tmp_path))
    assert saved["trace_dir"] == "sample_trace/transformer"
    again = Scenario.from_dict({**saved, "trace_dir": scenario.trace_dir})
    assert again == scenario


def test_two_people_do_not_see_each_other(visit: Visits) -> None:
    one = visit().open("/simulate")
    other = visit(stranger=True).open("/simulate?v=1&gpus=2")
    handle(one, "case").press("End")
    expect(one.get_by_role("heading")).to_contain_text("pipeline parallel, 8 GPUs")
    expect(other.get_by_role("heading")).to_contain_text("distributed data parallel, 2 GPUs")
    handle(other, "gpus_slider").press("ArrowRight")
    expect(other.get_by_role("heading")).to_contain_text("3 GPUs")
    expect(one.get_by_role("heading")).to_contain_text("8 GPUs")


def test_a_tab_older_than_the_server_keeps_its_first_move(warm: Any, restartable: Any) -> None:
    address, server = restartable
    page = warm.new_page()
    heading = page.get_by_role("heading").first
    with server():
        page.goto(f"{address}/simulate?v=1&case=1&gpus=32")
        expect(heading).to_contain_text("32 GPUs")
    expect(page.get_by_text("Connection error")).to_be_visible()
    with server():
        expect(page.get_by_text("Connection error")).to_have_count(0)
        expect(handle(page, "gpus_slider")).to_be_enabled()
        handle(page, "gpus_slider").press("ArrowLeft")
        expect(heading).to_contain_text("24 GPUs")
        page.close()


@pytest.fixture
def phone(visit: Visits) -> Any:
    one = visit()
    one.page.set_viewport_size({"width": 390, "height": 844})
    return one


def test_a_phone_has_the_legend_below_the_figure(phone: Any) -> None:
    page = phone.open("/simulate?v=1&gpus=4")
    legends = page.locator(".narrow-legend")
    expect(legends).to_have_count(1)  # the overview has none of its own
    expect(legends).to_be_visible()
    expect(legends).to_contain_text("all-reduce")
    expect(page.locator(".js-plotly-plot .legend").first).to_be_hidden()
    page.set_viewport_size({"width": 1280, "height": 720})
    expect(page.locator(".js-plotly-plot .legend").first).to_be_visible()
    expect(legends).to_be_hidden()


@pytest.mark.parametrize(
    ("path", "texts"),
    [
        ("/simulate?v=1&gpus=16&all_ranks=true", {"Timeline": ".xtitle"}),
        ("/simulate?v=1&case=4&gpus=4&tab=Communication", {"Communication": ".annotation-text"}),
        (
            "/simulate?v=1&tab=Communication",
            {
                "Communication": ".annotation-text",
                "Network": ".xtitle",
                "Memory": ".annotation-text",
            },
        ),
    ],
)
def test_no_label_is_cut_off_on_a_phone(phone: Any, path: str, texts: dict[str, str]) -> None:
    page = phone.open(path)
    for tab, kind in texts.items():
        page.get_by_role("tab", name=tab).click()
        panel = page.get_by_role("tabpanel", name=tab)
        labels = panel.get_by_test_id("stPlotlyChart").last.locator(kind)
        expect(labels.first).to_be_visible()
        expect(page.locator("[data-test-script-state=notRunning]")).to_be_visible()
        # All at one moment: a picture that is drawn again has other labels.
        edges = labels.evaluate_all(EDGES)
        assert min(left for left, _ in edges) >= 0
        assert max(right for _, right in edges) <= 390


def test_figures_follow_the_brightness_of_the_page(visit: Visits) -> None:
    page = visit().open("/simulate?v=1&trace=mlp&gpus=2")
    label = page.get_by_test_id("stPlotlyChart").first.locator(".ytick text").first
    expect(label).to_have_css("fill", "rgb(38, 39, 48)")
    page.emulate_media(color_scheme="dark")
    expect(label).to_have_css("fill", "rgb(250, 250, 250)")


# Of an empty list what it asks for is measured as what is chosen, in the same letters.
CUT_OFF = """() => [
  ...document.querySelectorAll('[data-testid=stSidebar] [role=combobox]')
].filter(e => {
  const canvas = document.createElement('canvas').getContext('2d'), style = getComputedStyle(e);
  canvas.font = style.font;
  const room = e.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  return room > 0 && canvas.measureText(e.value || e.placeholder).width > room;
}).map(e => `${e.getAttribute('aria-label')}: ${e.value || e.placeholder}`)"""


@pytest.mark.parametrize(
    ("path", "group", "last"),
    [
        ("/train?v=1&model=llama3.2-1b", "Change its sizes", "Tied embeddings"),
        ("/simulate?v=1&case=2", "Imperfections", "Connection"),
    ],
)
def test_no_choice_of_the_sidebar_is_cut_off(
    visit: Visits, path: str, group: str, last: str
) -> None:
    page = visit().open(path)
    page.locator("summary", has_text=group).click()
    expect(page.get_by_role("combobox", name=last)).to_be_visible()
    assert page.evaluate(CUT_OFF) == []

"""How soon pages can be read and looked at, in a real Chromium: python -m benchmarks.page [PAGE]

Starts the dashboard. Opens each page with an empty cache (cold) and again with a full one (warm:
visited twice before), each time in a new session, until its text and controls are there and until
its first chart is drawn; then moves a slider or another control of it and waits until the new
picture is finished.
Prints the median of the openings and the 95th percentile of the moves beside what was asked for,
and the load of the machine: figures of a loaded one say little.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Error, sync_playwright

from benchmarks.chromium import Chromium, running
from benchmarks.serving import serving
from dashboard.compare_links import link_to as compare_link
from dashboard.examples import FIRST, RUNNING
from dashboard.validation_links import SWITCHES
from dashboard.validation_links import TABS as VALIDATION_TABS

ROOT = Path(__file__).resolve().parents[1]
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PATIENCE_MS = 300_000
SIZE: Any = {"width": 1280, "height": 720}
FILLING, SETTLE_S = 2, 2.0  # openings that fill the caches, and time to write these
COLD_TEXT_S, COLD_CHART_S, WARM_S, MOVE_S = 2.5, 4.5, 1.5, 1.0
# When what a page is asked for appears, and when a chart was last drawn: milliseconds since the
# start of the navigation, or -1.
WATCH = """
window.seen = {ready: -1, chart: -1, drawn: -1};
new MutationObserver(changes => {
  const now = performance.now(), seen = window.seen;
  if (seen.ready < 0 && document.querySelector(%r)) seen.ready = now;
  for (const { target } of changes) {
    const element = target.nodeType === 1 ? target : target.parentElement;
    if (element?.closest(".js-plotly-plot")?.querySelector(".main-svg")) {
      if (seen.chart < 0) seen.chart = now;
      seen.drawn = now;
      return;
    }
  }
}).observe(document, {childList: true, subtree: true, attributes: true, characterData: true});
"""
QUIET_MS = 500  # no change of a chart for so long: its picture is finished
SETTLED = f"""since => seen.drawn > since && performance.now() - seen.drawn > {QUIET_MS}
  && document.querySelector(".stApp").dataset.testScriptState === "notRunning" """


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page: its address, what is there with its text and controls, and what is moved.

    `ready` and the others are CSS selectors. `opening` is pressed before a move. A slider has
    `keys`; of other controls the `moves` are clicked in turn. `chart` is False for a page that
    begins without one.
    """

    path: str
    ready: str
    opening: str = ""
    moves: Sequence[str] = ()
    keys: Sequence[str] = ()
    chart: bool = True

    @property
    def opened(self) -> str:
        """Whether it is, in JavaScript."""
        return "seen.ready > 0" + (" && seen.chart > 0" if self.chart else "")


BACK_AND_FORTH = ("ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft")
METRIC, TITLE = "[data-testid=stMetricValue]", "[data-testid=stMain] h3"
PAGES = {
    "simulate": Page(
        path="/simulate?v=1&case=1", ready=METRIC, keys=BACK_AND_FORTH,
        moves=[".st-key-ptp_bandwidth_gb_per_s_slider input[type=range]"],
    ),
    "train": Page(
        path="/train?v=1", ready=METRIC, keys=BACK_AND_FORTH,
        moves=[".st-key-train_window input[type=range]"],
    ),
    "compare": Page(
        path=f"/compare?{urlencode({**compare_link((RUNNING, FIRST)), 'picture': 'Timelines'})}",
        ready=METRIC, moves=[".st-key-lanes label"],
    ),
    "sweep": Page(
        path="/sweep?v=1", ready=TITLE, moves=["[role=tab] >> nth=1", "[role=tab] >> nth=0"],
    ),
    "network": Page(
        path="/network?v=1", ready=TITLE, keys=BACK_AND_FORTH, moves=["input[type=range]"],
    ),
    "traces": Page(
        path="/traces?v=1&view=Roofline", ready=TITLE,
        moves=["[role=tab] >> nth=1", "[role=tab] >> nth=2"],
    ),
    "validation": Page(
        path=f"/validation?{urlencode({'v': 1, 'aspect': VALIDATION_TABS[2]})}", ready=TITLE,
        moves=[f".st-key-{name} label" for name in SWITCHES],
    ),
    "labs": Page(
        path="/lab_pipeline?v=1", ready=".st-key-lab_predict button", chart=False,
        opening="button:has-text('Show me')", keys=BACK_AND_FORTH, moves=["input[type=range]"],
    ),
}  # fmt: skip


class Moved:
    """A page of the dashboard in a browser, with a clock in it, to be moved."""

    def __init__(self, context: Any, address: str, page: Page) -> None:
        self.tab = context.new_page()
        self.tab.set_default_timeout(PATIENCE_MS)
        self.tab.add_init_script(WATCH % page.ready)
        self.page = page
        self.tab.goto(address + page.path, wait_until="commit")
        self.tab.wait_for_function(f"() => {page.opened}")

    def moves_s(self, rounds: int) -> list[float]:
        """Moves until each picture is finished."""
        if self.page.opening:
            self.tab.locator(self.page.opening).first.click()
        self.tab.wait_for_function(SETTLED, arg=0)
        steps = [(move, key) for move in self.page.moves for key in self.page.keys or ("",)]
        return [self._move_s(*step) for step in steps * rounds]

    def _move_s(self, selector: str, key: str) -> float:
        control = self.tab.locator(selector).first
        since_ms = self.tab.evaluate("() => performance.now()")
        if key:
            control.press(key)
        else:
            control.click()
        self.tab.wait_for_function(SETTLED, arg=since_ms)
        return float(self.tab.evaluate("() => seen.drawn") - since_ms) / 1e3


def openings(
    chromium: Chromium, address: str, page: Page, count: int, *, cold: bool
) -> tuple[list[float], list[float]]:
    """Seconds to text and to the first chart, each opening with an empty cache or a full one."""
    texts, charts = [], []
    for number in range(count if cold else count + FILLING):
        with chromium.tab(WATCH % page.ready, cold=cold) as tab:
            tab.call("Page.navigate", url=address + page.path)
            tab.wait_for(f"window.seen && {page.opened}", PATIENCE_MS / 1e3)
            text_ms, chart_ms = tab.value("[seen.ready, seen.chart]")
            if number < FILLING and not cold:
                time.sleep(SETTLE_S)
                continue
        texts.append(text_ms / 1e3)
        charts += [chart_ms / 1e3] if page.chart else []
    return texts, charts


def row(name: str, browser: Any, chromium: Chromium, address: str, count: int, rounds: int) -> str:
    """The figures of a page beside what is asked for; * where they are above that."""
    page = PAGES[name]
    prime = browser.new_context(viewport=SIZE)
    moving = Moved(prime, address, page)  # the server has seen the page by then
    cells = []
    for cold, text_s, chart_s in ((True, COLD_TEXT_S, COLD_CHART_S), (False, WARM_S, WARM_S)):
        texts, charts = openings(chromium, address, page, count, cold=cold)
        cells += [_cell(statistics.median(texts), text_s)]
        cells += [_cell(statistics.median(charts), chart_s) if charts else "-"]
    moves = sorted(moving.moves_s(rounds))
    prime.close()
    cells += [_cell(statistics.median(moves), MOVE_S)]
    cells += [_cell(moves[math.ceil(0.95 * len(moves)) - 1], MOVE_S)]
    return f"{name:12}" + "".join(f"{cell:>12}" for cell in cells)


def _cell(seconds: float, most_s: float) -> str:
    return f"{seconds:.2f} s{' ' if seconds <= most_s else '*'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="*", choices=[*PAGES, []], metavar="PAGE",
                        help=f"of {', '.join(PAGES)} (all)")  # fmt: skip
    parser.add_argument("--openings", type=int, default=5, help="of each page, cold and warm (5)")
    parser.add_argument("--rounds", type=int, default=5, help="of a page's moves (5)")
    options = parser.parse_args()
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        sys.exit("No Chromium on this machine.")
    before = os.getloadavg()[0]
    heads = ("cold text", "cold chart", "warm text", "warm chart", "move", "move p95")
    asked = (COLD_TEXT_S, COLD_CHART_S, WARM_S, WARM_S, MOVE_S, MOVE_S)
    print(f"{'':12}" + "".join(f"{head:>12}" for head in heads))
    print(f"{'at most':12}" + "".join(f"{f'{seconds:.2f} s ':>12}" for seconds in asked))
    with (
        serving() as (host, _),
        sync_playwright() as playwright,
        running(program, ARGUMENTS, (SIZE["width"], SIZE["height"])) as chromium,
    ):
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        address = f"http://{host}"
        for name in options.pages or PAGES:
            try:
                print(
                    row(name, browser, chromium, address, options.openings, options.rounds),
                    flush=True,
                )
            except (Error, RuntimeError) as error:
                print(f"{name:12}  failed: {str(error).splitlines()[0]}", flush=True)
        browser.close()
    print(f"load of the machine: {before:.1f} before, {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()

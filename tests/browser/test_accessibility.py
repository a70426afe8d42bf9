"""Every page against axe-core's rules, light and dark; nothing is left out."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

Axe = pytest.importorskip("axe_core_python.sync_playwright").Axe
pytestmark = pytest.mark.browser
# What Streamlit fades while a script runs, and buttons that change their colour, are seen at once.
AT_ONCE = """
* {transition: none !important; animation: none !important}
[data-stale=true], [data-stale=true] * {opacity: 1 !important}
"""
# From page to page as the browser's Back and Forward go: the browser loads the code only once.
GO = """path => {
  history.pushState({}, "", path);
  dispatchEvent(new PopStateEvent("popstate", {state: {}}));
}"""
HEADING = """() => document.querySelector("h1, h2, h3")?.innerText"""
# The pages' own style comes with a part of Streamlit's code that may be there last.
SETTLED = f"""before => ({HEADING})() && ({HEADING})() !== before &&
  document.querySelector("[data-testid=stApp]").dataset.testScriptState === "notRunning" &&
  document.querySelector(".stHtml style") &&
  !document.querySelector("[data-stale=true], [data-testid=stSkeleton]")"""
APP = (Path(__file__).parents[2] / "app.py").read_text(encoding="utf-8")
PAGES = re.findall(r'"pages/(\w+)\.py"', APP)
# Where it is not the page's name. The rules look at every bar: a step of few.
PATHS = {"start": "", "simulate": "simulate?v=1&trace=mlp&gpus=2"}


def test_the_list_has_all_pages() -> None:
    files = {path.stem for path in (Path(__file__).parents[2] / "pages").glob("*.py")}
    assert set(PAGES) == files


@pytest.fixture(scope="module")
def screens(browser: Any) -> Iterator[dict[str, Any]]:
    """A browser for each brightness: Streamlit leaves old colours where that changes in one."""
    opened = {
        scheme: browser.new_page(color_scheme=scheme, reduced_motion="reduce")
        for scheme in ("light", "dark")
    }
    for page in opened.values():
        page.set_default_timeout(60_000)
    yield opened
    for page in opened.values():
        page.context.close()


def colours(node: dict[str, Any]) -> list[Any]:
    """What the rule saw."""
    return [check["data"] for check in node["any"]]


def turn_to(page: Any, address: str, path: str) -> None:
    before = page.evaluate(HEADING)
    if page.url.startswith(address):
        page.evaluate(GO, path)
    else:
        page.goto(address + path)
        page.add_style_tag(content=AT_ONCE)
    page.wait_for_function(SETTLED, arg=before)


@pytest.mark.parametrize("name", PAGES)
def test_no_serious_violation(screens: dict[str, Any], address: str, name: str) -> None:
    for scheme, page in screens.items():
        turn_to(page, address, f"/{PATHS.get(name, name)}")
        found = [
            f"{broken['id']}: {node['html'][:200]} {colours(node)}"
            for broken in Axe().run(page, options={"resultTypes": ["violations"]})["violations"]
            if broken["impact"] in ("serious", "critical")
            for node in broken["nodes"]
        ]
        assert found == [], scheme

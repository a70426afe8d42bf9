"""Every page against axe-core's rules, light and dark; nothing is left out."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Axe = pytest.importorskip("axe_core_python.sync_playwright").Axe
pytestmark = pytest.mark.browser
Visits = Callable[..., Any]
# What Streamlit fades while a script runs, and buttons that change their colour, are seen at once.
AT_ONCE = "* {transition: none !important; animation: none !important}"
SETTLED = """() => document.querySelector("[data-testid=stApp]").dataset.testScriptState
    === "notRunning" && !document.querySelector("[data-stale=true]")"""
APP = (Path(__file__).parents[2] / "app.py").read_text(encoding="utf-8")
PAGES = re.findall(r'"pages/(\w+)\.py"', APP)


def test_the_list_has_all_pages() -> None:
    files = {path.stem for path in (Path(__file__).parents[2] / "pages").glob("*.py")}
    assert set(PAGES) == files


def colours(node: dict[str, Any]) -> list[Any]:
    """What the rule saw."""
    return [check["data"] for check in node["any"]]


@pytest.mark.parametrize("name", PAGES)
def test_no_serious_violation(visit: Visits, name: str) -> None:
    one = visit()
    page = one.page
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto(one.address + ("/" if name == "start" else f"/{name}"))
        page.locator("h1, h2, h3").first.wait_for()
        page.add_style_tag(content=AT_ONCE)
        page.wait_for_function(SETTLED)
        found = [
            f"{broken['id']}: {node['html'][:200]} {colours(node)}"
            for broken in Axe().run(page, options={"resultTypes": ["violations"]})["violations"]
            if broken["impact"] in ("serious", "critical")
            for node in broken["nodes"]
        ]
        assert found == [], scheme

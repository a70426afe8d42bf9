"""Every page against axe-core's rules, light and dark; nothing is left out."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Axe = pytest.importorskip("axe_core_python.sync_playwright").Axe
pytestmark = pytest.mark.browser
Visits = Callable[..., Any]
APP = (Path(__file__).parents[2] / "app.py").read_text(encoding="utf-8")
PAGES = re.findall(r'"pages/(\w+)\.py"', APP)


def test_the_list_has_all_pages() -> None:
    files = {path.stem for path in (Path(__file__).parents[2] / "pages").glob("*.py")}
    assert set(PAGES) == files


@pytest.mark.parametrize("name", PAGES)
def test_no_serious_violation(visit: Visits, name: str) -> None:
    one = visit()
    page = one.page
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.goto(one.address + ("/" if name == "start" else f"/{name}"))
        page.locator("h1, h2, h3").first.wait_for()
        page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for()
        found = [
            f"{broken['id']}: {node['html'][:200]}"
            for broken in Axe().run(page)["violations"]
            if broken["impact"] in ("serious", "critical")
            for node in broken["nodes"]
        ]
        assert found == [], scheme

"""A server of the dashboard and a real Chromium; skipped where either cannot be had."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

from benchmarks.serving import free_port, serving

# The first is Chromium without windows: a third less time for each page.
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
PATIENCE_MS = 120_000  # where answers come from workers: a loaded machine is slow, not wrong
# Streamlit looks for its own endpoints below a page's path first.
PROBES = ("/_stcore/health", "/_stcore/host-config")


class Visit:
    """A page of its own browser context, and what it did that it should not have."""

    def __init__(self, page: Any, address: str) -> None:
        self.page = page
        self.address = address
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def _console(self, message: Any) -> None:
        url = message.location.get("url", "")
        if message.type == "error" and not url.endswith(PROBES):
            self.complaints.append(f"{message.text} {url}")

    def open(self, path: str) -> Any:
        """Go to a path and wait for a drawn chart."""
        self.page.goto(self.address + path)
        self.page.locator("[data-testid=stPlotlyChart] .main-svg").first.wait_for()
        return self.page


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The address of a running dashboard."""
    with serving() as (host, _):
        yield f"http://{host}"


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    named = os.environ.get("CHROMIUM")
    path = named or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip("no Chromium on this machine")
    api.expect.set_options(timeout=60_000)  # a loaded machine is slow, not wrong
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def warm(browser: Any) -> Iterator[Any]:
    """A context whose cache holds the page's code; every visit is still a session of its own."""
    context = new_context(browser)
    yield context
    context.close()


def new_context(browser: Any) -> Any:
    """As someone has it who asked for less motion: frames of animations are most of the drawing."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 720}, accept_downloads=True, reduced_motion="reduce"
    )
    context.set_default_timeout(60_000)
    return context


@pytest.fixture
def visit(browser: Any, warm: Any, address: str) -> Iterator[Callable[..., Visit]]:
    """Opens pages; a stranger comes with a browser context of his own."""
    opened: list[Any] = []

    def new(*, stranger: bool = False) -> Visit:
        context = new_context(browser) if stranger else warm
        page = context.new_page()
        opened.append(context if stranger else page)
        return Visit(page, address)

    yield new
    for one in opened:
        one.close()


@pytest.fixture
def patient_visit(visit: Callable[..., Visit]) -> Callable[..., Visit]:
    """Opens pages that fill while workers go on."""

    def new() -> Visit:
        one = visit()
        one.page.set_default_timeout(PATIENCE_MS)
        return one

    return new


@pytest.fixture
def restartable() -> tuple[str, Callable[[], AbstractContextManager[tuple[str, int]]]]:
    """An address, and a dashboard there for as long as a `with` block lasts."""
    port = free_port()
    return f"http://127.0.0.1:{port}", lambda: serving(port)

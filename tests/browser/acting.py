"""What a person does on a page that may still settle: what does not arrive is done again.

A list closes where the page moves below it, and a bar is elsewhere by the time of the click.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

api = pytest.importorskip("playwright.sync_api")
TRIES = 5
SHORT_MS = 10_000


def until(seen: Callable[..., None], act: Callable[[], None]) -> None:
    """Act until something is seen; `seen` is an expectation that takes a timeout in ms."""
    for _ in range(TRIES):
        # The act itself may have nothing left to act on.
        with contextlib.suppress(AssertionError, api.TimeoutError):
            act()
            seen(timeout=SHORT_MS)
            return
    seen()


def click_until(
    seen: Callable[..., None], page: Any, centre: Callable[[], tuple[float, float]]
) -> None:
    """Click where something is by then."""
    until(seen, lambda: page.mouse.click(*centre()))


def choose(field: Any, option: Any, *, typed: str = "") -> None:
    """Open a list, type where it is long, and take an option."""

    def take() -> None:
        field.click()
        if typed:
            field.fill(typed)
        option.click(timeout=SHORT_MS)

    until(partial(api.expect(option).to_have_count, 0), take)


def middle(box: dict[str, float] | None) -> tuple[float, float]:
    """The point in the middle of the box of something that is drawn."""
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

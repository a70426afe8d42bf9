"""A page at some address and what it shows, for tests that read it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pandas as pd
from streamlit import config
from streamlit.testing.v1 import AppTest

from dashboard.folded import key_of

APP = Path(__file__).parents[2] / "app.py"


def open_page(page: str, /, **parameters: str | list[str]) -> AppTest:
    """A page at some address."""
    # As in .streamlit/config.toml, which Streamlit reads from the working directory.
    config.set_option("global.disableWidgetStateDuplicationWarning", True)
    at = AppTest.from_file(str(APP), default_timeout=120)
    for name, value in parameters.items():
        at.query_params[name] = value
    at.switch_page(page)
    return at.run()


def settled(at: AppTest) -> AppTest:
    """The page once nothing runs any more; a browser would ask for it by itself."""
    end = time.monotonic() + 120
    while at.get("progress"):
        assert time.monotonic() < end
        time.sleep(0.2)
        at.run()
    return at


def shown(at: AppTest) -> str:
    """The texts of a page that has run without an exception."""
    assert not at.exception
    elements = (*at.markdown, *at.caption, *at.subheader, *at.info)
    return "\n".join(element.value for element in elements)


def table_with(at: AppTest, column: str) -> pd.DataFrame:
    """The first table that has a column of that name."""
    return next(frame.value for frame in at.dataframe if column in frame.value)


def unfold(at: AppTest, *labels: str) -> AppTest:
    """Open folded groups of the sidebar, or all of them, as a click on their titles does."""
    for label in labels or [group.label for group in at.sidebar.expander]:
        at.session_state[key_of(label)] = True
    return at.run()


def fold(at: AppTest, label: str) -> AppTest:
    """Close a group again."""
    at.session_state[key_of(label)] = False
    return at.run()


def keys(block: Any) -> set[str]:
    """The keys of the controls of a page, or of a part of it."""
    kinds = (
        *(block.number_input, block.select_slider, block.radio, block.slider, block.selectbox),
        *(block.toggle, block.text_input, block.text_area),
    )
    return {widget.key for kind in kinds for widget in kind if widget.key}


def group(at: AppTest, label: str) -> Any:
    """A group of the sidebar."""
    return next(group for group in at.sidebar.expander if group.label == label)

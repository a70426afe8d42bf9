"""What a page shows, for tests that read it."""

from __future__ import annotations

import pandas as pd
from streamlit.testing.v1 import AppTest


def shown(at: AppTest) -> str:
    """The texts of a page that has run without an exception."""
    assert not at.exception
    elements = (*at.markdown, *at.caption, *at.subheader, *at.info)
    return "\n".join(element.value for element in elements)


def table_with(at: AppTest, column: str) -> pd.DataFrame:
    """The first table that has a column of that name."""
    return next(frame.value for frame in at.dataframe if column in frame.value)

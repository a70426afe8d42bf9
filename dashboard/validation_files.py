"""What the page Validation can be taken along as: tables as CSV, pictures as HTML."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.chart_file import page_of
from dashboard.timeline import style
from triosim.export.table import to_csv
from triosim.figures.figure import Figure


def downloads(name: str, table: pd.DataFrame, figures: dict[str, Figure]) -> None:
    """A table, and each picture as a file that needs nothing else."""
    drawn = style()
    with st.popover("Export", icon=":material/ios_share:"):
        st.download_button(
            "Table (CSV)",
            lambda: to_csv(table).encode(),
            f"{name}.csv",
            on_click="ignore",
            icon=":material/download:",
        )
        for title, figure in figures.items():
            st.download_button(
                f"{title} (HTML)",
                lambda figure=figure: page_of(figure, drawn).encode(),
                f"{name}-{title.lower().replace(' ', '-')}.html",
                on_click="ignore",
                icon=":material/download:",
            )
        st.caption("The address of this page is a link to this view.")

"""A picture as a file that needs nothing else: one button in the corner of every chart."""

from __future__ import annotations

import re

import plotly.graph_objects as go
import streamlit as st

from triosim.figures import Style
from triosim.figures.figure import Figure

MAX_NAME = 60
CSS = """
/* In the lower right corner, where a chart has at most the end of its axis title. */
[class*="st-key-chart_"] { position: relative; }
[class*="st-key-save_"] { position: absolute; right: 0; bottom: -0.35rem; width: auto; z-index: 2; }
[class*="st-key-save_"] button { min-height: 1.6rem; padding: 0 0.2rem; opacity: 0.65; }
[class*="st-key-save_"] button:is(:hover, :focus-visible) { opacity: 1; }
/* The words are for those who hear the page. */
[class*="st-key-save_"] button [data-testid="stMarkdownContainer"] {
  position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%);
}
@media print { [class*="st-key-save_"] { display: none; } }
"""


def slug(text: str) -> str:
    """A text as part of a key and as the name of a file."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:MAX_NAME].strip("-") or "chart"


def save_button(figure: Figure, alt: str, style: Style, *, legend: bool, key: str) -> None:
    """Offer the picture as HTML; it is written when it is asked for."""
    st.download_button(
        f"Save as HTML: {alt}",
        lambda: page_of(figure, style, legend=legend).encode(),
        f"{slug(alt)}.html",
        mime="text/html",
        on_click="ignore",
        icon=":material/download:",
        type="tertiary",
        key=f"save_{key}",
        help="Save this picture as an HTML file",
    )


def page_of(figure: Figure, style: Style, *, legend: bool = True) -> str:
    """A page with the picture and all that draws it; it fetches nothing."""
    opaque = go.Figure(figure)
    opaque.update_layout(paper_bgcolor=style.surface, showlegend=legend)
    text: str = opaque.to_html(include_plotlyjs=True, config={"displaylogo": False})
    return text

"""What all figures share: fonts, colours of text and lines, margins, legend.

Backgrounds are transparent, so a figure sits on the page's own.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

from triosim.figures.figure import Figure, Trace, scatter_trace

FONT = '"Source Sans", "Source Sans Pro", "Open Sans", "Liberation Sans", Arial, sans-serif'
CLEAR = "rgba(0,0,0,0)"
MAX_HEIGHT = 900
LEGEND_LINES = 2
# A line of this many characters fits beside the edges of a phone.
LINE_CHARACTERS = 46


@dataclass(frozen=True, kw_only=True)
class Style:
    """How to draw on the page at hand: its brightness, and the size of text in pixels.

    `strong` is for projectors, which wash out what is not black or white.
    """

    dark: bool = False
    font_size: int = 13
    strong: bool = False

    @property
    def text(self) -> str:
        if self.strong:
            return "#FFFFFF" if self.dark else "#000000"
        return "#FAFAFA" if self.dark else "#262730"

    @property
    def muted(self) -> str:
        """For secondary text."""
        if self.strong:
            return "#E3E6EA" if self.dark else "#26292E"
        return "#B4BAC4" if self.dark else "#5B616B"

    @property
    def grid(self) -> str:
        if self.strong:
            return "#5B616B" if self.dark else "#A3A9B2"
        return "#2F343D" if self.dark else "#E3E6EA"

    @property
    def surface(self) -> str:
        """The page behind the figure: Streamlit's background of that theme."""
        return "#0E1117" if self.dark else "#FFFFFF"

    @property
    def small(self) -> int:
        return max(10, self.font_size - 2)

    @property
    def lane_px(self) -> int:
        """Height of one row of a chart."""
        return max(26, round(1.9 * self.font_size))


DEFAULT_STYLE = Style()


def rows_height(rows: int, style: Style, *, extra: float = 6.0) -> int:
    """A figure's height for that many rows; `extra` lines of text hold axis and legend."""
    text = extra * 1.35 * style.font_size
    return round(min(MAX_HEIGHT, max(1, rows) * style.lane_px + text))


def lines_of(sentence: str) -> list[str]:
    """A sentence in lines that a narrow page has room for."""
    return textwrap.wrap(sentence, LINE_CHARACTERS, break_long_words=False)


def finish(figure: Figure, style: Style, *, height: int, revision: str) -> Figure:
    """Give a figure the common look; what it has set itself is left alone."""
    figure.update_layout(
        template="none",
        showlegend=True,
        height=height,
        paper_bgcolor=CLEAR,
        plot_bgcolor=CLEAR,
        font={"family": FONT, "size": style.font_size, "color": style.text},
        margin={"l": 8, "r": 20, "t": 8, "b": 8, "pad": 4},
        legend={
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 1.0,
            "yanchor": "bottom",
            # More lines, on a narrow page, would squeeze the figure: it scrolls instead.
            "maxheight": LEGEND_LINES * 1.6 * style.font_size,
            "bgcolor": CLEAR,
            "font": {"size": style.font_size, "color": style.text},
            "traceorder": "normal",
            "itemsizing": "constant",
        },
        hoverlabel={
            "bgcolor": style.surface,
            "bordercolor": style.muted,
            "font": {"family": FONT, "size": style.font_size, "color": style.text},
            "align": "left",
            "namelength": -1,
        },
        modebar={"bgcolor": CLEAR, "color": style.muted, "activecolor": style.text},
        uirevision=revision,
    )
    return figure


def value_axis(style: Style, title: str, **more: Any) -> dict[str, Any]:
    """An axis of numbers with its unit in the title."""
    return {
        "title": {
            "text": title,
            "font": {"size": style.font_size, "color": style.text},
            "standoff": 10,
        },
        "tickfont": {"size": style.font_size, "color": style.text},
        "gridcolor": style.grid,
        "showline": False,
        "zeroline": False,
        "automargin": True,
        "exponentformat": "none",
        **more,
    }


def row_axis(style: Style, labels: list[str]) -> dict[str, Any]:
    """An axis of named rows, the first on top; names thin out where there are too many."""
    sparse = len(labels) * style.font_size * 1.15 > MAX_HEIGHT
    return {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": labels,
        "range": [len(labels) - 0.5, -0.5],
        "dtick": None if sparse else 1,
        "tickfont": {"size": style.font_size, "color": style.text},
        "showgrid": False,
        "zeroline": False,
        "automargin": True,
        "fixedrange": True,
        "ticks": "",
    }


def legend_entry(name: str, colour: str) -> Trace:
    """An entry of the legend for what no trace of the figure can stand for."""
    return scatter_trace(
        x=[None],
        y=[None],
        mode="markers",
        marker={"symbol": "square", "size": 12, "color": colour},
        name=name,
        hoverinfo="skip",
    )


def say_nothing_to_show(figure: Figure, style: Style, sentence: str) -> None:
    """A sentence in place of an empty chart."""
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    figure.add_annotation(
        text=sentence,
        x=0.5,
        y=0.5,
        xref="paper",
        yref="paper",
        showarrow=False,
        font={"size": style.font_size + 1, "color": style.muted},
    )

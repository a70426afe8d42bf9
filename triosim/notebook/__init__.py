"""How results show themselves in a notebook: a summary, and their main figures.

`triosim.shown.Shown` gives them the methods; this is where those are worked out. Plotly and IPython
are imported when something is drawn or shown and not before. Names from traces are text everywhere:
nothing that they hold becomes markup.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pandas as pd

from triosim.errors import ConfigError
from triosim.notebook.tables import tables_of
from triosim.notebook.words import headline, notes_of, title_of
from triosim.shown import Shown

if TYPE_CHECKING:
    import plotly.graph_objects as go

AT_ONCE = 2  # figures that a cell shows
MOST_ROWS = 20  # of a table that a cell shows
LEGEND_PX = 26
NO_FIGURES = "Figures need plotly: pip install plotly."
_DIGITS = 6  # of a number in a table


def table_names(shown: Shown) -> tuple[str, ...]:
    return tuple(tables_of(shown))


def table(shown: Shown, name: str) -> pd.DataFrame:
    made = tables_of(shown)
    if name not in made:
        raise ConfigError("table", name, f"must be one of {', '.join(made)}")
    return made[name]()


def figure_names(shown: Shown) -> tuple[str, ...]:
    from triosim.notebook.drawings import drawings_of

    return tuple(drawings_of(shown))


def figure(
    shown: Shown, name: str | None, *, ranks: Sequence[int] | None = None, dark: bool = False
) -> go.Figure:
    """A figure on its own ground: a notebook's theme is not known here."""
    from triosim.figures import Style
    from triosim.notebook.drawings import Asked, drawings_of

    made = drawings_of(shown)
    if name is None:
        name = next(iter(made))
    if name not in made:
        raise ConfigError("figure", name, f"must be one of {', '.join(made)}")
    style = Style(dark=dark)
    drawn = made[name](Asked(style=style, ranks=None if ranks is None else tuple(ranks)))
    # Before a cell is laid out Plotly does not know how much room the legend above takes.
    room = LEGEND_PX if drawn.layout.showlegend is not False else 0
    return drawn.update_layout(
        paper_bgcolor=style.surface,
        plot_bgcolor=style.surface,
        margin_t=drawn.layout.margin.t + room,
        height=drawn.layout.height + room,
    )


def line(shown: Shown) -> str:
    """What a console shows."""
    return f"<{type(shown).__name__} {title_of(shown)}: {headline(shown)}>"


def page(shown: Shown) -> str:
    """Title, summary and what has to be said, as HTML without styles of its own."""
    frame = table(shown, "summary")
    rows = frame.head(MOST_ROWS).map(_cell).to_html(index=False, border=0, escape=True, na_rep="")
    notes = list(notes_of(shown))
    if len(frame) > MOST_ROWS:
        notes.insert(0, f'{MOST_ROWS} of {len(frame):,} rows; .table("summary") has all.')
    listed = "".join(f"<li>{html.escape(note)}</li>" for note in notes)
    return (
        f"<div><p><strong>{html.escape(title_of(shown))}</strong></p>{rows}"
        + (f"<ul>{listed}</ul>" if listed else "")
        + "</div>"
    )


def _cell(value: Any) -> Any:
    """Numbers as short as they can be read; text stays whole."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if value != value:
        return ""
    return f"{value:,.{_DIGITS}g}" if abs(value) < 10**_DIGITS else f"{value:,.0f}"


def show(shown: Shown) -> None:
    """Everything at once in the cell that is run; in a terminal one line."""
    from IPython.core.getipython import get_ipython
    from IPython.display import HTML, display
    from IPython.terminal.interactiveshell import TerminalInteractiveShell

    if isinstance(get_ipython(), TerminalInteractiveShell):
        print(line(shown))
        return
    display(HTML(page(shown)))
    if find_spec("plotly") is None:
        display(HTML(f"<p>{NO_FIGURES}</p>"))
        return
    for name in figure_names(shown)[:AT_ONCE]:
        display(figure(shown, name))

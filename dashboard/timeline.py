"""The timeline: an overview of the step, and the bars of a window of it."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from functools import partial
from time import sleep
from typing import Any

import streamlit as st

from dashboard import explain
from dashboard.address import keep_view
from dashboard.chart_file import save_button, slug
from dashboard.frame import presenting
from dashboard.links import VIEW_DEFAULTS, WHOLE_STEP
from dashboard.numbers import number_field, say_refused
from triosim import Result
from triosim.figures import Style, gantt_bars, gantt_overview
from triosim.figures.figure import Figure, Trace
from triosim.figures.gantt_bars import CUSTOM_DATA
from triosim.figures.lanes import gpu_labels

MAX_RANKS = 16
OVERVIEW_PX = 420
LARGE = 20  # pixels, on a projector
STEP = 0.1  # percent
TEXT_FIRST_S = 0.5
PATH = "critical_path"  # in the address
# What a chart offers itself, while the mouse is over it: its picture as PNG.
CHART = {
    "displaylogo": False,
    "modeBarButtons": [["toImage"]],
    "toImageButtonOptions": {"scale": 2},
}
_CLICKED = ("task", "rank", "gap")  # what a click on a bar tells


def style() -> Style:
    """Figures in the colours of the page; in large type and full contrast on a projector."""
    dark = st.context.theme.type == "dark"
    return Style(dark=dark, font_size=LARGE, strong=True) if presenting() else Style(dark=dark)


def show(figure: Figure, alt: str, *, legend_below: bool = False, **more: Any) -> None:
    """A figure with its own colours; `alt` is for those who cannot see it.

    A legend of many lines belongs below: inside, it takes its room on a phone that hides it, too.
    """
    _let_text_be_seen()
    legend = figure.settings.get("showlegend")
    if legend_below:
        figure.update_layout(showlegend=False)
    key = slug(more.get("key") or alt)
    with st.container(key=f"chart_{key}"):
        st.plotly_chart(figure, theme=None, config=CHART, alt=alt, **more)
        if legend:
            _legend(figure, "wide-legend" if legend_below else "narrow-legend")
        save_button(figure, alt, style(), legend=legend is not False, key=key)


def on_click(key: str, function: Callable[[Any], None], about: Any) -> Callable[[], None]:
    """For a chart's `on_select`: calls the function with what the chart was last drawn from.

    NOTE: Streamlit keeps the callback of each widget until its session ends, and each new figure is
    a new widget; callbacks that held results would hold all that a session has ever seen.
    """
    place = f"{key}_about"
    st.session_state[place] = about
    return partial(_call, function, place)


def _call(function: Callable[[Any], None], place: str) -> None:
    function(st.session_state[place])


def _let_text_be_seen() -> None:
    """Wait before the first chart of a session, while its browser shows what it has by then.

    NOTE: Plotly's code keeps a browser busy for most of a second, and text that has arrived with it
    would wait behind it. Text is seen 0.7 s sooner so, and the chart 0.1 s later.
    """
    if "seen" not in st.session_state:
        st.session_state["seen"] = True
        if st.context.headers:  # not where a test runs the page without a browser
            sleep(TEXT_FIRST_S)


def _legend(figure: Figure, kind: str) -> None:
    """The legend below a figure; a narrow one for pages whose style hides the one inside."""
    marks: dict[str, str] = {}
    for trace in figure.traces:
        name = trace.get("name")
        if name and trace.get("showlegend") is not False:
            marks.setdefault(name, _mark(trace))
    entries = "".join(
        f'<span><i style="{html.escape(mark)}"></i>{html.escape(name)}</span>'
        for name, mark in marks.items()
    )
    st.html(f'<div class="legend-below {kind}">{entries}</div>')


def _mark(trace: Trace) -> str:
    """The sign beside a name: a square, or a line as it is drawn."""
    if trace["type"] == "bar" or "markers" in (trace.get("mode") or ""):
        return f"background: {trace.get('marker', {}).get('color')}"
    line = trace.get("line", {})
    dash, colour = line.get("dash"), line.get("color")
    if dash in (None, "solid"):
        return f"background: {colour}"
    return f"height: 0; border-top: 3px {'dotted' if dash == 'dot' else 'dashed'} {colour}"


def representatives(result: Result) -> list[int]:
    """One GPU of each group of identical ones."""
    return [group.rank for group in result.classes]


@st.fragment
def timeline(result: Result) -> None:
    """Overview and detail; in a fragment, so that a new window redraws only these."""
    overview = st.container()
    left, right = st.columns([0.6, 0.4], vertical_alignment="bottom")
    with right:
        ranks = _ranks(result)
        explain.path_toggle(PATH)
    with left:
        window = part_of(
            "Window (part of the step); or drag over the picture above", "window", result.total_ms
        )
    keep_view("address", VIEW_DEFAULTS)
    with overview:
        whole = window == (0.0, result.total_ms)
        figure = gantt_overview(result, ranks, window_ms=None if whole else window, style=style())
        _flatten(figure)
        show(
            figure,
            "Timeline of the whole step: what each stream of each GPU mostly does",
            key="overview",
            on_select=_zoom,
            selection_mode="box",
        )
    st.session_state["shown_ms"] = result.total_ms
    path = explain.path_of(result, PATH)
    show(
        gantt_bars(result, ranks, window, path=path, style=style()),
        "Operators and transfers in the window",
        key="operators",
        on_select=partial(
            explain.clicked, "operators", result.scenario, explain.CHOSEN, CUSTOM_DATA, _CLICKED
        ),
        selection_mode="points",
    )
    names = dict(zip(ranks, gpu_labels(result, ranks), strict=True))
    explain.explanation(result, names, path, show, style())


def _flatten(figure: Figure) -> None:
    """An overview is a strip; the bars below have its legend and its axis."""
    lanes = len(figure.settings["yaxis"].get("categoryarray", ()))
    height = min(figure.settings["height"] - 34, 50 + 15 * lanes)
    if height > OVERVIEW_PX:
        height = OVERVIEW_PX
        figure.update_yaxes(dtick=None)
    figure.update_layout(showlegend=False, height=height)
    figure.update_xaxes(title=None)


def part_of(label: str, key: str, total_ms: float) -> tuple[float, float]:
    """A slider for a window of the step, bound to the address; in milliseconds."""
    low, high = st.slider(
        label, *WHOLE_STEP, WHOLE_STEP, STEP, format="%.1f%%", key=key, bind="query-params"
    )  # fmt: skip
    if high - low < STEP:
        low, high = max(0.0, high - STEP), max(STEP, high)
    return low / 100 * total_ms, high / 100 * total_ms


def _zoom() -> None:
    """A box on the overview becomes the window."""
    boxes = st.session_state["overview"].selection.box
    total_ms = st.session_state.get("shown_ms", 0.0)
    if boxes and total_ms > 0:
        edges = sorted(min(100.0, max(0.0, x / total_ms * 100)) for x in boxes[0]["x"])
        low, high = (round(edge, 1) for edge in edges)
        st.session_state["window"] = (low, max(high, round(min(100.0, low + STEP), 1)))


def _ranks(result: Result) -> Sequence[int]:
    """Which GPUs are drawn: one of each kind, or all (some at a time where there are many)."""
    gpus = result.scenario.gpus
    kinds = representatives(result)
    if len(kinds) == gpus <= MAX_RANKS:
        return kinds
    every = st.toggle("Draw identical GPUs too", key="all_ranks", bind="query-params")
    ranks = list(range(gpus)) if every else kinds
    if len(ranks) <= MAX_RANKS:
        return ranks
    last = len(ranks) - MAX_RANKS
    first = number_field(
        f"First of the {MAX_RANKS} GPUs drawn (of {len(ranks):,})",
        0,
        last,
        0,
        step=MAX_RANKS,
        key="first_rank",
        name="First GPU drawn",
        bind="query-params",
    )
    say_refused("first_rank")
    return ranks[first : first + MAX_RANKS]

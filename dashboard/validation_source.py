"""The tab One source: its runs as points, its verdicts, its table, and all that limits them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.cards import show_cards
from dashboard.plain import bullets, plain
from dashboard.timeline import show, style
from dashboard.validation_files import downloads
from dashboard.validation_links import BUBBLES, CHOICES
from dashboard.validation_open import ask_for, show_asked
from dashboard.validation_run import Progress, bubbles, is_here, predict_more, progress_of
from dashboard.validation_table import show_table, table_of
from dashboard.validation_verdict import cards
from triosim.errors import TrioSimError, counted
from triosim.figures.figure import Figure
from triosim.figures.validation import COLUMNS, agreement_scatter, signed
from triosim.figures.validation_more import bubble_scatter
from triosim.validation import Source, load_source, worst
from triosim.validation.bubbles import CITATION, TOLERANCE
from triosim.validation.compare import STACKS

CHART_PX = 300
LARGEST = 5
NAMES = {"time": "Step time", "memory": "Peak memory"}


def source_tab() -> None:
    """The source that is chosen here."""
    left, right = st.columns([0.3, 0.7], vertical_alignment="center")
    with left:
        name = st.selectbox(
            "Source",
            CHOICES["source"],
            key="source",
            bind="query-params",
            label_visibility="collapsed",
        )
    with right:
        head = st.container(horizontal=True, vertical_alignment="center")
    if name == BUBBLES:
        _bubbles(head)
        return
    source = load_source(name)
    head.markdown(f"**{plain(source.title)}**: {plain(source.about)}")
    if not is_here(source):
        st.info(absent(source))
        _limits(source, None)
        return
    try:
        progress = progress_of(source)
        if not progress.complete:
            predict_more(source, progress.done)
        _found(source, progress, head)
    except TrioSimError as error:
        st.error(f"No predictions: {plain(str(error))}")


def absent(source: Source) -> str:
    """Why there is nothing to see of a data set that is not part of the project."""
    return (
        f"{plain(source.title)}: {plain(source.folder or '')} is not part of this project and is "
        "not here. To see its runs, put it into the folder that the variable TRIOSIM\\_PUBLISHED "
        "names, or into shared/published beside the repository."
    )


def _found(source: Source, progress: Progress, head: DeltaGenerator) -> None:
    frame = progress.frame
    if frame is None:
        _limits(source, None)
        return
    stacks = STACKS if source.kind == "train" else STACKS[:1]
    found = cards(source, frame, progress.complete)
    if found:
        show_cards(found)
    show_asked(source.name)
    figures = {
        NAMES[quantity]: agreement_scatter(
            frame, quantity, stacks=stacks, style=style(), height=CHART_PX
        )
        for quantity in _published(frame)
    }
    _charts(source, frame, figures)
    table = table_of(frame, stacks=stacks)
    show_table(source.name, frame, table)
    with head:
        downloads(f"validation-{source.name}", table.drop(columns="train"), figures)
    _limits(source, frame)


def _published(frame: pd.DataFrame) -> list[str]:
    return [name for name, unit in COLUMNS.items() if frame[f"published_{unit}"].notna().any()]


def _charts(source: Source, frame: pd.DataFrame, figures: dict[str, Figure]) -> None:
    """Two pictures side by side; beside a single one, the largest errors."""
    columns = st.columns(2)
    for column, (title, figure) in zip(columns, figures.items(), strict=False):
        key = f"points_{source.name}_{title.partition(' ')[2]}"
        with column:
            show(
                figure,
                f"{title}: predicted against published",
                key=key,
                on_select=partial(_clicked, source.name, key),
                selection_mode="points",
            )
    if len(figures) < len(columns):
        rows = worst(frame, LARGEST).to_dict("records")
        lines = [
            f"{signed(row['calibrated_time_error'])} row {row['row']}, {row['run']}" for row in rows
        ]
        columns[-1].markdown(f"**Largest errors of step time**\n\n{bullets(lines)}")


def _clicked(name: str, key: str) -> None:
    """A click on a point opens that run."""
    for point in st.session_state[key].selection.points:
        ask_for(name, int(point["customdata"][0]))


def _limits(source: Source, frame: pd.DataFrame | None) -> None:
    """What is known to be wrong, what is left out and why, what was assumed, and who published."""
    left, right = st.columns(2)
    _list(left, "Known failures", source.known_failures)
    refused = [] if frame is None else _refused(frame)
    out = [f"{_rows(item.rows)}: {item.why}" for item in source.left_out]
    _list(left, "Left out, and why", [*out, *refused])
    _list(right, "Model sizes kept apart", source.held_out)
    _list(right, "Fitted, and not told by these runs", source.unidentified)
    _list(right, "Assumed", source.assumptions)
    nothing = not (source.known_failures or out or refused)
    (left if nothing else right).markdown(f"**Source**\n\n{plain(source.citation)}")


def _rows(numbers: str) -> str:
    return f"Row {numbers}" if numbers.isdecimal() else f"Rows {numbers}"


def _refused(frame: pd.DataFrame) -> list[str]:
    """Runs that the engine refuses, by its sentence."""
    return [
        f"{_rows(', '.join(map(str, rows)))} cannot be run: {problem}"
        for problem, rows in frame[frame["problem"] != ""].groupby("problem", sort=False)["row"]
    ]


def _list(column: DeltaGenerator, title: str, lines: Sequence[str]) -> None:
    if lines:
        column.markdown(f"**{title}**\n\n{bullets(lines)}")


def _bubbles(head: DeltaGenerator) -> None:
    """Schedules alone, from published stage times."""
    head.markdown("**Zero Bubble's bubble rates**: schedules alone, from its measured stage times")
    rates = bubbles()
    agree, cells = int(rates["agrees"].sum()), len(rates)
    off = (rates["predicted"] - rates["published"]).abs()
    verdict = ":green[**met**]" if agree == cells else ":red[**not met**]"
    show_cards(
        (
            ("Cells that agree", f"{agree} of {cells}", f"asked for: all of them: {verdict}"),
            (
                "Largest difference",
                f"{off.max() * 100:.2f} points",
                f"mean {off.mean() * 100:.3f} points of the step",
            ),
        )
    )
    left, right = st.columns(2)
    figure = bubble_scatter(rates, style=style(), height=CHART_PX)
    with left:
        show(figure, "Bubble rates: predicted against published")
    allowed = ", ".join(f"{name} {limit * 100:g} points" for name, limit in TOLERANCE.items())
    with right:
        st.dataframe(
            _rates_shown(rates),
            hide_index=True,
            height=CHART_PX,
            column_config={
                name: st.column_config.NumberColumn(format="%.2f")
                for name in ("published (%)", "predicted (%)")
            },
        )
    st.caption(
        f"A bubble is the share of the step in which a stage waits. Agrees within: {allowed}; the "
        f"paper rounds its stage times. {counted(cells, 'cell')}."
    )
    st.markdown(f"**Source**\n\n{plain(CITATION)}")
    with head:
        downloads("validation-bubbles", rates, {"Bubble rates": figure})


def _rates_shown(rates: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "model": rates["size"],
            "stages": rates["stages"],
            "micro-batches": rates["microbatches"],
            "schedule": rates["schedule"],
            "published (%)": rates["published"] * 100,
            "predicted (%)": rates["predicted"] * 100,
            "agrees": rates["agrees"].map({True: "yes", False: "no"}),
        }
    )

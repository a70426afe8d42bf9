"""The tab All sources: how far off each one is, and whether that is what was asked for."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.plain import plain
from dashboard.timeline import show, style
from dashboard.validation_files import downloads
from dashboard.validation_run import Progress, is_here, predict_more, progress_of
from dashboard.validation_verdict import NAMES, in_words, verdicts
from triosim.errors import TrioSimError
from triosim.figures.validation import source_errors
from triosim.validation import Source, load_source, source_names

PERCENT = {"mean error": "%.1f", "bias": "%+.1f", "asked for": "%.1f", "asked bias": "\u00b1%.1f"}


def all_tab() -> None:
    """What is known so far; on request the rest, one source after the other."""
    sources = [load_source(name) for name in source_names()]
    here = [source for source in sources if is_here(source)]
    left, right = st.columns([0.75, 0.25], vertical_alignment="center")
    with left:
        go_on = st.toggle(
            "Predict every source", key="every_source", bind="query-params",
            help="Takes some minutes of one worker; the rest of the dashboard goes on meanwhile.",
        )  # fmt: skip
    try:
        known = {source.name: progress_of(source) for source in here}
    except TrioSimError as error:
        st.error(f"No predictions: {plain(str(error))}")
        return
    waiting = [source for source in here if not known[source.name].complete]
    if waiting and go_on:
        predict_more(waiting[0], known[waiting[0].name].done)
    lines = [line for source in here for line in _lines(source, known[source.name])]
    _overview(lines, right)
    _absent(waiting if not go_on else [], sources, here)


def _overview(lines: list[dict[str, object]], actions: st.delta_generator.DeltaGenerator) -> None:
    table = pd.DataFrame(lines)
    if table.empty:
        return
    figure = source_errors(table, style=style())
    show(figure, "Mean absolute error of each source beside what was asked for")
    shown = _shown(table)
    st.dataframe(
        shown,
        hide_index=True,
        height="content",
        placeholder="",
        column_config={
            name: st.column_config.NumberColumn(format=f"{number} %%")
            for name, number in PERCENT.items()
        },
    )
    st.caption(
        "Mean absolute errors with the constants as shipped; no constant is fitted to a single "
        "run. Bubble rates stand under One source."
    )
    with actions.container(horizontal=True, horizontal_alignment="right"):
        downloads("validation", shown, {"Errors by source": figure})


def _absent(waiting: list[Source], sources: list[Source], here: list[Source]) -> None:
    if waiting:
        names = ", ".join(source.title for source in waiting)
        st.caption(f"Not predicted yet, or not wholly: {plain(names)}.")
    missing = [source for source in sources if source not in here]
    if missing:
        names = ", ".join(f"{source.title} ({source.folder})" for source in missing)
        st.caption(f"Not part of this project and not here: {plain(names)}.")


def _lines(source: Source, progress: Progress) -> list[dict[str, object]]:
    """A line for each verdict, once the source is wholly predicted."""
    if progress.frame is None or not progress.complete:
        return []
    return [
        {
            "label": f"{source.title}: {NAMES[verdict.quantity].lower()}",
            "stack": verdict.stack,
            "with": verdict.stack if source.kind == "train" else "no stack",
            "rows": verdict.rows,
            "mean_error": verdict.mean_error,
            "bias": verdict.bias,
            "target": float("nan") if verdict.asked is None else verdict.asked * 100,
            "met": in_words(verdict.met),
            "asked_bias": float("nan") if verdict.asked_bias is None else verdict.asked_bias * 100,
            "bias_met": in_words(verdict.bias_met),
        }
        for verdict in verdicts(source, progress.frame)
    ]


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "source": table["label"],
            "stack": table["with"],
            "runs": table["rows"],
            "mean error": table["mean_error"] * 100,
            "asked for": table["target"],
            "": table["met"],
            "bias": table["bias"] * 100,
            "asked bias": table["asked_bias"],
            " ": table["bias_met"],
        }
    )

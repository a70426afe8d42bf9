"""A sweep's results: how far it is, the best point, and tabs of pictures and tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from dashboard import bound
from dashboard.complaints import on_top
from dashboard.names import name_of
from dashboard.plain import plain
from dashboard.sweep_board import Run, State
from dashboard.sweep_links import TABS, TITLES, VIEW, title_of
from dashboard.sweep_open import ask_for, clicked, say_refused
from dashboard.sweep_run import AT_ONCE, begin, key_of, points_of, sweep_of, watch
from dashboard.sweep_side import Asked
from dashboard.sweep_table import (
    OPEN,
    counts,
    reasons_table,
    settings_text,
    shown_table,
    whole_table,
)
from dashboard.sweep_values import value_label
from dashboard.timeline import on_click, show, style
from dashboard.validation_files import downloads
from triosim.errors import counted
from triosim.export.table import to_csv
from triosim.figures.figure import Figure
from triosim.figures.sweep import sweep_line, sweep_pareto
from triosim.figures.sweep_heatmap import sweep_heatmap
from triosim.figures.text import digits
from triosim.hardware import load_gpu
from triosim.sweep import METRICS, Point
from triosim.sweep.found import best_of, without_effect
from triosim.train import TrainScenario

TABLE_PX, SKELETON_PX = 420, 300
NOT_OF_TRACES, NOT_OF_TRAINING = ("tokens_per_s_per_gpu", "mfu"), ("speedup",)
COUNTED = {"fits": "fit", "does not fit": "do not fit", "no answer": "have no answer"}
NUMBER, TEXT = st.column_config.NumberColumn, st.column_config.TextColumn


def sweep(asked: Asked) -> None:
    """Everything beside the sidebar."""
    names = " and ".join(field.short for field in asked.fields)
    title, actions = st.columns([0.75, 0.25], vertical_alignment="center")
    title.subheader(f"Sweep over {plain(names)}", anchor=False)
    title.caption(f"Base: {plain(name_of(asked.spec.base))}")
    run = sweep_of(asked.spec)
    if run is None:
        _start(asked)
        return
    points = points_of(run)
    _state(asked, run, len(points))
    say_refused()
    left, right = st.columns([0.3, 0.7], vertical_alignment="center")
    with left:
        metric = _metric(asked)
    with right:
        _best(asked, run, points, metric)
    figures = _tabs(asked, run, points, metric)
    if not points:
        return  # nothing to take along yet
    with actions.container(horizontal=True, horizontal_alignment="right"):
        downloads("sweep", whole_table(points), figures)


def _start(asked: Asked) -> None:
    """Many points are simulated when a person says so."""
    count = len(asked.spec)
    st.markdown(
        f"{counted(count, 'step')} to simulate. More than {AT_ONCE} start when you say so; you can "
        "stop them, and use the other pages meanwhile."
    )
    st.button(
        "Run the sweep", icon=":material/play_arrow:", on_click=begin,
        args=(asked.spec,),
    )  # fmt: skip


def _state(asked: Asked, run: Run, drawn: int) -> None:
    """How far it is, or how it ended where that was not well."""
    if run.bug is not None:
        raise run.bug
    if run.running:
        watch("sweep", key_of(asked.spec), drawn)
    elif run.state is State.STOPPED:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                "Go on", icon=":material/play_arrow:", on_click=begin, args=(asked.spec,),
            )  # fmt: skip
            st.caption(f"Stopped with {drawn:,} of {counted(len(asked.spec), 'step')}.")
    elif run.problem is not None:
        on_top(plain(str(run.problem)), "The sweep ended", beside=False)
        st.button("Try again", on_click=begin, args=(asked.spec,))


def _metric(asked: Asked) -> str:
    """The metric that is looked at; only those that steps of this kind have."""
    without = NOT_OF_TRAINING if isinstance(asked.spec.base, TrainScenario) else NOT_OF_TRACES
    known = [title for title, name in TITLES.items() if name not in without]
    return TITLES[bound.choice(VIEW["metric"], known, label_visibility="collapsed")]


def _best(asked: Asked, run: Run, points: Sequence[Point], metric: str) -> None:
    found = counts(points)
    if not run.running:
        _say_idle(asked, points)
    said = ", ".join(f"{count:,} {COUNTED[name]}" for name, count in found.items())
    best = best_of(points, metric)
    if best is None:
        nothing = "The first steps are being simulated" if run.running else "Nothing is simulated"
        st.caption(f"{said or nothing}.")
        return
    known = METRICS[metric]
    value = digits(best.metrics[metric] or 0.0, 4)
    which = "Least" if known.less_is_better else "Most"
    st.caption(
        f"{which} {plain(known.text)}: **{value} {known.unit}**".rstrip()
        + f" with {plain(settings_text(asked.fields, best))}. {said}."
    )


def _say_idle(asked: Asked, points: Sequence[Point]) -> None:
    """What changes nothing, or a flat line would look like a fault."""
    idle = without_effect(points)
    for field in asked.fields:
        if field.name in idle:
            st.caption(f"{plain(field.short)}: this changes nothing in these steps.")


def _tabs(asked: Asked, run: Run, points: Sequence[Point], metric: str) -> dict[str, Figure]:
    """Views; only the open one is built. Its figure, for a file."""
    opened = st.tabs(list(TABS), key="drawn", on_change="rerun", bind="query-params")
    for name, tab in zip(TABS, opened, strict=True):
        if tab.open:
            with tab:
                if run.running and not points:
                    st.skeleton(SKELETON_PX)
                    return {}
                if name == TABS[0]:
                    return {title_of(METRICS[metric]): _picture(asked, points, metric)}
                if name == TABS[1]:
                    return {name: _pareto(asked, points)}
                (_table if name == TABS[2] else _left_out)(asked, points, metric)
    return {}


def _say(asked: Asked, name: str, value: object) -> str:
    field = next(field for field in asked.fields if field.name == name)
    return value_label(field, value)


def _picture(asked: Asked, points: Sequence[Point], metric: str) -> Figure:
    names, labels = zip(*((field.name, field.label) for field in asked.fields), strict=True)
    say = partial(_say, asked)
    if len(names) == 1:
        figure = sweep_line(points, names[0], labels[0], metric, say=say, style=style())
        what = f"{METRICS[metric].text} for each value of {labels[0]}"
    else:
        figure = sweep_heatmap(points, names, labels, metric, say=say, style=style())
        what = f"{METRICS[metric].text} for each {labels[0]} and {labels[1]}"
    _clickable(figure, what, "sweep_picture", points)
    shades = " The stronger the blue, the better." if len(names) > 1 else ""
    st.caption(f"A click on a point opens its step; Back returns here.{shades}")
    return figure


def _pareto(asked: Asked, points: Sequence[Point]) -> Figure:
    train = isinstance(asked.spec.base, TrainScenario)
    gain = "tokens_per_s_per_gpu" if train else "samples_per_s_per_gpu"
    same = train and not {"gpu", "model"} & {field.name for field in asked.fields}
    base = asked.spec.base
    capacity = load_gpu(base.gpu).memory_bytes / 2**30 if same and base.gpu else None
    figure = sweep_pareto(
        points, gain, say=partial(_say, asked), capacity_gib=capacity, style=style()
    )
    what = f"Peak memory against {METRICS[gain].text}"
    _clickable(figure, what, "sweep_pareto", points)
    st.caption(
        "To the left: less memory; up: faster. On the line are the steps that no other one beats "
        "in both. A click opens a step."
    )
    return figure


def _clickable(figure: Figure, alt: str, key: str, points: Sequence[Point]) -> None:
    show(
        figure, alt, key=key, on_select=on_click(key, partial(clicked, key), points),
        selection_mode="points",
    )  # fmt: skip


def _table(asked: Asked, points: Sequence[Point], metric: str) -> None:
    table = shown_table(asked.fields, points, metric)
    columns = {
        name: NUMBER(name, format="%.4g")
        for name in table.columns
        if pd_is_number(table[name]) and name not in {field.label for field in asked.fields}
    }
    _doors(table, points, columns)
    st.download_button(
        "Table (CSV)", lambda: to_csv(whole_table(points)).encode(), "sweep.csv",
        on_click="ignore", icon=":material/download:", key="sweep_csv",
    )  # fmt: skip


def pd_is_number(column: object) -> bool:
    return getattr(column, "dtype", None) is not None and column.dtype.kind in "fi"


def _left_out(asked: Asked, points: Sequence[Point], metric: str) -> None:
    left = [point for point in points if not point.feasible]
    if not left:
        st.info("Every step has an answer and fits in memory.")
        return
    _doors(reasons_table(asked.fields, points), left, {})
    st.caption(f"{counted(len(left), 'step')} without a place among the others, and why.")


def _doors(table: object, points: Sequence[Point], columns: dict[str, object]) -> None:
    """A table with a button in each line that opens its step."""
    key = f"sweep_rows_{len(table.columns)}"

    def asked_for() -> None:
        ask_for(points[int(st.session_state[key].row)])

    st.dataframe(
        table,
        hide_index=True,
        height=min(TABLE_PX, 38 + 35 * len(points)),
        column_config={
            OPEN: st.column_config.ButtonColumn(
                "", type="tertiary", on_click=asked_for, key=key, width=60, pinned=True
            ),
            "why": TEXT("Why", width=420),
            **columns,
        },
    )

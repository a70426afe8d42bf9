"""Sweeps on the server's patient workers, and how far they are."""

from __future__ import annotations

import time
from collections.abc import Hashable

import streamlit as st

from dashboard.sweep_board import Run, attend, board
from dashboard.sweep_workers import Lane
from dashboard.train_run import check_size as check_training
from dashboard.work import check_size
from triosim.figures.text import time_text
from triosim.resolved import AnyScenario
from triosim.sweep import Point, SweepSpec, run_points
from triosim.train import TrainScenario, make_plan

AT_ONCE = 100  # points: so few are simulated without being asked
TICK_S = 0.5
REDRAW_S = 1.5


def sweep_of(spec: SweepSpec) -> Run | None:
    """The sweep as far as it is; a small one is started. None where it has to be asked for."""
    run = attend("sweep", key_of(spec))
    if run is None and len(spec) <= AT_ONCE:
        run = begin(spec)
    return run


def key_of(spec: SweepSpec) -> Hashable:
    return "sweep", spec


def begin(spec: SweepSpec) -> Run:
    """Start it, or go on with what is left of it."""
    rows = board().rows

    def work(run: Run, lane: Lane) -> None:
        points: dict[int, Point] = {}
        run.found = points
        for point in run_points(spec, executor=lane, store=rows, check=check):
            points[point.index] = point
            run.advance(len(points), len(spec))

    return board().begin(key_of(spec), len(spec), work)


def check(scenario: AnyScenario) -> None:
    """Refuse a step that would keep a worker busy for long; raises `ConfigError`."""
    if isinstance(scenario, TrainScenario):
        check_training(make_plan(scenario))
    else:
        check_size(scenario)


def points_of(run: Run) -> list[Point]:
    """The points that are known, in the order of the sweep."""
    found: dict[int, Point] = run.found or {}
    return [found[index] for index in sorted(found.copy())]


@st.fragment(run_every=TICK_S)
def watch(kind: str, key: Hashable, drawn: int) -> None:
    """A bar of how far a run is, and a button to stop it; the page is drawn again with more.

    `drawn` is how much of it the page shows. A fragment, because a script that waits would leave
    the page half drawn.
    """
    run = attend(kind, key)
    if run is None or not run.running:
        st.rerun()
    left, right = st.columns([0.86, 0.14], vertical_alignment="center")
    with left:
        st.progress(min(1.0, run.done / max(run.total, 1)), _progress_text(run))
    with right:
        stop = st.button("Stop", icon=":material/stop_circle:", key=f"stop_{kind}", width="stretch")
    if stop:
        run.stop()
        run.settle()
        st.rerun()
    now_s = time.monotonic()
    if drawn < run.done and now_s - st.session_state.get("sweep_drawn_s", 0.0) > REDRAW_S:
        st.session_state["sweep_drawn_s"] = now_s
        st.rerun()


def _progress_text(run: Run) -> str:
    what = f"{run.doing[:1].upper()}{run.doing[1:]}: " if run.doing else ""
    left = run.left_s
    text = f"{what}{run.done:,} of {run.total:,}"
    return text if left is None else f"{text}, about {time_text(left * 1e3)} left"

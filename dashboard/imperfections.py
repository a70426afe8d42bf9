"""Controls of the sidebar for what is not ideal: slow GPUs, jitter, bad links, overlap."""

from __future__ import annotations

import streamlit as st

from dashboard.links import network_of, read_faults, read_speeds, write_faults, write_speeds
from dashboard.numbers import is_legal, number_field, refuse
from dashboard.settings import Setting, on_machine
from dashboard.topologies import BAD_LINKS_HELP, bad_links_text, connections
from dashboard.widgets import Controls, number, number_with_slider, text
from triosim.errors import ConfigError
from triosim.figures.text import digits
from triosim.joined import MEASURED_SLOWDOWN
from triosim.scenario import Scenario

IMPERFECTIONS = ("rank_speed", "slow_every", "jitter", "seed", "dead_links", "overlap_slowdown")
JITTER_MARKS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3)
NO_LINK = "choose"
SHARES_LEFT = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
OVERLAP_HELP = (
    "Computing takes so much longer while its GPU communicates. Empty: "
    f"{MEASURED_SLOWDOWN:g} on a machine, as measured in training on A100, H100, MI210 and MI250 "
    "(Lee et al. 2025, arXiv 2507.03114), and 0 on other networks."
)


def imperfections(controls: Controls) -> None:
    """Slow GPUs, jitter, bad links, and computing slowed by what moves beside it."""
    gpus = controls.values["gpus"]
    controls.put("rank_speed", lambda s: _stragglers(s, gpus))
    controls.put("slow_every", lambda s: number(s, step=1, help="1: they are slow in every step."))
    controls.put("jitter", lambda s: number_with_slider(s, JITTER_MARKS, step=0.01, shown=_percent))
    controls.put("seed", lambda s: number(s, step=1))
    controls.put("dead_links", lambda s: _bad_links(s, _names(controls)))
    absent = f"{MEASURED_SLOWDOWN:g}, measured" if on_machine(controls.values) else "0"
    controls.put(
        "overlap_slowdown",
        lambda s: number(s, step=0.05, placeholder=absent, help=OVERLAP_HELP),
    )


def _percent(share: float) -> str:
    return f"{digits(100 * share)} %"


def _names(controls: Controls) -> tuple[str, ...]:
    """The connections of the network that is chosen; none where that is not right yet."""
    known = controls.known
    try:
        return connections(
            Scenario(
                case=known["case"],
                gpus=known["gpus"],
                topology=network_of(known),
                algorithm=known["algorithm"],
            )
        )
    except ConfigError:
        return ()


def _bad_links(setting: Setting, names: tuple[str, ...]) -> str | None:
    """Any connections as text; one of them and what is left of it as handles."""
    given = text(
        setting,
        bad_links_text(names),
        help=BAD_LINKS_HELP,
    )
    if names:
        _link_handles(names, setting.name)
    return given


def _faults(typed: str | None) -> dict[str, float]:
    """The bad links of the text; none of a wrong text."""
    try:
        return read_faults(typed or "")
    except ConfigError:
        return {}


def _link_handles(names: tuple[str, ...], target: str) -> None:
    keys = "bad_link", "bad_link_left"
    faults = _faults(st.session_state.get(target))
    chosen = st.session_state.get(keys[0])
    if chosen not in names:
        chosen = next((name for name in faults if name in names), None)
        st.session_state[keys[0]] = chosen
    left = faults.get(chosen, 1.0) if chosen is not None else 1.0
    if st.session_state.get(keys[1]) != left:
        st.session_state[keys[1]] = left
    one, other = st.columns([0.55, 0.45])
    one.selectbox(
        "Connection",
        (None, *names),
        (None, *names).index(chosen),
        key=keys[0],
        format_func=lambda name: name or NO_LINK,
        placeholder=NO_LINK,
        on_change=_choose_link,
        args=(target,),
    )
    other.select_slider(
        "Left of it",
        sorted({*SHARES_LEFT, left}),
        left,
        key=keys[1],
        format_func=_percent,
        on_change=_set_link,
        args=(target, names[0]),
    )


def _choose_link(target: str) -> None:
    """A connection that is chosen is dead at first; the others stay."""
    chosen = st.session_state["bad_link"]
    faults = _faults(st.session_state.get(target))
    if chosen is not None and chosen not in faults:
        st.session_state[target] = write_faults({**faults, chosen: 0.0})


def _set_link(target: str, first: str) -> None:
    """What is left of the chosen connection; all of it takes it out."""
    chosen, left = st.session_state["bad_link"] or first, st.session_state["bad_link_left"]
    st.session_state["bad_link"] = chosen
    faults = {**_faults(st.session_state.get(target)), chosen: left}
    if left == 1:
        del faults[chosen]
    st.session_state[target] = write_faults(faults) or None


def _stragglers(setting: Setting, gpus: int) -> str | None:
    """Any GPUs as text; rank and speed of the first one as handles, which follow the text."""
    given = text(setting, f"none; {min(3, gpus - 1)}=0.5 is half speed")
    _straggler_handles(gpus, setting.name)
    return given


def _slow_gpus(typed: str | None, gpus: int) -> tuple[dict[int, float], int | None]:
    """The slow GPUs of the text, and the first of them that is there; none of a wrong text."""
    try:
        speeds = read_speeds(typed or "")
    except ConfigError:
        return {}, None
    return speeds, next((rank for rank in speeds if rank in range(gpus)), None)


def _straggler_handles(gpus: int, target: str) -> None:
    keys = "slow_rank", "slow_speed"
    speeds, first = _slow_gpus(st.session_state.get(target), gpus)
    shown = (None, 1.0) if first is None else (first, speeds[first])
    for key, value in zip(keys, shown, strict=True):
        if st.session_state.get(key) != value:
            st.session_state[key] = value
    left, right = st.columns([0.4, 0.6])
    with left:
        number_field(
            "Slow GPU",
            0,
            gpus - 1,
            None,
            key=keys[0],
            placeholder="none",
            on_change=_set_straggler,
            args=(target, gpus),
        )
    right.select_slider(
        "Its speed",
        sorted({*(round(0.1 * i, 1) for i in range(1, 11)), shown[1]}),
        shown[1],
        key=keys[1],
        on_change=_set_straggler,
        args=(target, gpus),
    )


def _set_straggler(target: str, gpus: int) -> None:
    """Change the first slow GPU; the others stay. Full speed takes it out."""
    rank, speed = st.session_state["slow_rank"], st.session_state["slow_speed"]
    if rank is not None:
        if not is_legal(rank, 0, gpus - 1, True):
            refuse("Slow GPU", rank, 0, gpus - 1, True, key=target)
            return
        rank = int(rank)
    speeds, first = _slow_gpus(st.session_state.get(target), gpus)
    speeds.pop(first, None)
    if rank is None and first is None and speed < 1:
        rank = 0
    if rank is not None and (speed < 1 or rank != first):
        speeds = {rank: 0.5 if speed == 1 else speed, **speeds}
    st.session_state[target] = write_speeds(speeds) or None

"""The address of the page Sweep: the whole sweep, the whole search, and what is looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from dashboard.address import (
    Raw,
    chosen,
    here,
    put_right,
    read_parameters,
    return_to,
    setting_value,
)
from dashboard.examples import RUNNING
from dashboard.links import Link, Parameters
from dashboard.packed import kind_of, missing, pack, unpack
from dashboard.search_settings import OPTIONS
from dashboard.search_settings import SETTINGS as SEARCH
from dashboard.settings import VERSION, Setting
from dashboard.sweep_fields import Field, fields_of, fields_of_kind, matters
from dashboard.sweep_values import MAX_TEXT
from triosim.errors import ConfigError
from triosim.resolved import AnyScenario
from triosim.sweep import METRICS, Metric

PAGE = "pages/sweep.py"
BASE = "base"
_BASE = "sweep_base"  # its place in the session
VARY = ("vary", "vary2")  # the fields that take values in turn
OVER = ("over", "over2")  # and those values
SWEEP, SEARCH_MODE = MODES = ("Sweep", "Search")
TABS = ("Picture", "Memory against speed", "Table", "Left out")


def title_of(metric: Metric) -> str:
    """As axes and lists call it."""
    text = metric.text[:1].upper() + metric.text[1:]
    return f"{text} ({metric.unit})" if metric.unit not in ("", "1/s") else text


TITLES: Mapping[str, str] = {title_of(metric): name for name, metric in METRICS.items()}
VIEW: Mapping[str, Setting] = {
    setting.name: setting
    for setting in (
        Setting(name="part", label="Part", default=SWEEP, kind="choice", choices=MODES),
        Setting(
            name="metric", label="Metric", default=next(iter(TITLES)), kind="choice",
            choices=tuple(TITLES),
        ),
        Setting(name="drawn", label="Tab", default=TABS[0], kind="choice", choices=TABS),
    )
}  # fmt: skip
_LISTS = tuple(OPTIONS)  # parts of a search that are lists
_OWN = (BASE, *VARY, *OVER, *_LISTS)
BOUND: Mapping[str, Setting] = {
    **VIEW, **{name: setting for name, setting in SEARCH.items() if name not in _LISTS},
}  # fmt: skip


def link_to(base: AnyScenario, over: Mapping[str, str]) -> Parameters:
    """The address that sweeps up to two fields of a scenario over values as they are typed."""
    parameters: Parameters = {"v": VERSION} | _base(base)
    for vary, values, (name, text) in zip(VARY, OVER, over.items(), strict=False):
        parameters |= {vary: name, values: text}
    return parameters


def _base(base: AnyScenario) -> dict[str, str]:
    return {} if base == RUNNING else {BASE: pack([base])}


def _packed_base() -> str:
    """The base as the page has it: a rerun may come with an address that is older than that."""
    text: str = st.session_state.setdefault(_BASE, st.query_params.get(BASE, ""))
    _write(BASE, text or None)
    return text


def base_here() -> AnyScenario:
    """The step that the sweep begins with; raises `TrioSimError`."""
    text = _packed_base()
    if not text:
        return RUNNING
    found = unpack(text)
    if len(found) != 1:
        raise ConfigError(BASE, f"{len(found)} steps", "a sweep begins with one")
    return found[0]


def missing_here() -> list[Any]:
    """The uploads that the base needs and this session lacks."""
    text = _packed_base()
    return missing(text) if text else []


def set_base(base: AnyScenario) -> None:
    """In a callback: begin with this step. What it cannot go through is left to be chosen anew."""
    st.session_state[_BASE] = _base(base).get(BASE, "")
    for place, (vary, over) in enumerate(zip(VARY, OVER, strict=True)):
        name = st.query_params.get(vary, "")
        if name not in fields_of(base) or not matters(name, base):
            st.session_state.pop(f"sweep_vary_{place}", None)  # its list
            _write(vary, None)
            _write(over, None)


def drop_base() -> None:
    """In a callback: begin with the usual step."""
    set_base(RUNNING)


def text_here(name: str) -> str:
    """What the address says of a list."""
    return st.query_params.get(name, "")


def keep_text(name: str, text: str | None) -> None:
    """Write a list into the address, or take it out."""
    _write(name, text)


def switched() -> None:
    """In a callback, between sweep and search: the settings of a search are as they were left."""
    for name, value in st.session_state.get("search_left", {}).items():
        st.session_state[name] = value


def _write(name: str, text: str | None) -> None:
    if text is None:
        if name in st.query_params:
            del st.query_params[name]
    elif st.query_params.get(name) != text:
        st.query_params[name] = text


def return_here(arrived: bool) -> None:
    """Back from a step that was opened here: open the sweep or search again."""
    return_to(PAGE, "sweep_address", (*_OWN, *BOUND), arrived=arrived)


def read_address(arrived: bool) -> None:
    """Note what is wrong with the address and put it right, before the first widget."""
    if arrived:
        st.session_state[_BASE] = st.query_params.get(BASE, "")
    put_right("sweep", read_sweep(here(), own=not arrived), BOUND, arrived=arrived)


def read_sweep(raw: Raw, *, own: bool = False) -> Link:
    """What an address means; parts that are not accepted count as absent, with a sentence each.

    `own` says that the page's widgets wrote it: a number out of range is then theirs to answer.
    """
    link = read_parameters(raw, partial(value_of, own=own))
    values, parameters = dict(link.values), dict(link.parameters)
    wrong = list(link.rejected)

    def put(name: str, text: str, error: ConfigError | None) -> None:
        """Keep what is left of a part of the address."""
        if error is None:
            return
        wrong.append(error.named(name))
        values[name] = parameters[name] = text
        if not text:
            del values[name], parameters[name]

    known = _fields_of_link(values.get(BASE, ""))
    before = ""
    for vary, over in zip(VARY, OVER, strict=True):
        name = values.get(vary, "")
        if vary in values and known is not None:
            put(vary, *_known(vary, name, known, before))
        if over in values and vary not in values:
            put(over, "", ConfigError(over, values[over], f"needs {vary}: what has these values"))
        elif over in values and known is not None:
            put(over, *_options(over, values[over], tuple(known[name].choices)))
        before = name
    for name in _LISTS:
        if name in values:
            put(name, *_options(name, values[name], OPTIONS[name]))
    return Link(values=values, parameters=parameters, rejected=wrong)


def _fields_of_link(base: str) -> Mapping[str, Field] | None:
    """What the base of a link can go through; None where that cannot be read, which is said."""
    try:
        kind = kind_of(base) if base else "train"
    except ConfigError:
        return None
    return fields_of_kind(kind) if kind else None


def _known(
    vary: str, name: str, known: Mapping[str, Field], before: str
) -> tuple[str, ConfigError | None]:
    """A field that goes through values, if the base has it."""
    if name not in known:
        legal = f"must be one of {', '.join(known)}"
        return "", ConfigError(vary, name or "(empty)", legal)
    if name == before:
        return "", ConfigError(vary, name, f"is what {VARY[0]} goes through already")
    return name, None


def _options(name: str, text: str, legal: Sequence[str]) -> tuple[str, ConfigError | None]:
    """Of a list those that can be chosen; numbers are read where they are shown."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    wrong = [part for part in parts if part not in legal]
    if not legal or not wrong:
        return text, None
    left = ", ".join(part for part in parts if part in legal)
    return left, ConfigError(name, ", ".join(wrong), f"must be of {', '.join(legal)}")


def value_of(name: str, texts: Sequence[str], *, own: bool = False) -> Any:
    """The value of a parameter by itself; raises `ConfigError`."""
    if name in _OWN:
        if len(texts) != 1:
            raise ConfigError(name, f"{len(texts)} times", "stands once in a link")
        if name != BASE and len(texts[0]) > MAX_TEXT:
            legal = f"must have at most {MAX_TEXT:,} characters"
            raise ConfigError(name, f"{texts[0][:20]}...", legal)
        return texts[0]
    return setting_value(BOUND.get(name), name, texts, own=own, longest=MAX_TEXT)


def keep(vary: Sequence[str | None], over: Sequence[str | None]) -> None:
    """Write what the page's own fields say into the address."""
    for names, texts in ((VARY, vary), (OVER, over)):
        for name, text in zip(names, texts, strict=True):
            _write(name, text or None)


def address_now() -> Parameters:
    """The address as it should read, for the way back from another page."""
    parameters: Parameters = {"v": VERSION}
    parameters |= {name: st.query_params[name] for name in _OWN if name in st.query_params}
    if st.session_state.get("part") == SEARCH_MODE:
        st.session_state["search_left"] = {
            name: st.session_state[name]
            for name in SEARCH
            if name in BOUND and name in st.session_state
        }
    return parameters | chosen(BOUND)

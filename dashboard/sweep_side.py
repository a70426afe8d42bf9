"""The sidebar of a sweep: its base, and one or two fields with their values."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import complaints
from dashboard.links import Parameters
from dashboard.plain import plain
from dashboard.sweep_base import base_control
from dashboard.sweep_fields import Field, fields_of, matters, proposed
from dashboard.sweep_links import OVER, PAGE, VARY, keep, link_to
from dashboard.sweep_values import MAX_TEXT, SYNTAX, values_in
from dashboard.topologies import check_network
from triosim.errors import ConfigError, counted
from triosim.resolved import AnyScenario
from triosim.scenario import Scenario
from triosim.sweep import SweepSpec
from triosim.train import TrainScenario

MAX_POINTS = 2000
# What a new sweep goes through: the first two that change something.
TRAIN_FIRST = ("gpus", "micro_batch_size")
TRACE_FIRST = (
    "gpus", "ptp_bandwidth_gb_per_s", "optical_gb_per_s", "micro_batch_size", "batch_size_sim",
    "bandwidth_gb_per_s",
)  # fmt: skip
FIELD_LABELS = ("Go through", "and through")
NONE = "nothing else"


def link_from(base: AnyScenario) -> Parameters:
    """The address of a first sweep around a step, for the page of that step."""
    known = fields_of(base)
    return link_to(base, {name: proposed(known[name], base) for name in _first(base)})


def _first(base: AnyScenario) -> list[str]:
    if isinstance(base, TrainScenario):
        return list(TRAIN_FIRST)
    return [name for name in TRACE_FIRST if _varies(name, base)][: len(VARY)]


@lru_cache(maxsize=256)
def _varies(field: str, base: Scenario) -> bool:
    """Whether proposed values make different steps: some networks have one size."""
    known = fields_of(base)[field]
    if not matters(field, base):
        return False
    legal = 0
    for value in values_in(proposed(known, base), known, base):
        with suppress(ConfigError):
            check_network(replace(base, **{field: value}))
            legal += 1
    return legal > 1


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the sidebar asks: fields with their values, the last of which varies fastest."""

    spec: SweepSpec
    fields: tuple[Field, ...]


def sweep_button(base: AnyScenario) -> None:
    """A link from a step to a sweep around it, which looks like the buttons beside it."""
    with st.container(key="button_link_sweep", width="content"):
        st.page_link(
            PAGE,
            label="Sweep",
            icon=":material/stacked_line_chart:",
            help="Many steps at once: this one with other numbers of GPUs, batches, links and more",
            query_params=link_from(base),
        )


def choose(base: AnyScenario, arrived: bool) -> Asked | str:
    """Draw the controls and read them; or a sentence, which then stands at one of them as well."""
    base_control(base)
    known = fields_of(base)
    vary: list[str | None] = []
    over: list[str | None] = []
    slots: list[DeltaGenerator] = []
    for place in range(len(VARY)):
        name = _field(place, base, vary, arrived)
        text = None if name is None else _values(place, known[name], base, arrived)
        vary.append(name)
        over.append(text)
        slots.append(st.empty())
    keep(vary, over)
    return _read(base, [known[name] for name in vary if name], over, slots)


def _field(place: int, base: AnyScenario, before: list[str | None], arrived: bool) -> str | None:
    """The field that varies first or second; only the second may be none."""
    known = fields_of(base)
    key = f"sweep_vary_{place}"
    options = [name for name in known if name not in before]
    if place:
        options.insert(0, "")
    asked = st.query_params.get(VARY[place], "")
    now = st.session_state.get(key)
    if arrived or now not in options:
        usual = next(iter(_first(base)[place:]), "")
        first = usual if place == 0 or VARY[0] not in st.query_params else ""
        st.session_state[key] = asked if asked and asked in options else first
        if st.session_state[key] not in options:
            st.session_state[key] = options[0]
    chosen = st.selectbox(
        FIELD_LABELS[place],
        options,
        index=options.index(st.session_state[key]),  # or a first rerun could lose it
        key=key,
        format_func=lambda name: known[name].title if name else NONE,
    )
    return chosen or None


def _values(place: int, field: Field, base: AnyScenario, arrived: bool) -> str:
    """The values as text: chosen from a list, or typed."""
    key = f"sweep_over_{place}_{type(base).__name__}_{field.name}"
    said = st.query_params.get(OVER[place], "")
    mine = st.query_params.get(VARY[place]) == field.name
    text = said if mine and said else proposed(field, base)
    if field.choices:
        if arrived or key not in st.session_state:
            parts = [part.strip() for part in text.split(",")]
            st.session_state[key] = [part for part in parts if part in field.choices]
        chosen = st.multiselect(
            f"{field.label}: values",
            list(field.choices),
            default=st.session_state[key],
            key=key,
            label_visibility="collapsed",
        )
        return ", ".join(chosen)
    if arrived or key not in st.session_state:
        st.session_state[key] = text
    return st.text_input(
        f"{field.label}: values",
        st.session_state[key],
        key=key,
        label_visibility="collapsed",
        placeholder=SYNTAX,
        max_chars=MAX_TEXT,
        help=f"A list, or a range: {SYNTAX}.",
    )


def _read(
    base: AnyScenario, fields: list[Field], over: list[str | None], slots: list[DeltaGenerator]
) -> Asked | str:
    values = {}
    for place, field in enumerate(fields):
        try:
            values[field.name] = values_in(over[place] or "", field, base)
        except ConfigError as error:
            sentence = plain(error.named(field.short))
            complaints.beside(slots[place], sentence)
            return sentence
    spec = SweepSpec.made(base, values)
    parts = " \N{MULTIPLICATION SIGN} ".join(f"{len(axis.values):,}" for axis in spec.axes)
    number = counted(len(spec), "step") + (f" ({parts})" if len(spec.axes) > 1 else "")
    if len(spec) > MAX_POINTS:
        sentence = (
            f"{number} are too many for this page, which stops at {MAX_POINTS:,}: leave some "
            "values out, or use the command line, which goes up to 100,000."
        )
        complaints.beside(slots[len(fields) - 1], sentence)
        return sentence
    st.caption(f"{number} to simulate.")
    return Asked(spec=spec, fields=tuple(fields))

"""The sidebar of the page Network: which network, which collective, who takes part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from dashboard import complaints
from dashboard.described import description_field
from dashboard.network_controls import (
    RANK_MARKS,
    SPEED_MARKS,
    choice,
    members,
    number,
    number_with_slider,
    size_bytes,
    switch,
    text,
)
from dashboard.network_groups import Members
from dashboard.network_settings import (
    AUTO,
    PRESET_NAMES,
    PRESETS,
    SETTINGS,
)
from dashboard.network_study import Network, Question
from dashboard.network_text import read_faults, read_text
from dashboard.plain import plain
from dashboard.settings import DESCRIBED
from dashboard.topologies import BAD_LINKS_HELP, MAX_CHECKED, bad_links_text, names_of
from triosim.errors import ConfigError, TrioSimError
from triosim.network.collectives.choose import ALGORITHMS, algorithms_for
from triosim.network.topology.base import LinkSpec
from triosim.network.topology.describe import GENERIC, Description, describe, machine_names

FIELD_NAMES = {
    "topology": "Topology",
    "dead_links": "Degraded links",
    "group": "Group",
    "algorithm": "Algorithm",
    "operation": "Collective",
    "ranks": "GPUs",
}


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What the sidebar says; without a network `problem` is a sentence on what is wrong with it."""

    name: str
    network: Network | None
    question: Question | None
    problem: str = ""


def sentence(error: TrioSimError) -> str:
    """An error in the words of the page, safe to show."""
    if isinstance(error, ConfigError):
        return plain(error.named(FIELD_NAMES.get(error.field, error.field)))
    return plain(str(error))


def choose() -> Chosen:
    """Draw the controls and read them."""
    st.selectbox(
        "Start from an example",
        list(PRESETS),
        index=None,
        placeholder="choose one ...",
        key="network_preset",
        on_change=_preset,
    )
    name = choice("net")
    if name in machine_names():
        st.caption(plain(machine_names()[name]))
    network, problem = _network(name)
    operation = choice("op")
    algorithm = choice("algo", (AUTO, *algorithms_for(operation)), help=_algorithms(operation))
    size = size_bytes("size")
    kind, typed = members()
    siblings = True
    if kind in ("host", "per-host"):
        siblings = switch("siblings", help="All hosts (or all GPUs of a host) do the same at once.")
    if network is None:
        return Chosen(name=name, network=None, question=None, problem=problem)
    question = Question(
        network=network,
        operation=operation,
        algorithm=algorithm,
        size_bytes=size,
        members=Members(kind=kind, siblings=siblings, text=typed),
    )
    return Chosen(name=name, network=network, question=question)


def _preset() -> None:
    """Set the network and the collective of an example; the field is empty again."""
    values: Mapping[str, Any] = PRESETS[st.session_state["network_preset"]]
    for name in PRESET_NAMES:
        st.session_state[name] = values.get(name, SETTINGS[name].default)
    for name in ("show", "toml"):
        if name in values:
            st.session_state[name] = values[name]
    st.session_state["network_preset"] = None


def _algorithms(operation: str) -> str:
    lines = [f"- {name}: {ALGORITHMS[name].about}" for name in algorithms_for(operation)]
    return "\n".join([f"- {AUTO}: the cheapest for this size", *lines])


def _network(name: str) -> tuple[Network | None, str]:
    """The chosen network; None and a sentence, which also stands beside the control."""
    generic = GENERIC.get(name)
    sides = ""
    if generic is not None and generic.counts:
        sides = text("sides", "as fits the GPUs", help=f"{generic.about}; {generic.choice}.")
    described = description_field("toml") if name == DESCRIBED else ""
    ranks = number_with_slider("ranks", RANK_MARKS)
    link = LinkSpec(bytes_per_s=1e9)
    if generic is not None:
        link = LinkSpec(
            bytes_per_s=number_with_slider("link", SPEED_MARKS, step=10) * 1e9,
            latency_s=number("alpha", step=0.5) * 1e-6,
        )
    field, slot = st.empty(), st.empty()
    problem, whole, names = "", None, ()
    try:
        if name == DESCRIBED:
            description = read_text(described)
        else:
            description = _describe(f"{name}:{sides}" if sides.strip() else name, ranks, link)
        whole = Network(description=description, ranks=ranks)
        names = names_of(whole.build()) if ranks <= MAX_CHECKED else ()
    except TrioSimError as error:
        problem = sentence(error)
    with field:
        faults = text("faults", bad_links_text(names), help=BAD_LINKS_HELP)
    if whole is not None:
        try:
            network = replace(whole, faults=read_faults(faults))
            network.build()
        except TrioSimError as error:
            problem = sentence(error)
        else:
            return network, ""
    complaints.beside(slot, problem)
    return None, problem


def _describe(source: str, ranks: int, link: LinkSpec) -> Description:
    return describe(source.strip(), ranks, link)


def edit(written: str) -> None:
    """Take a description over as one's own."""
    st.session_state["toml"] = written
    st.session_state["net"] = DESCRIBED

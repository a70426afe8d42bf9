"""The tab of the page Network with the network's description: to read, change, keep and use."""

from __future__ import annotations

import streamlit as st

from dashboard.compare_open import door_to
from dashboard.links import listed, write_faults
from dashboard.network_links import parameters_here
from dashboard.network_settings import DESCRIBED
from dashboard.network_side import Chosen, edit
from dashboard.network_study import Network
from dashboard.network_text import write_toml
from dashboard.plain import plain
from dashboard.saved_file import open_saved, save_settings
from triosim.errors import TrioSimError, counted
from triosim.figures.text import digits
from triosim.network.topology.describe import machine_names
from triosim.network.topology.machines import Machine, load_machine
from triosim.scenario import Scenario


def description_tab(chosen: Chosen) -> None:
    """The network in numbers: to read, change and keep; and what it is based on."""
    assert chosen.network is not None
    written = write_toml(chosen.network.description)
    left, right = st.columns([0.5, 0.5])
    with left:
        with st.container(horizontal=True):
            st.button(
                "Edit a copy",
                icon=":material/edit:",
                on_click=edit,
                args=(written,),
                disabled=chosen.name == DESCRIBED,
            )
            st.download_button(
                "Download", written, file_name="topology.toml", mime="application/toml",
                icon=":material/download:", on_click="ignore",
            )  # fmt: skip
            save_settings("network", parameters_here())
            _step_on(chosen.network)
        open_saved()
        st.code(written, language="toml", wrap_lines=True)
        st.caption("Use it with --topology topology.toml on the command line, too.")
    with right:
        if chosen.name in machine_names():
            _sources(load_machine(chosen.name))
        else:
            st.markdown("**Based on**")
            st.markdown("- Your own numbers; nothing is taken from a data sheet.")


def _step_on(network: Network) -> None:
    """A door to a step on the page Simulate; none where that page cannot have the network."""
    faults = write_faults(dict(network.faults))
    try:
        scenario = Scenario(
            case=2,
            gpus=network.ranks,
            topology=network.description,
            dead_links=tuple(listed(faults)),
        )
    except TrioSimError:
        return
    door = door_to(scenario)
    if door is not None:
        page, _, parameters = door
        st.page_link(
            page,
            label="Simulate a step on it",
            icon=":material/play_arrow:",
            query_params=parameters,
        )


def _sources(machine: Machine) -> None:
    """What a machine of the catalogue is based on."""
    st.markdown("**Assumed**\n\n" + "\n".join(f"- {plain(a)}" for a in machine.assumptions))
    st.markdown("**Where the numbers are from**")
    lines = [f"- {plain(part)}: {plain(source)}" for part, source in machine.sources.items()]
    st.markdown("\n".join(lines))
    if machine.stated:
        st.markdown("**What sources state, and tests hold the topology against**")
        stated = (
            f"{figure.quantity}, {counted(figure.gpus, 'GPU')}: "
            f"{digits(figure.bytes_per_s / 1e9, 6)} GB/s; {figure.source}"
            for figure in machine.stated
        )
        st.markdown("\n".join(f"- {plain(line)}" for line in stated))

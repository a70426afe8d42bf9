"""The tab Mesh of the page Train: who is in whose group, and which link a group uses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.train_mesh_map import show_map
from dashboard.train_settings import AXES, SETTINGS
from triosim.errors import counted
from triosim.figures.train_mesh import MAX_RANKS, groups_along, mesh_map
from triosim.network.topology.base import Ints, LinkSpec
from triosim.network.topology.machines import Machine, load_machine, machine_names
from triosim.train import Plan, TrainResult

USES = {
    "dp_replicate": "gradients (all-reduce)",
    "dp_shard": "parameters (all-gather), gradients (reduce-scatter)",
    "cp": "keys and values in attention",
    "tp": "activations inside every layer",
    "pp": "activations and gradients between stages",
    "ep": "tokens to their experts (all-to-all)",
}


def mesh_tab(result: TrainResult) -> None:
    """A table of all axes above the grid, coloured by the groups of one axis."""
    plan = result.plan
    machine = load_machine(plan.machine) if plan.machine in machine_names() else None
    used = [axis for axis in AXES if plan.sizes.get(axis, 1) > 1]
    if not used:
        st.info("One GPU is no mesh: no axis is longer than 1.")
        return
    st.dataframe(axes_table(plan, machine, used), hide_index=True)
    axis = _coloured(used)
    per_host = None if machine is None else machine.gpus_per_host
    data = mesh_map(plan, used, per_host, lambda group: link_of(group, machine))
    show_map({**data, "axis": used.index(axis)})
    groups = len(groups_along(plan, axis))
    size = plan.mesh.size
    more = f" Drawn are the first {MAX_RANKS:,} of {size:,} ranks." if size > MAX_RANKS else ""
    more += " Colours come again after the eighth group." if groups > 8 else ""
    st.caption(
        f"{counted(groups, 'group')} of {plan.sizes[axis]:,} along {axis}: {USES[axis]}.{more} "
        "Point at a rank or walk with the arrow keys: its group stays, the others fade. A click "
        "holds it; then point at an axis below the ranks for that group."
    )


def _coloured(used: list[str]) -> str:
    key = "colour_by"
    first = SETTINGS[key].default if SETTINGS[key].default in used else used[0]
    if st.session_state.get(key, first) not in used:
        st.session_state[key] = first
    return st.radio(
        SETTINGS[key].label,
        used,
        index=used.index(first),
        key=key,
        horizontal=True,
        bind="query-params",
    )


def axes_table(plan: Plan, machine: Machine | None, axes: list[str]) -> pd.DataFrame:
    """A line for each axis: its groups, the link that they use and what it carries."""
    rows = []
    for axis in axes:
        groups = groups_along(plan, axis)
        first = groups[0]
        shown = ", ".join(str(rank) for rank in first[:4]) + (", ..." if len(first) > 4 else "")
        rows.append(
            {
                "axis": axis,
                "size": plan.sizes[axis],
                "groups": len(groups),
                "first group": shown,
                "crosses": link_of(groups, machine),
                "carries": USES[axis],
            }
        )
    return pd.DataFrame(rows)


def link_of(groups: Ints, machine: Machine | None) -> str:
    """The widest link of the groups: inside a host or between hosts, with its speed."""
    if machine is None:
        return "the links of the topology"
    tiers = machine.description.tiers
    hosts = np.sort(groups // machine.gpus_per_host, axis=1)
    most = 1 + int((np.diff(hosts, axis=1) != 0).sum(axis=1).max())
    if most == 1:
        return "inside a host" + (_speed(tiers[0].link) if tiers else "")
    outside = _speed(tiers[1].link) if len(tiers) > 1 else ""
    return f"between hosts ({most:,}){outside}"


def _speed(link: LinkSpec) -> str:
    """What a GPU can send over it."""
    return f", {link.bytes_per_s / 1e9:,.0f} GB/s per GPU"

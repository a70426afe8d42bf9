"""How the GPUs of a result are joined: in words, as a drawing, and over time."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard.plain import micro, plain
from dashboard.timeline import show, style
from triosim import Result, Scenario
from triosim.errors import counted
from triosim.figures import topology_figure, utilisation_figure
from triosim.figures.link_loads import link_loads
from triosim.figures.text import digits, share_text
from triosim.joined import overlap_slowdown
from triosim.network.topology.machines import machine_names

# Of the links of a network; where there are more, a phone shows them when touched.
MAX_PHONE_LABELS = 16
MAX_LINKS = 64
MAX_NAMED = 8
# Comparing the algorithms again takes half a second for so many GPUs.
MAX_EXPLAINED = 2**17


def joined(scenario: Scenario) -> str:
    """On which network the GPUs are, to stand behind their number; nothing for TrioSim's own."""
    if scenario.case == 0 or scenario.gpus == 1:
        return ""
    if scenario.interconnect == "optical":
        return ", optical circuits"
    if scenario.topology_name is not None:
        return f" on {scenario.topology_name}"
    if scenario.case != 4 and scenario.algorithm not in (None, "ring"):
        return f" joined for {scenario.algorithm}"
    return ""


def machine_of(scenario: Scenario) -> str | None:
    """The name of the machine that the GPUs are on."""
    name = scenario.topology if scenario.on_topology else None
    return name if isinstance(name, str) and name in machine_names() else None


def network_caption(result: Result) -> None:
    """What carried the transfers and why, and what is not ideal; nothing in TrioSim's own cases."""
    lines = [*_carriers(result), *_imperfect(result.scenario)]
    if lines:
        st.caption(plain(" ".join(lines)))


def _carriers(result: Result) -> list[str]:
    sends = sum(used.transfers for used in result.algorithms if used.operation == "send")
    lines = [f"{counted(sends, 'transfer')} from stage to stage."] if sends else []
    for used in result.algorithms:
        if used.operation == "send":
            continue
        costs = f" at the measured costs of {used.protocol}" if used.protocol else ""
        lines.append(f"{counted(used.transfers, used.operation)} by {used.algorithm}{costs}.")
    few = result.scenario.gpus <= MAX_EXPLAINED
    why = link_loads(result).why if result.scenario.on_topology and few else ""
    if why:
        lines.append(f"The cheapest for the largest one: {micro(why)}")
    return lines


def _imperfect(scenario: Scenario) -> list[str]:
    lines = []
    if scenario.speeds:
        named = list(scenario.speeds.items())[:MAX_NAMED]
        slow = ", ".join(f"GPU {rank} at {digits(speed)}" for rank, speed in named)
        rest = len(scenario.speeds) - len(named)
        slow += f" and {rest:,} more" if rest else ""
        often = f" in one step of {scenario.slow_every}" if scenario.slow_every > 1 else ""
        lines.append(f"Not at full speed{often}: {slow}.")
    if scenario.jitter:
        lines.append(f"Computing times vary by {digits(100 * scenario.jitter)} %.")
    if scenario.on_topology and scenario.faults:
        bad = (
            f"{k} {f'{left:.0%} left' if left else 'dead'}" for k, left in scenario.faults.items()
        )
        lines.append(f"Bad links: {', '.join(bad)}.")
    slowed = overlap_slowdown(scenario)
    if slowed and scenario.case != 0:
        source = "" if scenario.overlap_slowdown is not None else " (the measured average)"
        longer = f"{digits(1 + slowed)} times as long while its GPU communicates"
        lines.append(f"Computing takes {longer}{source}.")
    return lines


def network_tab(result: Result) -> None:
    """The drawing with the load of every link, and one link over time."""
    figure = topology_figure(result, style=style())
    crowded = (
        not result.scenario.on_topology
        and len(figure.settings.get("annotations", ())) > MAX_PHONE_LABELS
    )
    with st.container(key="crowded_network" if crowded else "network"):
        show(figure, "GPUs and the load of the links between them")
    links = busiest_first(result)
    if not links:
        return
    chosen = st.selectbox(
        "Load over time of"
        if len(links) <= MAX_LINKS
        else f"Load over time of (the {MAX_LINKS} busiest of {len(links):,})",
        links[:MAX_LINKS],
        key="shown_link",
        format_func=lambda link: link_text(result, link),
    )
    show(utilisation_figure(result, chosen, style=style()), "The load of one link over time")


def busiest_first(result: Result) -> Sequence[int]:
    """The links that carry something, those between GPUs first, by how busy they are."""
    links, tasks = result.tasks.program.links, result.tasks
    used = [k for k in range(len(links)) if tasks.carried_bytes[k] > 0]
    return sorted(used, key=lambda k: (links[k].source < 0, -_busy(result, k), k))


def _busy(result: Result, link: int) -> float:
    possible = result.tasks.program.links[link].bytes_per_s * result.tasks.total_s
    return float(result.tasks.carried_bytes[link]) / possible if possible else 0.0


def link_text(result: Result, link: int) -> str:
    """A link by name, and how much of the step's time it would need at full speed."""
    own = result.tasks.program.links[link]
    return f"{own.name}: {share_text(_busy(result, link), 1.0)} busy"

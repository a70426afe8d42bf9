"""The tabs of the page Network that are about the one collective of the sidebar."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.cards import show_cards
from dashboard.export import file_button
from dashboard.frame import presenting
from dashboard.network_answers import frames
from dashboard.network_controls import choice, number
from dashboard.network_player import show_player
from dashboard.network_settings import MAX_PLAYED
from dashboard.network_side import Chosen, sentence
from dashboard.network_study import CURVE, Study, crossovers
from dashboard.plain import micro, plain
from dashboard.timeline import show, style
from triosim.errors import TrioSimError, counted
from triosim.export.table import to_csv
from triosim.figures.network import busy_of, network_figure
from triosim.figures.network_sizes import size_figure
from triosim.figures.text import bytes_text, digits, share_text, time_text
from triosim.network.topology.base import Topology

MAX_BUSIEST = 12
NOTHING = "n/a"


def title_of(chosen: Chosen, found: Study) -> str:
    question = found.question
    who = f"{counted(found.group_size, 'GPU')}"
    if len(found.groups) > 1:
        who = f"{counted(len(found.groups), 'group')} of {who}"
    return (
        f"{question.operation.capitalize()} of {bytes_text(question.size_bytes)}, {who}, "
        f"{plain(chosen.name)}"
    )


def headline(chosen: Chosen, found: Study) -> None:
    """Time, both bandwidths as nccl-tests defines them, and what the time is made of."""
    algbw = found.algbw(found.time_s)
    busbw = None if algbw is None else algbw * found.bus_factor
    steps = counted(found.line.steps, "step")
    st.subheader(title_of(chosen, found), anchor=False)
    show_cards(
        (
            ("Time", time_text(found.time_s * 1e3), _calibrated_text(found)),
            ("algbw", _rate(algbw), "the array over the time"),
            (
                "busbw",
                _rate(busbw),
                f"algbw times {digits(found.bus_factor, 4)}",
            ),
            (
                "Latency",
                share_text(found.line.latency_s, found.time_s),
                f"{time_text(found.line.latency_s * 1e3)} for {steps}; the rest, "
                f"{time_text(found.bytes_s * 1e3)}, for bytes",
            ),
        )
    )
    reason(found)


def reason(found: Study) -> None:
    """Why this algorithm, and what was assumed about the group; not where a class looks at one."""
    if presenting():
        return
    st.caption(plain(f"{micro(found.why)} {' '.join(found.notes)}"))


def _rate(gb_per_s: float | None) -> str:
    return NOTHING if gb_per_s is None else f"{digits(gb_per_s)} GB/s"


def _calibrated_text(found: Study) -> str:
    if found.calibrated is None:
        return "ideal; no measured protocol cost for this"
    name, seconds = found.calibrated
    text = f"ideal; {time_text(seconds * 1e3)} calibrated"
    return text if name == found.algorithm else f"{text} ({name})"


def links_tab(chosen: Chosen, found: Study, topology: Topology) -> None:
    """The drawing with the load of every link, and the busiest links."""
    headline(chosen, found)
    figure = network_figure(
        topology,
        found.shares,
        found.question.size_bytes,
        sides=found.question.network.description.shape,
        style=style(),
    )
    show(figure, "The network; links are as wide as they are fast and as dark as they are busy")
    if not found.shares.any():
        st.info("Nothing moves: a group of one has nobody to talk to.")
        return
    st.markdown("**The busiest links**, each direction for itself")
    table = busiest(found, topology)
    st.dataframe(
        table,
        hide_index=True,
        column_config={
            "busy": st.column_config.ProgressColumn(
                "Busy, of the busiest", min_value=0.0, max_value=1.0, format="percent"
            )
        },
    )
    loaded = int((found.shares > 0).sum())
    st.caption(
        f"{loaded:,} of {len(found.shares):,} links carry something. Widths go by the logarithm "
        "of the bandwidth; point at a link for its numbers."
    )
    file_button("Busiest links (CSV)", "links.csv", lambda: to_csv(table).encode())


def busiest(found: Study, topology: Topology) -> pd.DataFrame:
    """One row for each kind of link, the busiest first: equally fast, equally busy ones are one."""
    busy = busy_of(topology, found.shares)
    alike = np.stack(
        (-busy.round(9), topology.capacity_bytes_per_s, topology.link_latency_s), axis=1
    )
    _, first, members = np.unique(alike, axis=0, return_index=True, return_counts=True)
    loaded = busy[first] > 0
    order, members = first[loaded][:MAX_BUSIEST], members[loaded][:MAX_BUSIEST]
    source, target = topology.ends()
    size = found.question.size_bytes
    return pd.DataFrame(
        {
            "link": [
                f"{topology.node_name(int(source[k]))} to {topology.node_name(int(target[k]))}"
                for k in order
            ],
            "links like it": members,
            "carries": [bytes_text(float(found.shares[k]) * size) for k in order],
            "bandwidth": [
                f"{bytes_text(float(topology.capacity_bytes_per_s[k]))}/s" for k in order
            ],
            "latency": [time_text(float(topology.link_latency_s[k]) * 1e3) for k in order],
            "busy": busy[order],
        }
    )


def sizes_tab(chosen: Chosen, found: Study) -> None:
    """Every algorithm against the size, and the table of all candidates at this size."""
    headline(chosen, found)
    quantity = choice("axis", radio=True, label_visibility="collapsed")
    here = found.question.size_bytes
    sizes = sorted({*CURVE, min(max(here, CURVE[0]), CURVE[-1])})
    best = crossovers(found.lines)
    figure = size_figure(
        {name: [(s, line.time_s(s)) for s in sizes] for name, line in found.lines.items()},
        quantity=quantity,
        bus_factor=found.bus_factor,
        best=best,
        latency_until=latency_until(found),
        here=here,
        calibrated=found.calibrated_curve,
        style=style(),
    )
    alt = f"{quantity} against message size for every algorithm"
    show(figure, alt, legend_below=True)
    st.caption(plain(_regions_text(found, best)))
    table = candidates_table(found)
    st.dataframe(table, hide_index=True)
    st.caption(
        "algbw: the array over the time. busbw: algbw times "
        f"{digits(found.bus_factor, 4)}, so that it can be held against the bandwidth of a link "
        "whatever the collective and the number of GPUs. Both as nccl-tests defines them."
    )
    file_button("Algorithms (CSV)", "algorithms.csv", lambda: to_csv(table).encode())


def latency_until(found: Study) -> float | None:
    """The size in bytes up to which the fastest algorithm spends more on latency than on bytes."""
    best = crossovers(found.lines)
    until = None
    for (start, name), (end, _) in zip(best, [*best[1:], (math.inf, "")], strict=True):
        line = found.lines[name]
        if line.latency_s <= 0 or line.seconds_per_byte <= 0:
            continue
        even = line.latency_s / line.seconds_per_byte
        if even > start:
            until = min(even, end)
        else:
            break
    return until


def _regions_text(found: Study, best: list[tuple[float, str]]) -> str:
    until = latency_until(found)
    regions = (
        "There is no latency here, so the time is all bytes."
        if until is None
        else f"Up to {bytes_text(until)} the fastest algorithm spends most of its time on latency "
        "(the \u03b1 region), above on bytes (\u03b2)."
    )
    turns = [f"from {bytes_text(size)} on {name}" for size, name in best if size > 0]
    first = f"Fastest {'for small messages' if turns else 'at every size'} is {best[0][1]}"
    return f"{regions} {', '.join([first, *turns])}."


def candidates_table(found: Study) -> pd.DataFrame:
    """All algorithms that this group and network allow, the fastest first."""
    size = found.question.size_bytes
    rows = sorted(found.lines.items(), key=lambda item: item[1].time_s(size))
    return pd.DataFrame(
        {
            "algorithm": [name for name, _ in rows],
            "time (ms)": [round(line.time_s(size) * 1e3, 6) for _, line in rows],
            "steps": [line.steps for _, line in rows],
            "latency (ms)": [round(line.latency_s * 1e3, 6) for _, line in rows],
            "bytes (ms)": [round(line.seconds_per_byte * size * 1e3, 6) for _, line in rows],
            "busbw (GB/s)": [
                None if (rate := found.algbw(line.time_s(size))) is None
                else round(rate * found.bus_factor, 3)
                for _, line in rows
            ],
        }
    )  # fmt: skip


def steps_tab(chosen: Chosen, found: Study, topology: Topology) -> None:
    """The player; a larger group is stood for by a small one."""
    group = found.group_size
    most = min(group, MAX_PLAYED)
    left, right = st.columns([0.75, 0.25], vertical_alignment="bottom")
    left.subheader(title_of(chosen, found), anchor=False)
    with left:
        reason(found)
    with right:
        asked = number("players", high=most, placeholder=str(most))
    ranks = asked or most
    hosts, shape = _structure(found, topology, ranks)
    if ranks < group:
        st.caption(f"{ranks} ranks stand for the {group:,} of a group; the pattern is the same.")
    elif group > 1 and found.groups[0, -1] != group - 1:
        st.caption("Ranks are numbered inside the group, in its order.")
    operation = found.question.operation
    if operation == "send":
        ranks = 2
    try:
        data = frames(operation, found.algorithm, ranks, hosts, shape)
    except TrioSimError as error:
        st.error(sentence(error))
        return
    show_player(data, dark=style().dark)
    if found.algorithm == "hierarchical-pipelined":
        st.caption("Listed one level after the other; pipelined, chunks do them at the same time.")


def _structure(
    found: Study, topology: Topology, ranks: int
) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """The hosts for the hierarchical algorithms and the grid for the torus, of so many ranks."""
    if found.algorithm.startswith("hierarchical"):
        units = topology.units(found.groups[0])
        if not units:
            return None, None
        sizes = np.bincount(np.unique(units[0], return_inverse=True)[1])
        if ranks == found.group_size:
            return tuple(sizes.tolist()), None
        per_host = min(int(sizes[0]), max(1, ranks // 2))
        full, rest = divmod(ranks, per_host)
        return (per_host,) * full + ((rest,) if rest else ()), None
    if found.algorithm == "torus":
        shape = topology.shape()
        if shape is not None and math.prod(shape) == ranks:
            return None, tuple(shape)
        side = max(d for d in range(1, math.isqrt(ranks) + 1) if ranks % d == 0)
        return None, (side, ranks // side)
    return None, None

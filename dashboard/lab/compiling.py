"""The lab on compilation: fusion pair by pair, launches, a graph break, and the 8-against-128."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.cards import show_cards
from dashboard.computed import once
from dashboard.lab.desk import BOUND, CHOICE_PX, Desk
from dashboard.lab.lab import Cause, Lab, choice, switch
from dashboard.plain import plain
from dashboard.settings import Setting
from dashboard.validation_compile import compared, published_pairs
from triosim.compile import Candidate
from triosim.errors import TrioSimError, counted
from triosim.figures import lab_compile as figures
from triosim.figures.text import bytes_text, share_text, time_text
from triosim.lab import Parameter, question
from triosim.lab.compiling import LAUNCH
from triosim.lab.fusion_steps import CHAIN, GRAPHS, Greedy, greedy
from triosim.lab.guards import CHANGES, Captured, captured
from triosim.lab.launch_steps import (
    BREAKS,
    MODELS,
    NO_BREAK,
    Broken,
    Lane,
    Setup,
    breaks_compared,
    equal_lanes,
    layer_lanes,
)
from triosim.validation.compile_question import MECHANISMS

TOKENS = Parameter(
    name="tokens", label="Tokens of a layer's input", low=64, high=1024,
    marks=(64, 128, 256, 512, 1024),
)  # fmt: skip
GREEDY, LAUNCHES, GUARDS, BREAK, WHY = VIEWS = (
    "Greedy loop", "Launches", "Graphs and guards", "Graph break", "8 against 128",
)  # fmt: skip
LAYER, EQUAL = "one layer", "equal kernels, as in K2"
MOST_STEPS = 200
GUARDS_PX = 420
SWITCHES = {name.replace("-", "_"): name for name in MECHANISMS}


def draw(desk: Desk) -> None:
    """One of four pictures."""
    view = desk.tabs("view")
    try:
        _PICTURES[view](desk)
    except TrioSimError as error:
        desk.complain("No picture", error)


def _greedy(desk: Desk) -> None:
    """The loop, pair by pair, on a graph."""
    with desk.row():
        name = desk.choice("graph")
        elements = int(desk.values.get("rows", 1024) * desk.values.get("columns", 1024))
        found: Greedy = greedy(name, elements) if name == CHAIN else greedy(name)
        number = _step(desk, len(found.history))
    step = found.step(number)
    kernels = len(step.groups)
    show_cards(
        (
            ("Kernels", f"{kernels}", f"{found.kernels_before} before, {found.kernels_after} "
             "after the loop"),
            ("Memory traffic saved", bytes_text(found.bytes_before - found.bytes_after),
             f"{share_text(found.bytes_before - found.bytes_after, found.bytes_before)} of "
             f"{bytes_text(found.bytes_before)}, by the whole loop"),
        )
    )  # fmt: skip
    st.markdown(plain(sentence(found, number)))
    desk.show(
        figures.fusion_graph(found, step, style=desk.style),
        "The graph of operators, the kernels made so far, and the pair that is looked at",
    )
    st.dataframe(history_table(found, number), hide_index=True, column_config=_formats())
    st.caption(
        "1: find all pairs that use a common tensor. 2: rank the legal ones by category, then by "
        "bytes saved, then by nearness. 3: take them in this order, if they are legal still. "
        "Again, until nothing changes. Library calls are never paired."
    )


def _step(desk: Desk, last: int) -> int:
    """How many pairs have been looked at."""
    setting = desk.lab.setting(desk.asked, "pair")
    if st.session_state.get(setting.name, setting.default) > last:
        st.session_state[setting.name] = last
    moved: int = st.number_input(
        f"{setting.label} (of {last})", 0, last, min(int(setting.default), last),
        key=setting.name, help="Plus and minus go on and back.", width=CHOICE_PX, **BOUND,
    )  # fmt: skip
    return moved


def sentence(found: Greedy, number: int) -> str:
    """What happened to the pair that was last looked at."""
    if not number:
        pairs = sum(1 for candidate in found.history if candidate.round == 1)
        return f"Before the first round: {counted(pairs, 'pair')} to look at."
    one = found.history[number - 1]
    rank = "not ranked" if one.rank is None else f"rank {one.rank}"
    fate = "Taken: they run as one kernel." if one.taken else f"Refused: {one.refusal}."
    return (
        f"Pair {number}, round {one.round}, {rank}: {joined(one.first)} and {joined(one.second)}; "
        f"{one.category}, {bytes_text(one.shared_bytes)} shared, distance {one.distance}. {fate}"
    )


def joined(names: tuple[str, ...]) -> str:
    """Names of a group of nodes."""
    return " + ".join(names)


def history_table(found: Greedy, number: int) -> pd.DataFrame:
    """Every pair of the rounds reached; what has not been looked at yet has no outcome.

    The pair at hand and what comes next on top, what was before below, the latest first.
    """
    reached = found.history[number - 1].round if number else 1
    own = [(i + 1, c) for i, c in enumerate(found.history) if c.round <= reached]
    ahead = [pair for pair in own if pair[0] >= number]
    behind = [pair for pair in reversed(own) if pair[0] < number]
    return pd.DataFrame([_line(place, candidate, number) for place, candidate in ahead + behind])


def _line(place: int, one: Candidate, number: int) -> dict[str, object]:
    seen = place <= number
    return {
        "": "\u25b6" if place == number else "",
        "pair": place,
        "first": joined(one.first),
        "second": joined(one.second),
        "category": one.category,
        "shared": bytes_text(one.shared_bytes),
        "distance": one.distance,
        "round": one.round,
        "rank": "" if one.rank is None else str(one.rank),
        "outcome": ("taken" if one.taken else f"refused: {one.refusal}") if seen else "",
    }


def _formats() -> dict[str, Any]:
    """Narrow numbers, so that the outcome is in sight."""
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    return {
        "": text(width=30),
        **{name: number(width=60) for name in ("pair", "distance", "round")},
        "rank": text(width=50),
        **{name: text(width=80) for name in ("shared", "category")},
        "outcome": text(width=250),
    }


def _setup(desk: Desk) -> Setup:
    """Whose layer, and where its graph breaks."""
    return Setup(
        model=desk.choice("model"),
        tokens=desk.count("tokens"),
        launch_us=desk.values["launch_us"],
        broken=desk.choice("broken", help="As if the code there printed a value of a tensor."),
    )


def _launches(desk: Desk) -> None:
    """The same work launched three ways."""
    lanes: list[Lane]
    with desk.row():
        equal = desk.choice("work") == EQUAL
        setup = None if equal else _setup(desk)
    if setup is None:
        values = {**question("K2").given, **desk.values}
        lanes = equal_lanes(int(values["kernels"]), values["launch_us"], values["gpu_ms"])
    else:
        lanes = once("Compiling", layer_lanes, setup)
    show_cards(tuple(_lane_card(lane) for lane in lanes))
    desk.show(
        figures.launch_lanes(lanes, style=desk.style),
        "Launches on the CPU and kernels on the GPU, for each way to run the same work",
    )
    what = (
        "Kernels and work are sliders under K2."
        if equal and desk.asked.id != "K2"
        else "The work of K2, without guards."
        if equal
        else "Forward of one layer. A guard checks before each graph that it still fits."
    )
    st.caption(
        f"{what} A CUDA graph is launched once for all its kernels; for that, shapes and addresses "
        "must stay the same, and its memory stays taken."
    )


def _lane_card(lane: Lane) -> tuple[str, str, str]:
    time = lane.timeline
    waits = share_text(time.waiting_s, time.step_s)
    kernels = counted(lane.kernels, "kernel")
    return (
        lane.name.capitalize(),
        time_text(time.step_s * 1e3),
        f"{kernels}; the GPU waits {waits}",
    )


def _guards(desk: Desk) -> None:
    """The graphs of a layer, what each assumes, and what a change of the next call breaks."""
    with desk.row():
        setup = _setup(desk)
        change = desk.choice("change")
    graphs: list[Captured] = once("Compiling", captured, setup)
    again = sum(graph.broken(change) > 0 for graph in graphs)
    show_cards(
        (
            ("Graphs of a forward", f"{len(graphs)}", "between them Python runs"),
            ("Operators captured", f"{sum(graph.operators for graph in graphs)}",
             f"{counted(sum(graph.kernels for graph in graphs), 'kernel')} when fused"),
            ("Guards", f"{sum(len(graph.guards) for graph in graphs)}", "checked in every call"),
            ("Compiled again", f"{again} of {len(graphs)}", f"if the next call has {change}"
             if again else "all guards hold"),
        )
    )  # fmt: skip
    st.dataframe(guards_table(graphs, change), hide_index=True, height=GUARDS_PX)
    st.caption(plain(f"{CHANGES[change]} Guards on code and on containers are left out."))


def guards_table(graphs: Sequence[Captured], change: str) -> pd.DataFrame:
    """A line for each guard; those that the change breaks first."""
    lines = [(number, one) for number, graph in enumerate(graphs, 1) for one in graph.guards]
    lines.sort(key=lambda line: change not in line[1].breaks)
    return pd.DataFrame(
        {
            "graph": [number for number, _ in lines],
            "the next call": ["fails" if change in one.breaks else "holds" for _, one in lines],
            "guard": [one.kind for _, one in lines],
            "of": [one.of for _, one in lines],
            "must be": [one.holds for _, one in lines],
        }
    )


def _breaks(desk: Desk) -> None:
    """What a break does to graphs, kernels, memory traffic and the step."""
    with desk.row():
        setup = _setup(desk)
    # The comparison is the same whichever break is chosen.
    found: list[Broken] = once(
        "Compiling every break", breaks_compared, replace(setup, broken=NO_BREAK)
    )
    whole = found[0]
    chosen = next(one for one in found if one.name == setup.broken)
    cost_ms = chosen.step_ms - whole.step_ms
    replayed_ms = chosen.replayed_ms - whole.replayed_ms
    show_cards(
        (
            ("Graphs of a layer", f"{chosen.graphs}", f"{whole.graphs} without a break"),
            ("Kernels of a layer", f"{chosen.kernels}", f"{whole.kernels} without a break"),
            ("Cost in a step", _signed(cost_ms), f"{share_text(abs(cost_ms), whole.step_ms)} of "
             f"{time_text(whole.step_ms)}"),
            ("With CUDA graphs", _signed(replayed_ms), f"of {time_text(whole.replayed_ms)}"),
        )
    )  # fmt: skip
    left, right = st.columns([0.56, 0.44])
    with left:
        desk.show(
            figures.break_costs(found, setup.broken, style=desk.style),
            "A training step with each graph break, launched and replayed",
        )
    with right:
        st.dataframe(
            pd.DataFrame(
                {
                    "break": [one.name for one in found],
                    "graphs": [one.graphs for one in found],
                    "kernels": [one.kernels for one in found],
                    "moved (MB)": [f"{one.moved_mb:.1f}" for one in found],
                    "GPU waits (ms)": [f"{one.waits_ms:.2f}" for one in found],
                }
            ),
            hide_index=True,
        )
    st.caption(
        "A break in every layer. It costs guards and Python between the graphs, and kernels are "
        "not fused across it; that counts where the CPU is the slower one. Graphs, kernels and "
        "bytes: forward and backward of one layer."
    )


def _signed(ms: float) -> str:
    sign = "\u2212" if ms < 0 else "+"
    return f"{sign}{time_text(abs(ms))}" if ms else "0 ms"


def _why(desk: Desk) -> None:
    """Four mechanisms as switches, against both published pairs."""
    st.markdown(
        "Llama 3 8B with FSDP2, eager and compiled, on 8 and on 128 GPUs. Which mechanism would "
        "make the gain grow?"
    )
    on = set()
    with desk.row():
        for key, name in SWITCHES.items():
            if desk.switch(key, help=MECHANISMS[name]):
                on.add(name)
    compared(published_pairs(), frozenset(on), style=desk.style)


_PICTURES: dict[str, Callable[[Desk], None]] = {
    GREEDY: _greedy, LAUNCHES: _launches, GUARDS: _guards, BREAK: _breaks, WHY: _why,
}  # fmt: skip


def _title(name: str) -> str:
    words = name.replace("-", " ").replace("cpu", "CPU").replace("slow down", "slow-down")
    return words[:1].upper() + words[1:]


LAB = Lab(
    code="compile",
    page="pages/lab_compile.py",
    title="Compile and CUDA graphs",
    idea="torch.compile captures the operators of a model as graphs and fuses them: what one "
    "operator writes and the next reads stays in registers. It finds all pairs, ranks them, and "
    "takes those that are legal. CUDA graphs launch many kernels at once, which helps where the "
    "GPU waits for the CPU.",
    formula=r"t=\max\left(n\,t_{\text{launch}},\;\sum_i\frac{\text{bytes}_i}"
    r"{\text{bandwidth}}\right)",
    source="Ansel et al., PyTorch 2, ASPLOS 2024; Inductor of torch 2.13.",
    questions=("K1", "K2", "K3"),
    quick=("K1", "K2"),
    more=(LAUNCH, TOKENS),
    more_title="Fusion, launches and breaks, by the engine",
    defaults={
        "": {"launch_us": 5.0, "tokens": 128},
        "K2": {"view": LAUNCHES, "work": EQUAL},
        "K3": {"view": WHY},
    },
    settings={
        "view": choice("Picture", VIEWS),
        "graph": choice("Graph", GRAPHS),
        "pair": Setting(
            name="", label="Pair that is looked at", default=1, kind="whole", low=0,
            high=MOST_STEPS,
        ),
        "work": choice("Work", (LAYER, EQUAL)),
        "model": choice("Model", tuple(MODELS)),
        "broken": choice("The graph breaks", tuple(BREAKS), NO_BREAK),
        "change": choice("The next call changes", tuple(CHANGES)),
        **{key: switch(_title(name)) for key, name in SWITCHES.items()},
    },
    explain=(
        Cause(
            "First and last kernel",
            "the GPU waits for the first launch, and works on the last kernel after the last "
            "launch; the formula takes the longer of both sums.",
        ),
        Cause(
            "Guards",
            "before each captured graph the CPU checks that it still fits; after a break it does "
            "so again. The formula has none.",
        ),
        Cause(
            "A break can move less memory",
            "Inductor chooses for each graph what backward keeps and what it computes again; with "
            "a break it chooses otherwise.",
        ),
        Cause(
            "Few tokens",
            "then kernels are short and the CPU is the slower one: launches count, and CUDA graphs "
            "gain.",
            lambda values: values["tokens"] <= 256,
        ),
    ),
    not_modelled=(
        "Compiling itself, seconds to minutes at the first step, and recompiling when a guard "
        "fails.",
        "Dynamic shapes: they need other guards, and CUDA graphs of their own.",
        "Trying fused kernels on the GPU and keeping the faster ones.",
        "The memory that a CUDA graph keeps for itself.",
    ),
    draw=draw,
)  # fmt: skip

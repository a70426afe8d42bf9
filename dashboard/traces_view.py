"""A trace on the page: what it is called, headline numbers, warnings."""

from __future__ import annotations

from collections import Counter

import streamlit as st

from dashboard.address import door_address
from dashboard.cards import show_cards
from dashboard.links import parameters_of
from dashboard.plain import plain, short
from dashboard.settings import SETTINGS
from dashboard.traces_store import label_of, uploads
from triosim import Trace
from triosim.errors import counted
from triosim.figures.text import MIDDLE_DOT, digits, memory_text, share_text, time_text
from triosim.trace.parameters import find_parameters
from triosim.trace.scale import known_gpu

PHASES_SHORT = {"forward": "fwd", "backward": "bwd", "optimizer": "opt"}


def title_of(chosen: str, trace: Trace) -> str:
    """The trace in a few words."""
    return f"{plain(label_of(chosen))}: one step on one GPU"


def simulate_link(chosen: str) -> None:
    """Carries the trace to the page Simulate."""
    values = {name: setting.default for name, setting in SETTINGS.items()}
    parameters = parameters_of({**values, "trace": chosen})
    waiting = st.session_state.get("waiting", {})
    if waiting.get("trace") == chosen:  # a link has asked for this upload: its other settings
        parameters = {**waiting, **parameters}
    parameters = door_address(parameters, SETTINGS)
    with st.container(key="button_link", width="content"):
        st.page_link(
            "pages/simulate.py",
            label=":primary[**Simulate this**]",
            icon=":material/play_arrow:",
            query_params=parameters,
        )


def headline(trace: Trace) -> None:
    """Four numbers, each with a line that says what it means."""
    parameters = find_parameters(trace)
    counts = Counter(op.phase for op in trace.operators)
    values = sum(tensor.numel for tensor in parameters.tensors)
    rate = f", {digits(trace.batch_size / trace.total_s)} a second" if trace.total_s else ""
    cards = (
        ("Step time", time_text(trace.total_s * 1e3), counted(trace.batch_size, "sample") + rate),
        (
            "Operators",
            f"{len(trace.operators):,}",
            f" {MIDDLE_DOT} ".join(f"{counts[p]:,} {name}" for p, name in PHASES_SHORT.items()),
        ),
        (
            "Parameters",
            memory_text(parameters.bytes) if values else "n/a",
            f"{values:,} in {counted(len(parameters.tensors), 'tensor')}"
            if values
            else "none that the trace shows",
        ),
        ("GPU", *_gpu(trace)),
    )
    show_cards(cards)


def _gpu(trace: Trace) -> tuple[str, str]:
    """The catalogue's name of the GPU, or what the trace calls it."""
    known, said = known_gpu(trace), str(trace.meta.get("gpu") or "")
    if known or not said:
        return known or "not said", _provenance(trace)
    return "other", f"{plain(short(said, 28))}; {_provenance(trace)}"


def _provenance(trace: Trace) -> str:
    """Where the times are from, by share of the step."""
    times: Counter[str] = Counter()
    for op in trace.operators:
        times[op.provenance] += op.time_s
    total_s = trace.total_s
    if len(times) == 1 or not total_s:
        return f"all times are {_SAID[trace.operators[0].provenance]}"
    return ", ".join(f"{share_text(s, total_s)} {_SAID[name]}" for name, s in times.most_common())


_SAID = {"measured": "measured", "scaled": "scaled from another GPU", "roofline": "a roofline's"}


def notices(chosen: str, trace: Trace) -> None:
    """Every warning of the trace and of its conversion."""
    upload = uploads().get(chosen)
    report = upload.reading.report if upload else None
    for warning in dict.fromkeys([*trace.warnings, *(report.warnings if report else ())]):
        st.warning(plain(warning[:1].upper() + warning[1:]), icon=":material/warning:")

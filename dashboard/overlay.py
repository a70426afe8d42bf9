"""A measured run laid over the step at hand: profiler files of several ranks, lane by lane."""

from __future__ import annotations

from hashlib import sha256

import streamlit as st

from dashboard.computed import in_worker
from dashboard.folded import key_of
from dashboard.plain import plain, short
from dashboard.timeline import show, style
from dashboard.traces_read import MAX_UNPACKED
from tracer.convert.lanes import read_measured
from triosim import Result, overlay
from triosim.errors import TraceFormatError, TrioSimError
from triosim.figures import overlay_figure
from triosim.figures.overlay import MAX_RANKS
from triosim.figures.text import time_text
from triosim.overlay import Measured, Overlay

TITLE = "Lay a measured run over this step"
FILES = "overlay_files"
READ = "overlay_read"  # what this session's files were, under their digest


def overlay_part(result: Result) -> None:
    """A field for files, once it is opened; below it both runs and how far apart they are."""
    group = st.expander(TITLE, key=key_of(TITLE), on_change="rerun", icon=":material/layers:")
    if not group.open and not st.session_state.get(FILES):
        return
    with group:
        files = st.file_uploader(
            "PyTorch profiler files, one for each GPU",
            type=["json", "gz"],
            accept_multiple_files=True,
            key=FILES,
            help="Files of torch.profiler with the number of the rank in them, as DDP and FSDP "
            f"runs write them; at most {MAX_RANKS}. They stay in this session.",
        )
        if not files:
            return
        try:
            found = overlay(result, _measured([(f.name, f.getvalue()) for f in files]))
        except TrioSimError as error:
            st.error(plain(str(error)))
            return
        _show(found)


def _measured(files: list[tuple[str, bytes]]) -> Measured:
    """The files' last common step, read once as long as they stay the same."""
    if len(files) > MAX_RANKS:
        raise TraceFormatError(f"{len(files)} files; at most {MAX_RANKS} are shown.")
    digest = sha256(b"".join(sha256(data).digest() for _, data in files)).hexdigest()
    known = st.session_state.get(READ)
    if known is None or known[0] != digest:
        known = digest, in_worker("Reading", read_ranks, files)
        st.session_state[READ] = known
    return known[1]


def read_ranks(files: list[tuple[str, bytes]]) -> Measured:
    """In a worker: what `read_measured` finds."""
    return read_measured(
        [data for _, data in files],
        names=[short(name) for name, _ in files],
        max_bytes=MAX_UNPACKED,
    )


def _show(found: Overlay) -> None:
    st.caption(
        f"Step {found.measured.step}: measured {time_text(found.measured_ms)}, predicted "
        f"{time_text(found.predicted_ms)} ({found.error:+.1%}). {plain(found.measured.clock)}"
    )
    show(overlay_figure(found, style=style()), "Measured and predicted lanes of each GPU")
    table = found.frame.assign(error=found.frame["error"] * 100)
    number = st.column_config.NumberColumn
    st.dataframe(
        table,
        hide_index=True,
        column_config={
            "rank": number("GPU", format="%d"),
            "lane": "Lane",
            "measured_ms": number("Measured (ms)", format="%.3f"),
            "predicted_ms": number("Predicted (ms)", format="%.3f"),
            "error": number("Error", format="%+.1f %%"),
        },
    )

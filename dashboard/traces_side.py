"""The sidebar of the page Traces: which trace, one's own files, and how to record them."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard import traces_read
from dashboard.computed import in_worker
from dashboard.links import shipped_traces
from dashboard.plain import plain
from dashboard.traces_links import SHOWN, default_trace
from dashboard.traces_read import Files, read_upload
from dashboard.traces_store import Upload, digest_of, keep, name_of, uploads
from triosim.errors import TrioSimError
from triosim.figures.text import digits

TYPES = ("json", "gz", "csv")
SNIPPET = """\
import torch
import tracer

model = torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.ReLU())
optimizer = torch.optim.Adam(model.parameters())
samples = torch.randn(32, 64)  # on a GPU: model and samples .cuda()

def step():  # one whole step of your own training loop
    optimizer.zero_grad()
    model(samples).square().mean().backward()
    optimizer.step()

tracer.record(step, batch_size=32, name="mine", output="data")"""


def choose() -> str:
    """Draw the sidebar; the name of the chosen trace."""
    place = st.container()
    uploaded = _uploaded()
    upload = _read(uploaded) if uploaded else None
    with place:
        chosen = _select()
    if upload is not None and chosen == upload.name:
        _steps(upload)
    return chosen


def _select() -> str:
    mine = uploads()
    options = [*shipped_traces(), *mine]
    first = default_trace()
    chosen = st.selectbox(
        "Trace",
        options,
        index=options.index(first) if first in options else 0,
        key=SHOWN,
        bind="query-params",
    )
    if chosen in mine:
        st.caption(f"Yours: {plain(mine[chosen].label)}")
    return chosen


def _uploaded() -> Files:
    files = st.file_uploader(
        "Your own trace",
        type=list(TYPES),
        accept_multiple_files=True,
        key="trace_files",
        help="A profiler file, with its execution trace if there is one (.json, .gz), or trace.csv "
        "and tensor.csv; meta.json may come along. Choose all files of one trace together.",
    )
    return [(file.name, file.getvalue()) for file in files or []]


def _read(uploaded: Files) -> Upload | None:
    """The upload of these files, read if they are new; or a sentence that says what is wrong."""
    key = digest_of(uploaded, None)
    step = st.session_state.get("trace_step") if st.session_state.get("files_read") == key else None
    digest = digest_of(uploaded, step)
    known = uploads().get(name_of(digest))
    if known is None:
        try:
            known = _new(uploaded, digest, step)
        except TrioSimError as error:
            st.error(plain(str(error)))
            return None
        keep(known)
    if st.session_state.get("files_shown") != digest:
        st.session_state[SHOWN] = known.name
    st.session_state.update(files_read=key, files_shown=digest)
    _say(known)
    return known


def _new(uploaded: Files, digest: str, step: int | None) -> Upload:
    reading = in_worker(
        "Reading", read_upload, uploaded, name_of(digest), step, traces_read.MAX_UNPACKED
    )
    return Upload(digest=digest, label=reading.label, reading=reading)


def _say(upload: Upload) -> None:
    """One sentence for each file, and what is missing."""
    reading = upload.reading
    for label, kind in reading.kinds:
        st.caption(f":material/check: {plain(label)}: {kind}.")
    report = reading.report
    if report is not None:
        share = f"{digits(report.attributed * 100, 4)} % of {digits(report.kernel_s * 1e3)} ms"
        what = "kernel time" if report.device != "cpu" else "operator time"
        st.caption(
            f":material/swap_horiz: {report.written:,} of {report.found:,} operators written, "
            f"{share} of {what} attributed."
        )
    if reading.missing:
        st.caption(f":material/info: {reading.missing}")


def _steps(upload: Upload) -> None:
    """A choice where the recording holds several steps."""
    report = upload.reading.report
    if report is None or len(report.steps) < 2:
        return
    steps: Sequence[int] = report.steps
    if st.session_state.get("trace_step") not in steps:
        st.session_state["trace_step"] = report.step
    st.selectbox(f"Step (one of {len(steps)} in the file)", steps, key="trace_step")


def snippet() -> None:
    """How to record a step of one's own."""
    st.markdown(
        "Run this where your model trains, in the folder of this project (or with it on "
        "`PYTHONPATH`)."
    )
    st.code(SNIPPET, language="python")
    st.caption(
        "Then upload `profiler_mine-iter43.json`, `graph_mine-iter43.json` and `meta.json` from "
        "the folder `data`, together."
    )

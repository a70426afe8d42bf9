"""What a result can be taken along as: files, a command, and the trace where it is one's own."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import streamlit as st

from dashboard.links import shipped_traces
from dashboard.traces_store import Upload, uploads
from triosim import Result, Scenario
from triosim.chakra.write import chakra_files
from triosim.commands.flags import command_line
from triosim.export.chrome import chrome_trace
from triosim.export.hta import hta_traces
from triosim.export.table import timeline_csv

MAX_NAME = 60
# A few seconds of writing; more belongs on the command line. A task of a training step is opened to
# its kernels, here about so many.
MAX_WRITTEN = 60_000
KERNELS = 16
TOO_LARGE = (
    "This step is too large for its files for Holistic Trace Analysis and Chakra to be written "
    "here: --hta FOLDER and --chakra FOLDER behind the command write them."
)
Files = Callable[[Result], Iterator[tuple[str, bytes | str]]]


def export(result: Result) -> None:
    """Files, and the command that gives the same result."""
    upload = uploads().get(Path(result.scenario.trace_dir).name)
    portable = replace(result, scenario=portable_scenario(result.scenario))
    name = f"{Path(portable.scenario.trace_dir).name}-case{result.scenario.case}"
    with st.container(horizontal=True, gap="small"):
        file_button(
            "Perfetto trace", f"{name}.perfetto.json", lambda: chrome_trace(portable).encode()
        )
        file_button("Timeline (CSV)", f"{name}.csv", lambda: timeline_csv(portable).encode())
        file_button("Scenario (JSON)", f"{name}.json", lambda: portable.scenario.to_json().encode())
        fits = folders(portable, name)
        if upload is not None:
            file_button("Trace (ZIP)", f"{folder_name(upload)}.zip", lambda: zipped(upload))
    if upload is None:
        st.caption("The same result on the command line, from the project's folder:")
    else:
        st.caption(
            "This trace is in none of these but the ZIP. Unpack that in the project's folder; then "
            "this command, and the scenario file, give the same result:"
        )
    st.code(command_line(portable.scenario), language=None, wrap_lines=True)
    if not fits:
        st.caption(TOO_LARGE)
    if upload is None:
        st.caption("The address of this page is a link to exactly this scenario.")
    else:
        st.caption(
            "The address of this page has the settings and not the trace: it opens this scenario "
            "only in a session that has uploaded the same files."
        )


def folders(result: Result, name: str) -> bool:
    """Buttons for what other tools read as a folder; False where writing it takes too long."""
    tasks = sum(len(k.members) * len(result.tasks.tasks(c)) for c, k in enumerate(result.classes))
    if tasks * (KERNELS if result.tasks.program.parts else 1) > MAX_WRITTEN:
        return False
    for tool, files in (("HTA", hta_traces), ("Chakra", chakra_files)):
        folder = f"{name}-{tool.lower()}"
        write = partial(folder_file, files, result, folder)
        file_button(f"{tool} (ZIP)", f"{folder}.zip", write)
    return True


def folder_file(files: Files, result: Result, folder: str) -> bytes:
    """A folder of files as one."""
    return packed((f"{folder}/{name}", data) for name, data in files(result))


def packed(files: Iterable[tuple[str, bytes | str]]) -> bytes:
    """Files by their path, as a ZIP."""
    written = io.BytesIO()
    with ZipFile(written, "w", ZIP_DEFLATED) as archive:
        for path, data in files:
            archive.writestr(path, data)
    return written.getvalue()


def file_button(label: str, name: str, write: Callable[[], bytes]) -> None:
    """Saves what is written when it is pressed."""
    st.download_button(label, write, name, on_click="ignore", icon=":material/download:")


def as_json(values: Mapping[str, Any]) -> bytes:
    """A file of plain values."""
    return (json.dumps(values, indent=2, default=str, allow_nan=False) + "\n").encode()


def portable_scenario(scenario: Scenario) -> Scenario:
    """The scenario as it reads in the project's folder of another machine."""
    name = Path(scenario.trace_dir).name
    upload = uploads().get(name)
    if upload is not None:
        return replace(scenario, trace_dir=folder_name(upload))
    inside = name in shipped_traces()
    return replace(scenario, trace_dir=f"sample_trace/{name}" if inside else name)


def folder_name(upload: Upload) -> str:
    """An upload's label as the name of a folder, on any machine."""
    kept = re.sub(r"[^A-Za-z0-9._-]+", "-", upload.label)[:MAX_NAME].strip("-.")
    return kept or upload.name


def zipped(upload: Upload) -> bytes:
    """The files of a trace in a folder of its name."""
    folder = folder_name(upload)
    return packed((f"{folder}/{name}", data) for name, data in upload.reading.files.items())

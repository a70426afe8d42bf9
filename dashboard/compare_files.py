"""Files for the page Compare: saved scenarios that are added, and uploads that a link asks for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard import train_configs
from dashboard.computed import in_worker
from dashboard.export import folder_name
from dashboard.packed import Missing, scenario_from_file
from dashboard.plain import plain
from dashboard.traces_read import MAX_UNPACKED, Files, read_upload
from dashboard.traces_side import TYPES
from dashboard.traces_store import PREFIX, Upload, digest_of, keep, name_of, uploads
from triosim.compare import MOST
from triosim.errors import ConfigError, TrioSimError
from triosim.resolved import AnyScenario, is_traced

MAX_BYTES = 4 * 2**20
WHAT = {"trace_dir": "a trace", "config": "a config.json"}
NO_TRACE = "this session has no such trace; upload it on the page Traces, then this file again"


def scenarios_in(data: bytes) -> list[AnyScenario]:
    """The scenarios of a saved scenario, result or comparison.

    Raises `ConfigError` on field "file", or on the setting that is wrong.
    """
    try:
        values = json.loads(data[: MAX_BYTES + 1].decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise ConfigError("file", "(no JSON)", "must be a scenario saved as JSON") from None
    if not isinstance(values, Mapping):
        raise ConfigError("file", type(values).__name__, "must hold one scenario or result")
    if isinstance(values.get("steps"), list):
        found = [_scenario(step) for step in values["steps"]]
        if not 1 <= len(found) <= MOST:
            raise ConfigError("file", f"{len(found)} steps", f"must hold 1 to {MOST}")
        return found
    return [_scenario(values)]


def _scenario(values: Any) -> AnyScenario:
    """One scenario, or the one inside of a result; its trace is found by name."""
    inner = values.get("scenario", values) if isinstance(values, Mapping) else None
    if not isinstance(inner, Mapping) or not inner:
        raise ConfigError("file", "(empty)", "must hold a scenario")
    given = dict(inner)
    trace = given.get("trace_dir")
    mine = {folder_name(upload): name for name, upload in uploads().items()}
    if isinstance(trace, str):
        given["trace_dir"] = mine.get(trace, trace)
    config = given.get("config")
    if config is not None:
        given["config"] = _config(str(config))
    try:
        return scenario_from_file(given, "trace" if is_traced(given) else "train")
    except ConfigError as error:
        if error.field == "trace_dir":
            raise ConfigError("trace_dir", trace, NO_TRACE) from None
        raise


def _config(name: str) -> str:
    """A saved scenario says config.json; which of this session's that is, one file alone tells."""
    mine = list(train_configs.configs())
    if name in mine or len(mine) != 1:
        return name
    return mine[0]


def ask_for(missing: Sequence[Missing]) -> None:
    """An uploader for each file that the link needs; the page goes on when all are there."""
    for one in missing:
        digest = one.name.removeprefix(PREFIX)
        with st.container(border=True):
            st.markdown(
                f"This link compares a step of **{WHAT[one.field]}** that was uploaded elsewhere. "
                f"Upload the file with the digest `{digest}` to go on."
            )
            files = st.file_uploader(
                f"The file with the digest {digest}",
                type=["json"] if one.field == "config" else list(TYPES),
                accept_multiple_files=one.field == "trace_dir",
                key=f"asked_{one.name}",
                label_visibility="collapsed",
            )
            if files:
                _take(one, files if isinstance(files, list) else [files])


def _take(one: Missing, files: Sequence[Any]) -> None:
    """Keep exactly the files that were asked for; say so where it is others."""
    given = [(file.name, file.getvalue()) for file in files]
    try:
        found = _keep_config(given) if one.field == "config" else _keep_trace(given, one.name)
    except TrioSimError as error:
        st.error(plain(str(error)))
        return
    if found == one.name:
        st.rerun()
    st.error(
        f"This has the digest {found.removeprefix(PREFIX)}: it is another file, or not all of the "
        "files that were uploaded together."
    )


def _keep_config(given: Files) -> str:
    return train_configs.keep(given[0][1])


def _keep_trace(given: Files, name: str) -> str:
    """Read a trace; of a recording of several steps, the one that was asked for."""
    digest = digest_of(given, None)
    reading = in_worker("Reading", read_upload, given, name_of(digest), None, MAX_UNPACKED)
    steps = [None, *(reading.report.steps if reading.report is not None else ())]
    step = next((s for s in steps if name_of(digest_of(given, s)) == name), None)
    if step is not None:
        reading = in_worker("Reading", read_upload, given, name, step, MAX_UNPACKED)
        digest = digest_of(given, step)
    upload = Upload(digest=digest, label=reading.label, reading=reading)
    keep(upload)
    return upload.name

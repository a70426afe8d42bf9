"""What a training step can be taken along as: files, a command, a link."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import streamlit as st

from dashboard import train_configs
from dashboard.export import TOO_LARGE, as_json, file_button, folder_name, folders, zipped
from dashboard.links import shipped_traces
from dashboard.traces_store import is_upload, uploads
from triosim.export.chrome import chrome_trace
from triosim.network.topology.description import Description
from triosim.train import TrainResult, TrainScenario

GRID_FILE = "grid.txt"
NO_PATHS: Mapping[str, str] = {}


def export_tab(result: TrainResult) -> None:
    """Files, and the command that gives the same result."""
    scenario, paths = result.scenario, portable_paths(result.scenario)
    name = f"{result.plan.model.name}-{scenario.gpus}-gpus"
    saved = {**scenario.to_dict(), **paths}
    with st.container(horizontal=True, gap="small"):
        file_button(
            "Result (JSON)", f"{name}.json", lambda: as_json(result.to_dict() | {"scenario": saved})
        )
        file_button("Scenario (JSON)", f"{name}.scenario.json", lambda: as_json(saved))
        file_button(
            "Timeline (Perfetto)", f"{name}.perfetto.json", lambda: _timeline(result, saved)
        )
        fits = folders(result, name)
        beside = list(_files_beside(scenario, paths))
    st.caption("The same result on the command line, from the project's folder:")
    st.code(train_command(scenario, paths), language=None, wrap_lines=True)
    if not fits:
        st.caption(TOO_LARGE)
    if beside:
        st.caption(f"It reads {' and '.join(beside)} there: save that file beside it first.")
    if is_upload(_file_name(scenario)):
        st.caption(
            "The address of this page has the settings and not the file that was uploaded: it "
            "opens this step only in a session that has uploaded the same one."
        )
    else:
        st.caption("The address of this page is a link to exactly this step.")


def _timeline(result: TrainResult, saved: Mapping[str, Any]) -> bytes:
    """For Perfetto; a folder of this server has no business in it."""
    text = chrome_trace(result)
    if saved == result.scenario.to_dict():
        return text.encode()
    written = json.loads(text)
    written["otherData"]["scenario"] = saved
    return json.dumps(written).encode()


def _files_beside(scenario: TrainScenario, paths: Mapping[str, str]) -> Iterator[str]:
    """Offer what the command reads beside shipped files; how those are called."""
    name = _file_name(scenario)
    if scenario.config is not None:
        data = train_configs.configs()[name]
        file_button("Model (config.json)", paths["config"], lambda: data)
        yield paths["config"]
    elif is_upload(name):
        upload = uploads()[name]
        file_button("Trace (ZIP)", f"{paths['trace_dir']}.zip", lambda: zipped(upload))
        yield f"the unpacked {paths['trace_dir']}.zip"
    if scenario.grid is not None:
        text = f"{scenario.grid}\n".encode()
        file_button("Schedule (text)", GRID_FILE, lambda: text)
        yield GRID_FILE


def _file_name(scenario: TrainScenario) -> str:
    """The name here of the session's file or trace; "" of a model by name or sizes."""
    if scenario.config is not None:
        return Path(scenario.config).parent.name
    return "" if scenario.trace_dir is None else Path(scenario.trace_dir).name


def portable_paths(scenario: TrainScenario) -> dict[str, str]:
    """Paths of the scenario as they read in the project's folder of another machine."""
    name = _file_name(scenario)
    if scenario.config is not None:
        return {"config": train_configs.FILE}
    if scenario.trace_dir is None:
        return {}
    if name in uploads():
        return {"trace_dir": folder_name(uploads()[name])}
    return {"trace_dir": f"sample_trace/{name}" if name in shipped_traces() else name}


def train_command(scenario: TrainScenario, paths: Mapping[str, str] = NO_PATHS) -> str:
    """The command that reproduces a scenario; a grid is in a file of its own."""
    default, words = TrainScenario(), ["python -m triosim train"]
    for field in fields(TrainScenario):
        value = paths.get(field.name, getattr(scenario, field.name))
        own = value is not None and (field.name == "model" or value != getattr(default, field.name))
        if own:
            words.append(
                f"--{field.name.replace('_', '-')} {shlex.quote(_said(field.name, value))}"
            )
    return " ".join(words)


def _said(name: str, value: Any) -> str:
    if name == "grid":
        return GRID_FILE
    if isinstance(value, Description):
        return json.dumps(value.to_dict())
    if name in ("rank_speed", "constants"):
        return ",".join(f"{key}={number:.15g}" for key, number in value)
    return str(value).lower() if isinstance(value, bool) else str(value)

"""Whole scenarios in an address: what differs from the defaults, compressed.

A file of an upload does not travel: its name says the digest, and a session that lacks the file is
told which one to bring. Nothing in an address names a path; the files of published runs go by name.
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from dashboard import train_configs
from dashboard.links import shipped_traces
from dashboard.traces_store import folder_of, is_upload, uploads
from triosim.errors import ConfigError, TrioSimError
from triosim.network.topology.describe import is_file_name
from triosim.resolved import AnyScenario
from triosim.scenario import Scenario
from triosim.train import TrainScenario
from triosim.validation.tables import DATA

MOST = 4
MAX_TEXT = 16_000  # letters of an address
MAX_UNPACKED = 2**18
_KINDS: Mapping[str, type[AnyScenario]] = {"trace": Scenario, "train": TrainScenario}
_NETWORKS = {"trace": "topology", "train": "machine"}
_FILES = ("config", "machine")  # fields that may name a file of a published run
_PUBLISHED = "published:"


class Missing(NamedTuple):
    """A file that a link needs and this session lacks: of a field, under the name of an upload."""

    field: str
    name: str


def pack(scenarios: Sequence[AnyScenario]) -> str:
    """Up to four scenarios as letters, digits, - and _."""
    text = json.dumps([_said(scenario) for scenario in scenarios], separators=(",", ":"))
    squeezed = zlib.compress(text.encode(), 9)
    return base64.urlsafe_b64encode(squeezed).decode().rstrip("=")


def unpack(text: str) -> list[AnyScenario]:
    """The scenarios of an address.

    Raises `ConfigError` on field "scenarios", or on the field of a scenario that is wrong.
    """
    items = _items(text)
    if not 1 <= len(items) <= MOST:
        raise ConfigError("scenarios", len(items), f"a link holds 1 to {MOST}")
    return [_scenario(item) for item in items]


def count_of(text: str) -> int:
    """How many scenarios an address says it holds; raises `ConfigError` for what is no address."""
    return len(_items(text))


def kind_of(text: str) -> str:
    """Of which kind the first of them is, trace or train; "" where it does not say.

    Raises `ConfigError` for what is no address.
    """
    items = _items(text)
    kind = items[0].get("kind") if items and isinstance(items[0], Mapping) else None
    return kind if isinstance(kind, str) and kind in _KINDS else ""


def missing(text: str) -> list[Missing]:
    """The files that an address needs and this session has not uploaded.

    Raises `ConfigError` on field "scenarios" for what is no address.
    """
    here = {"trace_dir": uploads(), "config": train_configs.configs()}
    needed = [
        Missing(field, str(item[field]))
        for item in _items(text)
        if isinstance(item, Mapping)
        for field in here
        if is_upload(str(item.get(field)))
    ]
    return [one for one in dict.fromkeys(needed) if one.name not in here[one.field]]


def scenario_from_file(values: Mapping[str, Any], kind: str) -> AnyScenario:
    """A saved scenario from a stranger's file, whose paths mean nothing here but a trace's name.

    Raises `ConfigError`.
    """
    given = {name: value for name, value in values.items() if name != "schema_version"}
    if isinstance(given.get("trace_dir"), str):
        given["trace_dir"] = Path(given["trace_dir"]).name
    return _made(kind, given)


def _items(text: str) -> list[Any]:
    shown = text if len(text) <= 20 else f"{text[:20]}..."
    problem = "no scenarios can be read from this; copy the whole link"
    if len(text) > MAX_TEXT:
        raise ConfigError("scenarios", shown, f"a link has at most {MAX_TEXT:,} letters of them")
    try:
        squeezed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        reader = zlib.decompressobj()
        plain = reader.decompress(squeezed, MAX_UNPACKED)
        items = json.loads(plain.decode())
    except (binascii.Error, zlib.error, ValueError, RecursionError):
        raise ConfigError("scenarios", shown, problem) from None
    if not isinstance(items, list):
        raise ConfigError("scenarios", shown, problem)
    return items


def _said(scenario: AnyScenario) -> dict[str, Any]:
    kind = "train" if isinstance(scenario, TrainScenario) else "trace"
    values = scenario.to_dict()
    del values["schema_version"]
    defaults = {f.name: f.default for f in fields(scenario)}
    said = {name: v for name, v in values.items() if v != _plain(defaults[name])}
    if scenario.trace_dir is not None:
        said["trace_dir"] = Path(scenario.trace_dir).name
    for field in _FILES:
        if isinstance(said.get(field), str):
            said[field] = _file_said(field, said[field])
    return {"kind": kind, **said}


def _file_said(field: str, value: str) -> str:
    """The file of a published run by its name, an uploaded one by its digest."""
    path = Path(value)
    if path.parent == DATA:
        return f"{_PUBLISHED}{path.name}"
    return path.parent.name if field == "config" else value


def _published(value: object) -> str | None:
    """The path of a published run's file; None for what does not claim to be one."""
    if not isinstance(value, str) or not value.startswith(_PUBLISHED):
        return None
    name = value.removeprefix(_PUBLISHED)
    files = {path.name: path for path in DATA.iterdir()}
    if name not in files:
        raise ConfigError("scenarios", name, "no published run here has a file of this name")
    return str(files[name])


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _scenario(item: Any) -> AnyScenario:
    if not isinstance(item, Mapping) or item.get("kind") not in tuple(_KINDS):
        raise ConfigError("scenarios", "(unknown)", "a scenario is of kind trace or train")
    return _made(item["kind"], {name: value for name, value in item.items() if name != "kind"})


def _made(kind: str, values: dict[str, Any]) -> AnyScenario:
    if values.get("trace_dir") is not None:
        values["trace_dir"] = str(_trace(values["trace_dir"]))
    shipped = {name: path for name in _FILES if (path := _published(values.get(name)))}
    if values.get("config") is not None and "config" not in shipped:
        values["config"] = str(train_configs.path_of(str(values["config"])))
    if _NETWORKS[kind] not in shipped:
        _refuse_path(_NETWORKS[kind], values.get(_NETWORKS[kind]))
    values |= shipped
    try:
        return _KINDS[kind].from_dict(values)
    except TrioSimError:
        raise
    except (TypeError, ValueError, RecursionError, OverflowError, AttributeError):
        raise ConfigError("scenarios", kind, "a setting has a value of the wrong kind") from None


def _trace(name: object) -> Path:
    if not isinstance(name, str) or not (is_upload(name) or name in shipped_traces()):
        legal = f"must be one of {', '.join(shipped_traces())} or of an uploaded trace"
        raise ConfigError("trace_dir", name, legal)
    return folder_of(name)


def _refuse_path(field: str, value: object) -> None:
    """A topology is a name or a description; a file of the server is neither."""
    if isinstance(value, str) and is_file_name(value.strip()):
        raise ConfigError(field, value, "a link holds a name or a description, no file")

"""Uploaded config.json files: checked, and kept under their digest as uploaded traces are.

A session has its own and sees no other's. Neither the address nor a folder has a file's name in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from hashlib import sha256
from pathlib import Path
from typing import Any

import streamlit as st

from dashboard.plain import short
from dashboard.settings import range_text
from dashboard.traces_store import PREFIX, is_upload, name_of, shared_store
from dashboard.train_settings import SETTINGS, SIZES
from triosim.errors import ConfigError
from triosim.workload import Transformer, from_config

FILE = "config.json"
MAX_BYTES = 2**20
MAX_CONFIGS = 8  # of one session


def configs() -> dict[str, bytes]:
    """This session's files by name, the latest last."""
    return st.session_state.setdefault("train_configs", {})


def label_of(name: str) -> str:
    """What the file of that name describes, as it calls itself."""
    return short(check_config(configs()[name]).name)


def keep(data: bytes) -> str:
    """Add a file to this session; its name.

    Raises `ConfigError` for what is no description of a model that is known.
    """
    check_config(data)
    mine, name = configs(), name_of(sha256(data).hexdigest())
    mine.pop(name, None)
    mine[name] = data
    while len(mine) > MAX_CONFIGS:
        del mine[next(iter(mine))]
    return name


def check_config(data: bytes) -> Transformer:
    """The model that a file describes, within what the page has room for.

    Raises `ConfigError` on field "config", or on the key of the file that is wrong.
    """
    if len(data) > MAX_BYTES:
        raise ConfigError(FILE, f"of {len(data):,} bytes", f"must have at most {MAX_BYTES:,}")
    try:
        values = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ConfigError(FILE, "(no text)", "must be JSON in UTF-8") from None
    except json.JSONDecodeError as error:
        raise ConfigError(FILE, f"line {error.lineno}", f"is no JSON ({error.msg})") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(FILE, "(no JSON)", f"cannot be read ({error})") from None
    if not isinstance(values, Mapping):
        raise ConfigError(FILE, type(values).__name__, "must hold one JSON object")
    model = from_config(values)
    for field in fields(Transformer):
        if field.name in (*SIZES, "seq_len"):
            _check_range(field.name, getattr(model, field.name))
    return model


def _check_range(name: str, value: Any) -> None:
    setting = SETTINGS["seq" if name == "seq_len" else name]
    if isinstance(value, int) and setting.kind == "whole":
        low = 0 if value == 0 and setting.low == 0 else setting.low
        if not low <= value <= setting.high:
            legal = f"must be a whole number from {range_text(setting.low, setting.high)}"
            raise ConfigError(name, f"{value:.6g}" if value < 1e15 else value, legal)


def path_of(name: str | None) -> Path:
    """The file as the engine and its workers read it.

    Raises `ConfigError` on field "config" where this session has none of that name.
    """
    if name is None:
        raise ConfigError("config", "(none)", "upload a config.json of Hugging Face")
    data = configs().get(name)
    if data is None:
        raise ConfigError("config", name, absent(name))
    digest = sha256(data).hexdigest()
    return shared_store().folder(digest, name, {FILE: data}) / FILE


def absent(name: str) -> str:
    """What to say where a session lacks a file."""
    if not is_upload(name):
        return "must be the name that an uploaded config.json has here"
    return (
        "this config.json was uploaded elsewhere; upload the file with the digest "
        f"{name.removeprefix(PREFIX)} here"
    )

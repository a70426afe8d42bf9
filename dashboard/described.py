"""A network in one's own words: a field for its description, and a file for the field."""

from __future__ import annotations

import streamlit as st

from dashboard.bound import BOUND
from dashboard.network_text import read_text, write_toml
from dashboard.plain import plain
from triosim.errors import ConfigError
from triosim.network.topology.description import Description

MAX_TEXT = 8000
EXAMPLE = """\
kind = "tiers"
[[tiers]]
name = "NVSwitch"
children = 8
link = { gb_per_s = 450, latency_us = 0.6 }
[[tiers]]
name = "leaf"
children = 0
links = 8
per_gpu = true
link = { gb_per_s = 50, latency_us = 2 }
"""


def description_field(key: str) -> str:
    """What is typed or uploaded; the address has it as the parameter `key`."""
    if not st.session_state.get(key) and key not in st.query_params:
        st.session_state[key] = EXAMPLE
    typed = st.text_area(
        "Description (TOML or JSON)", None, key=key, height=240, max_chars=MAX_TEXT, **BOUND
    )
    st.file_uploader(
        "or a file", type=["toml", "json"], key=_file(key), max_upload_size=1, on_change=_read,
        args=(key,),
    )  # fmt: skip
    refused = st.session_state.pop(_refused(key), None)
    if refused:
        st.error(plain(refused))
    return typed or ""


def read_description(text: str, field: str) -> Description:
    """What is typed; raises `ConfigError` on the given field."""
    try:
        return read_text(text)
    except ConfigError as error:
        raise ConfigError(field, error.value, error.problem) from None


def write_description(description: Description, field: str) -> str:
    """What stands in the field for a network; raises `ConfigError` for one that is too long."""
    text = write_toml(description)
    if len(text) > MAX_TEXT:
        legal = f"this page reads descriptions of up to {MAX_TEXT:,} characters"
        raise ConfigError(field, f"{len(text):,} characters", legal)
    return text


def _file(key: str) -> str:
    return f"{key}_file"


def _refused(key: str) -> str:
    return f"{key}_file_refused"


def _read(key: str) -> None:
    """An uploaded file becomes the text."""
    file = st.session_state.get(_file(key))
    if file is None:
        return
    try:
        given = file.getvalue().decode("utf-8-sig")
    except ValueError:
        st.session_state[_refused(key)] = "This file is no text in UTF-8."
        return
    if len(given) > MAX_TEXT:
        st.session_state[_refused(key)] = (
            f"This file has {len(given):,} characters; the page reads up to {MAX_TEXT:,}, "
            "the command line any file."
        )
        return
    st.session_state[key] = given

"""The address of a lab: what it says, and a sentence for what it says wrongly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard.address import chosen, here, put_right, read_parameters, setting_value
from dashboard.frame import FRAME
from dashboard.lab.lab import Lab
from dashboard.links import Link, Parameters, text_of
from dashboard.settings import VERSION


def read_lab(lab: Lab, raw: Mapping[str, Sequence[str]], *, own: bool = False) -> Link:
    """What an address means; `own` says that the page's widgets wrote it."""
    settings = lab.all_settings()

    def value(name: str, texts: Sequence[str]) -> Any:
        return setting_value(settings.get(name), name, texts, own=own)

    return read_parameters(raw, value)


def read_address(lab: Lab, *, arrived: bool) -> None:
    """Note what is wrong with the address and put it right, before the first widget."""
    put_right(lab.code, read_lab(lab, here(), own=not arrived), lab.all_settings(), arrived=arrived)


def set_to(lab: Lab) -> Mapping[str, Any]:
    """What the address means now."""
    return read_lab(lab, here(), own=True).values


def address_of(lab: Lab) -> Parameters:
    """The address of what the page is set to; defaults are left out."""
    frame = {name: text_of(st.query_params[name]) for name in FRAME if name in st.query_params}
    return {"v": VERSION, **chosen(lab.all_settings()), **frame}

"""A saved file of any page opens where it belongs: on Simulate, Train, Compare or Network."""

from __future__ import annotations

import json
from collections.abc import Mapping

import streamlit as st

from dashboard import compare_links
from dashboard.address import door_address
from dashboard.compare_files import scenarios_in
from dashboard.compare_open import door_to
from dashboard.links import Parameters
from dashboard.network_settings import SETTINGS as NETWORK
from dashboard.plain import plain
from dashboard.settings import VERSION
from triosim.errors import ConfigError, TrioSimError

# Pages whose scenario is what their address says, and nothing else.
PAGES = {"network": "pages/network.py"}
ASKED, REFUSED = "saved_asked", "saved_refused"


def save_settings(page: str, parameters: Parameters) -> None:
    """The settings of a page as a file."""
    values = {"page": page, "parameters": parameters}
    st.download_button(
        "Settings (JSON)", json.dumps(values, indent=2) + "\n", f"{page}.json",
        mime="application/json", on_click="ignore", icon=":material/download:",
    )  # fmt: skip


def open_saved() -> None:
    """A field for a saved file; once on a page."""
    number = st.session_state.setdefault("saved_files", 0)
    key = f"saved_file_{number}"
    st.file_uploader(
        "Open a saved scenario, result or settings (JSON)", type=["json"], max_upload_size=4,
        key=key, on_change=_read, args=(key,),
    )  # fmt: skip
    refused = st.session_state.pop(REFUSED, None)
    if refused:
        st.error(plain(refused))
    if ASKED in st.session_state:
        st.session_state["saved_files"] = number + 1
        # Widgets hold on to the address of their page: it can be set from another page only.
        st.switch_page(compare_links.PAGE, query_params={"v": VERSION})


def go_on() -> None:
    """On the page Compare: go where a saved file belongs."""
    asked = st.session_state.pop(ASKED, None)
    if asked is not None:
        page, parameters = asked
        st.switch_page(page, query_params=parameters)


def _read(key: str) -> None:
    file = st.session_state.get(key)
    if file is None:
        return
    try:
        st.session_state[ASKED] = place_of(file.getvalue())
    except TrioSimError as error:
        st.session_state[REFUSED] = str(error)


def place_of(data: bytes) -> tuple[str, Parameters]:
    """The page and the address of a saved file; Compare for what no other page can say.

    Raises `ConfigError`.
    """
    settings = _settings(data)
    if settings is not None:
        return settings
    scenarios = scenarios_in(data)
    door = door_to(scenarios[0]) if len(scenarios) == 1 else None
    if door is None:
        return compare_links.PAGE, compare_links.link_to(scenarios)
    page, _, parameters = door
    return page, parameters


def _settings(data: bytes) -> tuple[str, Parameters] | None:
    """The settings of a page; None for another kind of file. The page checks each of them."""
    try:
        values = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(values, Mapping) or "page" not in values:
        return None
    page, given = values["page"], values.get("parameters")
    if not isinstance(page, str) or page not in PAGES:
        raise ConfigError("page", page, f"must be {' or '.join(PAGES)}")
    if not isinstance(given, Mapping) or not all(isinstance(v, str) for v in given.values()):
        raise ConfigError("parameters", type(given).__name__, "must be settings and their text")
    return PAGES[page], door_address(dict(given), NETWORK)

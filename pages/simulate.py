"""One step on other hardware or in another layout: controls on the side, the result beside them."""

import contextlib

import streamlit as st
from streamlit.errors import StreamlitAPIException

from dashboard import look, rejected, views
from dashboard.address import keep_view, return_to
from dashboard.computed import result_of
from dashboard.controls import Controls, sidebar
from dashboard.export import export
from dashboard.joined import network_caption
from dashboard.links import (
    VIEW,
    VIEW_DEFAULTS,
    parameters_of,
    read_link,
    scenario_of,
    shipped_traces,
)
from dashboard.overlay import overlay_part
from dashboard.pinned import pin_buttons
from dashboard.saved_file import open_saved
from dashboard.settings import SETTINGS, VERSION
from dashboard.sweep_side import sweep_button
from dashboard.traces_store import is_upload, uploads
from triosim.errors import TrioSimError
from triosim.result import Result


def read_address(traces: list[str], arrived: bool) -> None:
    """Note what is wrong with the address and put it right, before the first widget."""
    raw = {name: st.query_params.get_all(name) for name in st.query_params}
    link = read_link(raw, traces, own=not arrived)
    if arrived and raw:
        # A link means its defaults too, and not what was set here before.
        for name in (*SETTINGS, *VIEW):
            st.session_state.pop(name, None)
    if (
        arrived
        and raw.get("trace")
        and is_upload(raw["trace"][0])
        and raw["trace"][0] not in traces
    ):
        # For the page Traces: once the file is there, the rest of this link counts as well.
        st.session_state["waiting"] = {**link.parameters, "trace": raw["trace"][0]}
    rejected.note("simulate", link.rejected, arrived=arrived)
    if link.rejected or (arrived and {"v", *raw} != link.parameters.keys()):
        # Bound parameters cannot be written; their widgets drop what they cannot read themselves.
        with contextlib.suppress(StreamlitAPIException):
            st.query_params.from_dict(link.parameters)
            st.rerun()


def looked_at() -> dict[str, list[str]]:
    """The part of the address that is not about the scenario."""
    return {name: st.query_params.get_all(name) for name in VIEW if name in st.query_params}


def result_or_sentence(controls: Controls) -> Result | None:
    """The result; or a sentence, beside the control at fault where that can be seen."""
    try:
        return result_of(scenario_of(controls.values))
    except TrioSimError as error:
        controls.complain(error)
        return None


arrived = look.open_page("simulate", VERSION)
traces = [*shipped_traces(), *uploads()]
return_to("pages/simulate.py", "address", (*SETTINGS, *VIEW), arrived=arrived)
read_address(traces, arrived)
controls = sidebar(traces)
rejected.show("simulate", (controls.values, looked_at()))
st.session_state["address"] = parameters_of(controls.values)
result = result_or_sentence(controls)
if result is not None:
    title, actions = st.columns([0.5, 0.5], vertical_alignment="center")
    title.subheader(views.title_of(result.scenario), anchor=False)
    with actions.container(
        horizontal=True, horizontal_alignment="right", vertical_alignment="center"
    ):
        views.check_badge(result)
        pin_buttons(result.scenario, result.total_ms)
        sweep_button(result.scenario)
        with st.popover("Export", icon=":material/ios_share:"):
            export(result)
            open_saved()
    views.headline(result)
    network_caption(result)
    views.notices(result)
    views.tabs(result)
    overlay_part(result)
keep_view("address", VIEW_DEFAULTS)

"""Training a language model on a device mesh: settings on the side, the step beside them."""

import streamlit as st

from dashboard import look, rejected, views
from dashboard.address import return_to
from dashboard.overlay import overlay_part
from dashboard.pinned import pin_buttons
from dashboard.saved_file import open_saved
from dashboard.settings import VERSION
from dashboard.sweep_side import sweep_button
from dashboard.train_controls import Controls
from dashboard.train_cost import run_tab
from dashboard.train_export import export_tab
from dashboard.train_head import headline, measured, title_of
from dashboard.train_links import ADDRESS, address_of, keep_view, read_address, set_to
from dashboard.train_mesh import mesh_tab
from dashboard.train_run import Answer, answer_to
from dashboard.train_settings import SETTINGS, TABS
from dashboard.train_side import choose
from dashboard.train_tabs import checks_tab, memory_tab, time_tab
from dashboard.train_timeline import timeline
from dashboard.train_values import scenario_of
from triosim.errors import TrioSimError
from triosim.train import TrainResult


def answer_or_sentence(controls: Controls) -> Answer | None:
    """The step; or a sentence, beside the control at fault where that can be seen."""
    try:
        return answer_to(scenario_of(controls.values))
    except TrioSimError as error:
        controls.complain(error)
        return None


def files_tab(result: TrainResult) -> None:
    """What can be taken along, and what is brought back."""
    export_tab(result)
    open_saved()


def tabs(result: TrainResult) -> None:
    """Views of the step; only the open one is built."""
    contents = (timeline, time_tab, memory_tab, mesh_tab, run_tab, checks_tab, files_tab)
    opened = st.tabs(list(TABS), key="look", on_change="rerun", bind="query-params")
    for tab, content in zip(opened, contents, strict=True):
        if tab.open:
            with tab:
                content(result)


arrived = look.open_page("train", VERSION)
return_to("pages/train.py", ADDRESS, SETTINGS, arrived=arrived)
read_address(arrived)
with st.sidebar:
    controls = choose()
rejected.show("train", set_to())
answer = answer_or_sentence(controls)
if answer is not None:
    title, badge = st.columns([0.5, 0.5], vertical_alignment="center")
    title.subheader(title_of(answer.result), anchor=False)
    with badge.container(
        horizontal=True, horizontal_alignment="right", vertical_alignment="center"
    ):
        views.check_badge(answer.result)
        pin_buttons(answer.result.scenario, answer.result.step_ms)
        sweep_button(answer.result.scenario)
    headline(answer)
    measured(answer)
    views.notices(answer.result)
    tabs(answer.result)
    overlay_part(answer.result)
st.session_state[ADDRESS] = address_of(controls.values)
keep_view()

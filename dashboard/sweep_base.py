"""The step that a sweep begins with: the pinned one, a ready-made one, or one from a file."""

from __future__ import annotations

import streamlit as st

from dashboard.compare_add import ready_made
from dashboard.compare_files import scenarios_in
from dashboard.compare_open import door_to
from dashboard.names import name_of
from dashboard.pinned import pinned
from dashboard.plain import plain
from dashboard.sweep_links import set_base
from dashboard.train_published import preset
from triosim.errors import ConfigError, TrioSimError
from triosim.resolved import AnyScenario


def base_control(base: AnyScenario) -> None:
    """What the step is, a way to its page, and a menu for another one."""
    st.markdown(f"**Base step**  \n{plain(name_of(base))}")
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        with st.popover("Another step", icon=":material/swap_horiz:"):
            _choices()
        door = door_to(base)
        if door is not None:
            page, title, parameters = door
            st.page_link(
                page,
                label=f"Open on {title}",
                icon=":material/open_in_new:",
                query_params=parameters,
            )


def _choices() -> None:
    kept = pinned()
    if kept is None:
        st.caption("Nothing is pinned: Simulate and Train have a button for that.")
    else:
        st.button(
            "The pinned one", icon=":material/keep:", help=kept.text, on_click=set_base,
            args=(kept.scenario,),
        )  # fmt: skip
    st.selectbox(
        "A ready-made or published step", ready_made(), index=None, key="sweep_ready",
        placeholder="choose one", on_change=_ready,
    )  # fmt: skip
    number = st.session_state.setdefault("sweep_files", 0)
    st.file_uploader(
        "A scenario or a result that was saved (JSON)", type=["json"], max_upload_size=4,
        key=f"sweep_file_{number}", on_change=_read,
    )  # fmt: skip
    refused = st.session_state.pop("sweep_refused", None)
    if refused:
        st.error(plain(refused))


def _ready() -> None:
    name = st.session_state["sweep_ready"]
    if name is not None:
        st.session_state["sweep_ready"] = None
        set_base(ready_made()[name] or preset(name))


def _read() -> None:
    """Begin with what a saved file holds, or note what is wrong with it."""
    number = st.session_state["sweep_files"]
    file = st.session_state.get(f"sweep_file_{number}")
    if file is None:
        return
    try:
        found = scenarios_in(file.getvalue())
        if len(found) != 1:
            raise ConfigError("file", f"{len(found)} steps", "a sweep begins with one")
    except TrioSimError as error:
        st.session_state["sweep_refused"] = str(error)
        return
    # A new field, or the file would stay there as if it were still to come.
    st.session_state["sweep_files"] = number + 1
    set_base(found[0])

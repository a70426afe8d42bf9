"""What the Seminar page shows: progress, the outline, a class's questions, presets to present."""

from __future__ import annotations

import streamlit as st

from dashboard.lab.answers import answered
from dashboard.plain import plain
from dashboard.seminar import presenter
from dashboard.seminar.library import library
from dashboard.seminar.outline import Node, outline
from dashboard.seminar.places import Place, lab_of_question, place_of_question
from dashboard.seminar.presets import MAX_BYTES, Preset, name_of_file, read_preset
from triosim.errors import ConfigError, counted
from triosim.lab import QUESTIONS, question

OPEN, TRIED, DONE = (
    ":material/radio_button_unchecked:", ":material/pending:", ":material/check_circle:",
)  # fmt: skip
COLUMNS = 2


def state(name: str) -> str:
    """The sign of a question: not tried, tried, or its answer is open."""
    own = answered(question(name))
    return DONE if own.open else TRIED if own.tries else OPEN


def progress() -> None:
    """How many questions this session has answered."""
    done = sum(state(name) == DONE for name in QUESTIONS)
    st.progress(
        done / len(QUESTIONS),
        f"{done} of {len(QUESTIONS)} questions answered. Each opens with its scenario; guess "
        "before you look.",
    )


def nodes() -> None:
    """The outline, in the mind map's order."""
    found = list(enumerate(outline(), 1))
    for first in range(0, len(found), COLUMNS):
        row = found[first : first + COLUMNS]
        for column, (number, node) in zip(st.columns(COLUMNS), row, strict=False):
            with column.container(border=True, height="stretch", gap="xsmall", key=f"node{number}"):
                _node(number, node)


def _node(number: int, node: Node) -> None:
    st.markdown(f"**{number}. {plain(node.title)}**  \n{plain(node.text)}")
    with st.container(horizontal=True, gap="small"):
        lab = lab_of_question()[node.questions[0]]
        for label, place in {lab.title: node.place(node.questions[0]), **node.more}.items():
            st.page_link(
                place.page, label=plain(label), icon=":material/arrow_forward:",
                query_params=place.address,
            )  # fmt: skip
        for name in node.questions:
            _question_link(name, node.place(name))


def _question_link(name: str, place: Place) -> None:
    st.page_link(
        place.page, label=name, icon=state(name), query_params=place.address,
        help=plain(question(name).text),
    )  # fmt: skip


def follow(found: Preset) -> None:
    """A class's questions in the order in which they are presented."""
    with st.container(border=True, key="follow"):
        st.markdown(f"**Your class: {plain(found.title)}.** Answers count for it, without names.")
        with st.container(horizontal=True, gap="small"):
            for name in found.questions:
                _question_link(name, place_of_question(name))


def present() -> None:
    """Choose a preset, or bring one's own, and start."""
    with st.popover("Present", icon=":material/co_present:"):
        for one in library().presets().values():
            place = presenter.link_to(one, 1)
            st.page_link(
                place.page, label=plain(one.title), icon=":material/play_arrow:",
                query_params=place.address,
            )  # fmt: skip
            length = f"{one.minutes} minutes, " if one.minutes else ""
            st.caption(
                f"{length}{counted(len(one.steps), 'step')}. Students open the address of this "
                f"page with ?preset={one.name}"
            )
        for sentence in library().wrong:
            st.warning(plain(sentence))
        _bring()


def _bring() -> None:
    number = st.session_state.setdefault("preset_files", 0)
    st.file_uploader(
        "A preset of your own (TOML, as in presets/)", type=["toml"], max_upload_size=1,
        key=f"preset_file_{number}", on_change=_read,
    )  # fmt: skip
    refused = st.session_state.pop("preset_refused", None)
    if refused:
        st.error(plain(refused))


def _read() -> None:
    """Keep the preset of an uploaded file, or note what is wrong with it."""
    number = st.session_state["preset_files"]
    file = st.session_state.get(f"preset_file_{number}")
    if file is None:
        return
    # A new field, or the file would stay there as if it were still to come.
    st.session_state["preset_files"] = number + 1
    try:
        if file.size > MAX_BYTES:
            legal = f"has at most {MAX_BYTES:,} bytes"
            raise ConfigError("file", f"of {file.size:,} bytes", legal)
        library().add(read_preset(name_of_file(file.name), file.getvalue()))
    except ConfigError as error:
        st.session_state["preset_refused"] = str(error)

"""An instructor's screen: the bar at its foot, the keys, and how far a step has been revealed."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard.frame import current, leave, presenting, preset, slide
from dashboard.lab.answers import answered, forget
from dashboard.lab.counts import shared_counts
from dashboard.lab.predict import show_me
from dashboard.links import Parameters
from dashboard.plain import plain
from dashboard.seminar.places import Place, place_of_step
from dashboard.seminar.presets import ANSWER, CLASS, Preset, Step
from dashboard.seminar.screen import CONTROLS_CSS, keys, style_sheet
from dashboard.settings import VERSION
from triosim.errors import counted
from triosim.lab import Question, question

HOME = "pages/seminar.py"


def step_now() -> Step | None:
    """The step on the instructor's screen; None on any other."""
    found = current() if presenting() else None
    if found is None or not 1 <= slide() <= len(found.steps):
        return None
    return found.steps[slide() - 1]


def presented(questions: Sequence[str]) -> Question | None:
    """Which of a lab's questions is the step on the instructor's screen."""
    step = step_now()
    return question(step.question) if step is not None and step.question in questions else None


def revealed() -> tuple[str, ...]:
    """The parts of the step's answer that are shown so far."""
    step = step_now()
    return () if step is None else step.reveal[: _how_far()]


def link_to(found: Preset, number: int) -> Place:
    """The page and the address of a step on an instructor's screen."""
    place = place_of_step(found.steps[number - 1])
    return Place(page=place.page, address={**place.address, **_frame(found, number)})


def _frame(found: Preset, number: int) -> Parameters:
    return {"present": "1", "preset": found.name, "slide": str(number)}


def go(found: Preset, number: int) -> None:
    """On to a step, by way of the Seminar page.

    A page's widgets hold on to their parameters: its own address cannot be set from the page.
    """
    st.switch_page(HOME, query_params={"v": VERSION, **_frame(found, number)})


def open_step(found: Preset, number: int) -> None:
    """On the Seminar page: open a step as its file has it."""
    place = link_to(found, number)
    st.switch_page(place.page, query_params=place.address)


def bar() -> None:
    """Drawn before every page; nothing on a screen that is not an instructor's."""
    if not presenting():
        return
    st.html(style_sheet(dark=st.context.theme.type == "dark"))
    found, step = current(), step_now()
    with st.bottom.container(key="presenter", gap=None):
        if step is not None and step.note and st.session_state.get("present_note_shown"):
            st.markdown(plain(step.note))
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            wanted = _way(found) if found is not None else 0
            if step is not None:
                _reveal_and_reset(step)
            controls = step is not None and st.toggle("Controls", key="present_controls")
            st.button(
                "Leave", key="present_leave", icon=":material/close:", type="tertiary",
                on_click=leave,
            )  # fmt: skip
        keys(f"{preset()} {slide()} {_how_far()}", fit=step is not None)
    if step is not None and not controls:
        st.html(CONTROLS_CSS)
    if found is not None and wanted:
        go(found, wanted)


def _way(found: Preset) -> int:
    """Back and next; which step is wanted, or 0."""
    number, last = slide(), len(found.steps)
    back = st.button(
        "Back", key="present_back", icon=":material/arrow_back:", disabled=number <= 1,
    )  # fmt: skip
    st.markdown(f"step {number} of {last}" if 1 <= number <= last else counted(last, "step"))
    onward = st.button(
        "Next", key="present_next", icon=":material/arrow_forward:", disabled=number >= last,
    )  # fmt: skip
    if back:
        return min(number, last + 1) - 1
    again = st.session_state.pop("present_again", False)
    return number + 1 if onward else number if again else 0


def _reveal_and_reset(step: Step) -> None:
    if step.question:
        parts = step.reveal[_how_far() :]
        st.button(
            f"Reveal {parts[0]} (R)" if parts else "All revealed", key="present_reveal",
            icon=":material/visibility:", type="primary", disabled=not parts,
            on_click=_reveal, args=(step,),
        )  # fmt: skip
    st.button(
        "Reset to the question" if step.question else "Reset", key="present_reset",
        icon=":material/undo:", on_click=_reset, args=(step,),
    )  # fmt: skip
    if step.note:
        st.toggle("Note", key="present_note_shown")


def _how_far() -> int:
    """How many parts of this step have been revealed."""
    far: dict[tuple[str, int], int] = st.session_state.get("present_far", {})
    return far.get((preset(), slide()), 0)


def _set_far(count: int) -> None:
    st.session_state.setdefault("present_far", {})[preset(), slide()] = count


def _reveal(step: Step) -> None:
    """One part more; students see their class's answers from then on."""
    part = step.reveal[_how_far()]
    _set_far(_how_far() + 1)
    if part == CLASS:
        shared_counts().reveal(preset(), step.question)
    elif part == ANSWER:
        show_me(question(step.question))


def _reset(step: Step) -> None:
    """The step as it began: nothing revealed, every slider where the file has it."""
    _set_far(0)
    if step.question:
        asked = question(step.question)
        if answered(asked).open:
            forget(asked)
        shared_counts().reveal(preset(), step.question, shown=False)
    st.session_state["present_again"] = True

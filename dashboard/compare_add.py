"""Ways to a comparison: the pinned result, ready-made scenarios, saved files, whole examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import streamlit as st

from dashboard.compare_files import scenarios_in
from dashboard.compare_links import set_scenarios
from dashboard.examples import EXAMPLES, FIRST, RUNNING
from dashboard.pinned import pinned
from dashboard.plain import plain
from dashboard.train_published import preset, presets
from triosim.compare import MOST
from triosim.errors import ConfigError, TrioSimError
from triosim.resolved import AnyScenario


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A comparison that is ready to open."""

    title: str
    text: str
    icon: str
    scenarios: tuple[AnyScenario, ...]


QUESTIONS = (
    Question(
        title="Does hiding the all-reduce help?",
        text="One recorded step on four GPUs: gradients after backward, and beside it.",
        icon=":material/content_copy:",
        scenarios=(replace(FIRST, case=1), FIRST),
    ),
    Question(
        title="What does recomputing cost?",
        text="Llama 3.1 8B on eight GPUs: two ways to save memory, and neither.",
        icon=":material/replay:",
        scenarios=tuple(
            replace(RUNNING, recompute=how) for how in ("none", "selective-op", "full")
        ),
    ),
    Question(
        title="How should 64 GPUs be used?",
        text="Llama 3.1 8B: sharded, with tensor parallelism, with context parallelism, in stages.",
        icon=":material/grid_view:",
        scenarios=tuple(
            replace(RUNNING, gpus=64, global_batch=128, **axes)
            for axes in (
                {},
                {"tp": 4, "sequence_parallel": True},
                {"cp": 4},
                {"pp": 4},
            )
        ),
    ),
)


@lru_cache(maxsize=1)
def ready_made() -> Mapping[str, AnyScenario | None]:
    """Scenarios by name; None for a published run, whose scenario is made when it is wanted."""
    found: dict[str, AnyScenario | None] = {"Llama 3.1 8B on eight GPUs": RUNNING}
    found |= {example.title: example.scenario for example in EXAMPLES}
    return found | dict.fromkeys(presets())


def add_menu(scenarios: Sequence[AnyScenario]) -> None:
    """All that can be added to what is compared."""
    full = len(scenarios) >= MOST
    with st.popover("Add a step", icon=":material/add:", disabled=full):
        add_choices(scenarios)


def add_choices(scenarios: Sequence[AnyScenario]) -> None:
    """From the pin, from a list, from a file."""
    kept = pinned()
    if kept is None:
        st.caption("Nothing is pinned: Simulate, Train and Validation have a button for that.")
    else:
        st.button(
            "Add the pinned one",
            icon=":material/keep:",
            help=kept.text,
            on_click=_add,
            args=(scenarios, [kept.scenario]),
        )
    chosen = st.selectbox(
        "A ready-made or published step", ready_made(), index=None, key="compare_ready",
        placeholder="choose one",
    )  # fmt: skip
    st.button(
        "Add this step", icon=":material/add:", disabled=chosen is None, on_click=_add_ready,
        args=(scenarios,),
    )  # fmt: skip
    number = st.session_state.setdefault("compare_files", 0)
    st.file_uploader(
        "A scenario or a result that was saved (JSON)", type=["json"], max_upload_size=4,
        key=f"compare_file_{number}", on_change=_read, args=(scenarios,),
    )  # fmt: skip
    refused = st.session_state.pop("compare_refused", None)
    if refused:
        st.error(plain(refused))


def _add(scenarios: Sequence[AnyScenario], more: Sequence[AnyScenario]) -> None:
    set_scenarios([*scenarios, *more][:MOST])


def _add_ready(scenarios: Sequence[AnyScenario]) -> None:
    name = st.session_state["compare_ready"]
    found = ready_made()[name] or preset(name)
    st.session_state["compare_ready"] = None
    _add(scenarios, [found])


def _read(scenarios: Sequence[AnyScenario]) -> None:
    """Add what a saved file holds, or note what is wrong with it."""
    number = st.session_state["compare_files"]
    file = st.session_state.get(f"compare_file_{number}")
    if file is None:
        return
    try:
        found = scenarios_in(file.getvalue())
        if len(scenarios) + len(found) > MOST:
            raise ConfigError("file", len(found), f"with these more than {MOST} are compared")
    except TrioSimError as error:
        st.session_state["compare_refused"] = str(error)
        return
    # A new field, or the file would stay there as if it were still to come.
    st.session_state["compare_files"] = number + 1
    _add(scenarios, found)


def begin() -> None:
    """A page with nothing on it yet: comparisons to open, or a first step."""
    st.subheader("Compare steps side by side", anchor=False)
    st.markdown(
        "Two to four steps, recorded or of a language model: what is set differently, where the "
        "time between them goes, and what they need. Open one of these, or add steps of your own."
    )
    for column, question in zip(st.columns(len(QUESTIONS)), QUESTIONS, strict=True):
        with column.container(border=True, height="stretch", gap="xsmall"):
            st.button(
                question.title, icon=question.icon, type="tertiary", on_click=set_scenarios,
                args=(question.scenarios,),
            )  # fmt: skip
            st.caption(question.text)
    with st.container(border=True):
        add_choices([])

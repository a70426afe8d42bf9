"""Answers of the engine for the page Network, kept for all sessions; large ones from a worker."""

from __future__ import annotations

from typing import Any

import streamlit as st

from dashboard.computed import once
from dashboard.network_optical import Comparison, compare
from dashboard.network_overlap import Overlap, Wish, overlap
from dashboard.network_study import Network, Question, Study, study
from triosim.figures.step_player import step_player
from triosim.network.collectives.steps import script
from triosim.scenario import Scenario

# The engine lays out all algorithms for so many ranks in a moment; more goes to a worker.
AT_ONCE = 4096


def studied(question: Question) -> Study:
    """All algorithms for a collective."""
    large = question.network.ranks > AT_ONCE
    found: Study = once("Laying out all algorithms", study, question, here=not large)
    found.shares.flags.writeable = False
    return found


def overlapped(network: Network, wishes: tuple[Wish, Wish], offset_s: float) -> Overlap:
    """Two collectives at once."""
    large = network.ranks > AT_ONCE
    found: Overlap = once("Running both", overlap, network, wishes, offset_s, here=not large)
    return found


def compared(electrical: Scenario, optical: Scenario) -> Comparison:
    """A step over both kinds of interconnect, at several set-up times."""
    found: Comparison = once("Simulating both", compare, electrical, optical)
    return found


@st.cache_data(max_entries=64, show_spinner=False)
def frames(
    operation: str,
    algorithm: str,
    ranks: int,
    hosts: tuple[int, ...] | None,
    shape: tuple[int, ...] | None,
) -> dict[str, Any]:
    """What the step player shows."""
    return step_player(script(operation, algorithm, ranks, hosts=hosts, shape=shape))

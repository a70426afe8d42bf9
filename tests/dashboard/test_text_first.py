"""A browser gets time for the text before it gets Plotly's code."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard import timeline


def test_only_the_first_chart_of_a_browsers_session_waits(
    simulate_page: Callable[..., AppTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(timeline, "sleep", waits.append)
    simulate_page(v="1")
    assert waits == []  # no browser
    headers = SimpleNamespace(headers={"User-Agent": "x"}, theme=st.context.theme)
    monkeypatch.setattr(timeline.st, "context", headers)
    at = simulate_page(v="1")
    assert len(waits) == 1
    at.run()
    assert len(waits) == 1

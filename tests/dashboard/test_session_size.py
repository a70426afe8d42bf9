"""What Streamlit keeps of each figure that a session has seen must be small.

It keeps the callback of every widget until the session ends, and a chart that can be clicked is a
new widget with every new figure.
"""

import pickle
from functools import partial

import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.reading import open_page, settled

MOST_BYTES = 3_000  # a scenario in full, and neither a result nor the points of a sweep


def callbacks(at: AppTest) -> list[partial[None]]:
    kept = at.session_state._state._state._new_widget_state.widget_metadata
    found = [one.callback for one in kept.values()]
    return [one for one in found if isinstance(one, partial)]


@pytest.mark.parametrize(
    ("page", "parameters"),
    [
        ("pages/simulate.py", {}),
        ("pages/train.py", {"world": "16"}),
        ("pages/sweep.py", {}),
    ],
)
def test_no_callback_holds_what_a_page_has_drawn(page: str, parameters: dict[str, str]) -> None:
    at = settled(open_page(page, v="1", **parameters))
    assert not at.exception
    found = callbacks(at)
    assert found
    for one in found:
        size = len(pickle.dumps((one.args, one.keywords)))
        assert size < MOST_BYTES, one.func

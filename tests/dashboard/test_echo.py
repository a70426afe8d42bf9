"""A second move that comes before the browser has taken the first one's answer undoes nothing."""

import pytest

from dashboard import echo
from tests.dashboard.reading import open_page


def test_a_mesh_is_not_turned_back_by_what_its_columns_said_before() -> None:
    at = open_page("pages/simulate.py", v="1", interconnect="optical", gpus="16")
    at.select_slider(key="mesh_rows").set_value(2).run()
    # One message: the batch is moved, and the columns are still where they were in the browser.
    at.select_slider(key="mesh_cols_slider").set_value(16)
    at.number_input(key="batch_size_sim").set_value(24.0).run()
    assert at.select_slider(key="mesh_rows").value == 2
    assert at.select_slider(key="mesh_cols_slider").value == 8
    assert at.number_input(key="batch_size_sim").value == 24


def test_a_typed_number_is_not_undone_by_its_slider() -> None:
    at = open_page("pages/simulate.py", v="1", gpus="4")
    at.number_input(key="gpus").set_value(6.0).run()
    at.select_slider(key="gpus_slider").set_value(4.0)
    at.slider(key="case").set_value(1).run()
    assert at.number_input(key="gpus").value == 6
    assert at.select_slider(key="gpus_slider").value == 6


@pytest.mark.parametrize("other", [1, 4])
def test_columns_are_moved_as_before(monkeypatch: pytest.MonkeyPatch, other: int) -> None:
    """Elsewhere at once, and back to where they were once a person can have moved them."""
    if other == 1:
        monkeypatch.setattr(echo, "AT_ONCE_S", 0.0)
    at = open_page("pages/simulate.py", v="1", interconnect="optical", gpus="16")
    at.select_slider(key="mesh_rows").set_value(2).run()
    at.select_slider(key="mesh_cols_slider").set_value(16 // other).run()
    assert at.select_slider(key="mesh_rows").value == other
    assert not at.exception

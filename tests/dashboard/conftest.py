from collections.abc import Callable
from functools import partial

import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.reading import APP, open_page

Open = Callable[..., AppTest]


@pytest.fixture
def start_page() -> AppTest:
    """The first page, run once."""
    return AppTest.from_file(str(APP), default_timeout=30).run()


@pytest.fixture
def simulate_page() -> Open:
    """Opens the simulation page at some address."""
    return partial(open_page, "pages/simulate.py")


@pytest.fixture
def train_page() -> Open:
    """Opens the page Train at some address."""
    return partial(open_page, "pages/train.py")


@pytest.fixture
def network_page() -> Open:
    """Opens the page Network at some address."""
    return partial(open_page, "pages/network.py")

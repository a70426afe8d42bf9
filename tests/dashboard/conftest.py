from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit import config
from streamlit.testing.v1 import AppTest

APP = Path(__file__).parents[2] / "app.py"
Open = Callable[..., AppTest]


@pytest.fixture
def start_page() -> AppTest:
    """The first page, run once."""
    return AppTest.from_file(str(APP), default_timeout=30).run()


@pytest.fixture
def simulate_page(monkeypatch: pytest.MonkeyPatch) -> Open:
    """Opens the simulation page at some address."""
    # As in .streamlit/config.toml, which Streamlit reads from the working directory.
    config.set_option("global.disableWidgetStateDuplicationWarning", True)

    def open_at(**parameters: str | list[str]) -> AppTest:
        at = AppTest.from_file(str(APP), default_timeout=30)
        for name, value in parameters.items():
            at.query_params[name] = value
        at.switch_page("pages/simulate.py")
        return at.run()

    return open_at


@pytest.fixture
def train_page() -> Open:
    """Opens the page Train at some address."""
    config.set_option("global.disableWidgetStateDuplicationWarning", True)

    def open_at(**parameters: str | list[str]) -> AppTest:
        at = AppTest.from_file(str(APP), default_timeout=60)
        for name, value in parameters.items():
            at.query_params[name] = value
        at.switch_page("pages/train.py")
        return at.run()

    return open_at


@pytest.fixture
def network_page() -> Open:
    """Opens the page Network at some address."""
    config.set_option("global.disableWidgetStateDuplicationWarning", True)

    def open_at(**parameters: str) -> AppTest:
        at = AppTest.from_file(str(APP), default_timeout=30)
        for name, value in parameters.items():
            at.query_params[name] = value
        at.switch_page("pages/network.py")
        return at.run()

    return open_at

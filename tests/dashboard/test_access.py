"""The class password: who is let in, who has to wait, and that nothing is drawn before."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.runtime.pages_manager import PagesManager
from streamlit.testing.v1 import AppTest

from dashboard import access
from dashboard.access import (
    FILE_VARIABLE,
    MAX_CLIENTS,
    VARIABLE,
    WINDOW_S,
    WRONG_OF_ALL,
    WRONG_PER_CLIENT,
    Limit,
    client_of,
)

APP = Path(__file__).parents[2] / "app.py"
PASSWORD = "half a bubble, pl\u00e4ase"


@pytest.fixture
def locked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(VARIABLE, PASSWORD)
    access.shared_limit.clear()
    started = PagesManager.__init__

    def later(self: PagesManager, *arguments: Any, **named: Any) -> None:
        started(self, *arguments, **named)
        PagesManager.uses_pages_directory = False

    # AppTest begins every run as a new server does, where what is pressed before a page gets lost.
    monkeypatch.setattr(PagesManager, "__init__", later)
    yield
    access.shared_limit.clear()


def visit(page: str = "pages/start.py") -> AppTest:
    at = AppTest.from_file(str(APP), default_timeout=60)
    at.switch_page(page)
    return at.run()


def give(at: AppTest, text: str) -> AppTest:
    at.text_input(key=access.FIELD).set_value(text)
    return at.button[0].click().run()


@pytest.mark.parametrize("page", ["pages/start.py", "pages/simulate.py", "pages/lab_fsdp.py"])
def test_nothing_of_a_page_is_drawn_before_the_password(
    locked: None, page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started() -> None:
        raise AssertionError("a worker was asked before the password")

    monkeypatch.undo()  # the first visit to a server is no exception
    monkeypatch.setenv(VARIABLE, PASSWORD)
    monkeypatch.setattr("dashboard.computed.shared_runner", started)
    at = visit(page)
    assert not at.exception
    assert [field.label for field in at.text_input] == ["Password of the class"]
    assert not at.sidebar.children
    assert not at.metric
    assert not at.get("plotly_chart")
    assert not at.markdown
    assert [button.label for button in at.button] == ["Enter"]


def test_the_right_password_opens_the_page_that_was_asked_for(locked: None) -> None:
    at = give(visit("pages/lab_mesh.py"), PASSWORD)
    assert not at.exception
    assert not [field for field in at.text_input if field.key == access.FIELD]
    assert at.subheader[0].value == "Device mesh and DTensor"
    assert PASSWORD not in str(dict(at.query_params))


def test_a_wrong_password_gets_a_sentence_and_nothing_else(locked: None) -> None:
    at = give(visit(), PASSWORD + " ")
    assert [error.value for error in at.error] == ["That is not the password of the class."]
    assert not at.metric
    assert len(at.text_input) == 1


def test_who_guesses_has_to_wait_even_with_the_right_one(locked: None) -> None:
    at = visit()
    for _ in range(WRONG_PER_CLIENT):
        at = give(at, "guess")
    assert at.error[0].value.startswith("Too many wrong passwords: the next one is looked at in ")
    at = give(visit(), PASSWORD)  # another session from the same address
    assert at.error[0].value.startswith("Too many wrong passwords")
    assert not at.metric


def test_an_empty_password_lets_nobody_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, "")
    at = visit()
    sentence = "This server lets nobody in: TRIOSIM_PASSWORD must give 1 to 200 characters."
    assert [error.value for error in at.error] == [sentence]
    assert not at.text_input
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "absent"))
    with pytest.raises(access.NoPasswordError, match="the file that TRIOSIM_PASSWORD_FILE names"):
        access.password_digest()


def test_a_file_comes_first_and_its_last_line_break_does_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(FILE_VARIABLE, raising=False)
    monkeypatch.setenv(VARIABLE, "other")
    other = access.password_digest()
    (tmp_path / "password").write_text("other\n")
    monkeypatch.setenv(FILE_VARIABLE, str(tmp_path / "password"))
    assert access.password_digest() == other
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    assert access.password_digest() != other
    monkeypatch.delenv(FILE_VARIABLE)
    monkeypatch.delenv(VARIABLE)
    assert access.password_digest() is None


@pytest.fixture
def clock() -> list[float]:
    return [1000.0]


@pytest.fixture
def limit(clock: list[float]) -> Limit:
    return Limit(now_s=lambda: clock[0])


WANTED = access._digest(PASSWORD)


def test_one_client_waits_alone_and_for_a_minute(limit: Limit, clock: list[float]) -> None:
    for _ in range(WRONG_PER_CLIENT):
        assert limit.wait_s("a") == 0
        assert not limit.try_password("a", "guess", WANTED)
        clock[0] += 1
    assert limit.wait_s("a") == WINDOW_S - WRONG_PER_CLIENT
    assert not limit.try_password("a", PASSWORD, WANTED)
    assert limit.try_password("b", PASSWORD, WANTED)
    clock[0] += WINDOW_S - WRONG_PER_CLIENT
    assert limit.try_password("a", PASSWORD, WANTED)


def test_many_clients_together_have_a_limit_too(limit: Limit, clock: list[float]) -> None:
    for client in range(WRONG_OF_ALL):
        assert not limit.try_password(f"{client}", "guess", WANTED)
    assert not limit.try_password("another", PASSWORD, WANTED)
    assert limit.wait_s("another") == WINDOW_S
    clock[0] += WINDOW_S
    assert limit.try_password("another", PASSWORD, WANTED)


def test_clients_are_not_remembered_without_end(limit: Limit, clock: list[float]) -> None:
    for client in range(MAX_CLIENTS + 9):
        limit.try_password(f"{client}", "guess", WANTED)
        clock[0] += WINDOW_S
    assert len(limit._by_client) == MAX_CLIENTS


def test_addresses_of_one_household_are_one_client() -> None:
    assert client_of("2001:db8::1") == client_of("2001:db8::ffff:2") == "2001:db8::/64"
    assert client_of("192.0.2.7") != client_of("192.0.2.8")
    assert client_of(None) == client_of("nonsense")

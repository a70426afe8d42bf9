import time
from collections.abc import Callable

import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from dashboard import health
from dashboard.runner import WORKERS, Runner


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Runner:
    runner = Runner()
    monkeypatch.setattr(health, "shared_runner", lambda: runner)
    return runner


def until(holds: Callable[[], bool]) -> None:
    """Wait for something that must happen; a loaded machine is slow, not wrong."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_server_is_well_while_its_workers_answer_or_work(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = TestClient(Starlette(routes=[Route(health.PATH, health.health)]))
    monkeypatch.setattr(health, "PATIENCE_S", 60.0)
    try:
        free = client.get(health.PATH)
        assert (free.status_code, free.json()["workers"]) == (200, WORKERS)
        jobs = [runner.job(i, time.sleep, 600) for i in range(WORKERS)]
        entered = [job.__enter__() for job in jobs]
        until(lambda: all(job.worker for job in entered))
        busy = client.get(health.PATH)
        assert (busy.status_code, busy.json()["busy"]) == (200, WORKERS)
        monkeypatch.setattr(health, "LONGEST_RUN_S", 0.0)
        assert client.get(health.PATH).status_code == 503
    finally:
        runner.close()

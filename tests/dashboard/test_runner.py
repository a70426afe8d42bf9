import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dashboard import runner as runner_module
from dashboard import work
from dashboard.computed import compute
from dashboard.runner import WORKERS, Runner, WorkerDied
from triosim import ConfigError, Infeasible, Result, Scenario, SimulationError, simulate
from triosim.trace import trace_stamp


@pytest.fixture
def runner() -> Iterator[Runner]:
    runner = Runner()
    yield runner
    runner.close()


def simulated(runner: Runner, scenario: Scenario) -> Result:
    found: Result = compute(runner, "Simulating", scenario, work.run, scenario)
    return found


def test_a_worker_finds_what_this_process_finds(runner: Runner) -> None:
    result = simulated(runner, Scenario(case=4, gpus=3))
    assert result.to_dict() == simulate(Scenario(case=4, gpus=3)).to_dict()


def test_errors_of_a_worker_arrive_as_they_are(runner: Runner) -> None:
    with pytest.raises(Infeasible, match="bytes in memory at once"):
        simulated(runner, Scenario(capacity_log2=20))
    with pytest.raises(ConfigError, match="case 4 needs a forward operator") as caught:
        simulated(runner, Scenario(case=4, gpus=9999))
    assert caught.value.field == "gpus"


def until(holds: Callable[[], bool]) -> None:
    """Wait for something that must happen; a loaded machine is slow, not wrong."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_worker_that_dies_is_replaced(runner: Runner) -> None:
    simulated(runner, Scenario(gpus=2))
    for worker in runner.workers:
        os.kill(worker.process.pid, signal.SIGKILL)
        worker.process.join()
    assert simulated(runner, Scenario(gpus=3)).scenario.gpus == 3


def test_what_ends_its_worker_twice_gets_a_sentence(runner: Runner) -> None:
    with pytest.raises(SimulationError, match="Reading ended twice; it may have run out of memory"):
        compute(runner, "Reading", "key", os._exit, 1)


def test_a_bug_in_a_worker_arrives_with_its_traceback(runner: Runner) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        compute(runner, "Dividing", "key", divmod, 1, 0)
    assert "in _outcome" in "".join(caught.value.__notes__)


def test_what_queues_is_cancelled_when_nobody_waits_for_it(runner: Runner) -> None:
    busy = [runner.job(i, time.sleep, 60) for i in range(WORKERS)]
    entered = [job.__enter__() for job in busy]
    until(lambda: all(job.worker for job in entered))
    with runner.job("last", work.run, Scenario(gpus=5)) as last:
        assert not last.future.cancelled()
    assert last.future.cancelled()
    assert not any(job.future.done() for job in entered)
    for job in busy:
        job.__exit__(None, None, None)


def test_a_run_that_nobody_waits_for_makes_room_for_one_that_queues(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_module, "START_S", 0.0)
    with runner.job("wanted", time.sleep, 600) as wanted:
        with runner.job("abandoned", time.sleep, 600) as abandoned:
            until(lambda: bool(wanted.worker and abandoned.worker))
            runner.make_room()
        runner.make_room()
        assert abandoned.worker is not None  # nothing queues, so it may go on
        assert simulated(runner, Scenario(gpus=5)).scenario.gpus == 5
        assert isinstance(abandoned.future.exception(60), WorkerDied)
        assert not wanted.future.done()
        assert wanted.worker is not None
        assert wanted.worker.process.is_alive()


def test_who_comes_back_finds_the_run_still_going(runner: Runner) -> None:
    with runner.job("key", time.sleep, 600) as job:
        until(lambda: job.worker is not None)
    with runner.job("key", time.sleep, 600) as again:
        assert again is job


SERVER = """
import time
from dashboard.runner import WORKERS, Runner
if __name__ == "__main__":
    runner = Runner()
    jobs = [runner.job(i, time.sleep, 600) for i in range(WORKERS - 1)]
    entered = [job.__enter__() for job in jobs]
    while not all(job.worker for job in entered):
        time.sleep(0.01)
    print("ready", flush=True)
    time.sleep(600)
"""


def test_workers_end_with_a_killed_server_idle_or_busy(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(SERVER)
    root = str(Path(__file__).parents[2])
    server = subprocess.Popen(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": root},
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    server.kill()
    # The workers have inherited this pipe: it ends when the last of them has.
    assert server.communicate(timeout=60) == (b"", None)


def test_two_who_wait_for_the_same_share_it(runner: Runner) -> None:
    scenario = Scenario(gpus=6)
    with (
        runner.job(scenario, work.run, scenario) as one,
        runner.job(scenario, work.run, scenario) as other,
    ):
        assert one is other
        assert isinstance(one.future.result(60), Result)


def test_an_answer_is_kept_also_if_nobody_waits_for_it_any_more(runner: Runner) -> None:
    with runner.job("long", work.run, Scenario(gpus=2), keep=True) as job:
        until(lambda: job.worker is not None)
    until(lambda: runner.kept.get("long") is not None)
    assert runner.kept.get("long").scenario.gpus == 2
    with runner.job("passing", work.run, Scenario(gpus=2)) as passing:
        passing.future.result(60)
    assert runner.kept.get("passing") is None


def test_a_changed_trace_is_another_key(tmp_path: object) -> None:
    folder = str(tmp_path)
    before = trace_stamp(folder)
    with open(f"{folder}/trace.csv", "w") as file:
        file.write("x")
    assert trace_stamp(folder) != before


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"case": 1, "accumulate": 4096}, "accumulate"),
        ({"case": 4, "batch_size_sim": 2**20, "micro_batch_size": 1}, "micro_batch_size"),
        ({"case": 2, "gpus": 2**20, "fold": False}, "fold"),
    ],
)
def test_what_would_take_a_class_too_long_is_refused(fields: dict[str, int], field: str) -> None:
    with pytest.raises(ConfigError, match="the command line goes up to 2,000,000") as caught:
        work.check_size(Scenario(**fields))
    assert caught.value.field == field


def test_heavy_jobs_leave_a_worker_to_the_others(runner: Runner) -> None:
    with (
        runner.job("one", time.sleep, 600, heavy=True) as one,
        runner.job("two", time.sleep, 600, heavy=True) as two,
    ):
        until(lambda: one.worker is not None)
        assert simulated(runner, Scenario(gpus=5)).scenario.gpus == 5
        assert not one.future.done()
        assert two.worker is None

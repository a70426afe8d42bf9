import os
import signal
from collections.abc import Iterator

import pytest

from dashboard import work
from dashboard.runner import MAX_RESULTS, Runner, _simulate
from triosim import ConfigError, Infeasible, Result, Scenario, simulate


@pytest.fixture
def runner() -> Iterator[Runner]:
    runner = Runner()
    yield runner
    runner.close()


def key(**fields: object) -> tuple[Scenario, work.Stamp]:
    scenario = Scenario(**fields)
    return scenario, work.stamp(scenario.trace_dir)


def test_a_worker_finds_what_this_process_finds(runner: Runner) -> None:
    result = _simulate(runner, key(case=4, gpus=3))
    assert result.to_dict() == simulate(Scenario(case=4, gpus=3)).to_dict()


def test_errors_of_a_worker_arrive_as_they_are(runner: Runner) -> None:
    with pytest.raises(Infeasible, match="bytes in memory at once"):
        _simulate(runner, key(capacity_log2=20))
    with pytest.raises(ConfigError, match="case 4 needs a forward operator") as caught:
        _simulate(runner, key(case=4, gpus=9999))
    assert caught.value.field == "gpus"


def test_a_worker_that_dies_is_replaced(runner: Runner) -> None:
    _simulate(runner, key(gpus=2))
    for process in list(runner._pool._processes.values()):
        os.kill(process.pid, signal.SIGKILL)
    assert _simulate(runner, key(gpus=3)).scenario.gpus == 3


def test_a_simulation_that_nobody_waits_for_is_cancelled(runner: Runner) -> None:
    slow = [
        runner.job(key(case=4, gpus=8, batch_size_sim=256 + i, micro_batch_size=1))
        for i in range(4)
    ]
    entered = [job.__enter__() for job in slow]
    with runner.job(key(gpus=5)) as last:
        assert not last.future.cancelled()
    assert last.future.cancelled()
    for job in slow:
        job.__exit__(None, None, None)
    assert entered[-1].future.cancelled()


def test_two_who_wait_for_the_same_share_it(runner: Runner) -> None:
    with runner.job(key(gpus=6)) as one, runner.job(key(gpus=6)) as other:
        assert one is other
        assert isinstance(one.future.result(20), Result)


def test_the_number_of_kept_results_is_limited(runner: Runner) -> None:
    result = simulate(Scenario(gpus=1))
    keys = [key(gpus=gpus) for gpus in range(1, MAX_RESULTS + 3)]
    for one in keys:
        runner.keep(one, result)
    assert runner.known(keys[0]) is None
    assert runner.known(keys[-1]) is result


def test_a_changed_trace_is_another_key(tmp_path: object) -> None:
    folder = str(tmp_path)
    before = work.stamp(folder)
    with open(f"{folder}/trace.csv", "w") as file:
        file.write("x")
    assert work.stamp(folder) != before


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"case": 1, "accumulate": 4096}, "accumulate"),
        ({"case": 4, "batch_size_sim": 2**20, "micro_batch_size": 1}, "micro_batch_size"),
        ({"case": 2, "gpus": 2**20, "fold": False}, "fold"),
    ],
)
def test_what_would_take_a_class_too_long_is_refused(fields: dict[str, int], field: str) -> None:
    with pytest.raises(ConfigError, match="the command line has no limit") as caught:
        work.check_size(Scenario(**fields))
    assert caught.value.field == field

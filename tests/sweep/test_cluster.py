"""A real scheduler and two workers on this machine."""

import os
import signal

import pytest

import triosim as ts
from triosim.sweep import SweepSpec, run_points
from triosim.sweep.cluster import connect
from triosim.sweep.store import Store

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("default")  # what Dask's own threads and sockets warn of


@pytest.fixture
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as made:
        yield made


def pid_of_a_worker(address):
    with distributed.Client(address, set_as_default=False) as client:
        return min(client.run(os.getpid).values())


def test_a_killed_worker_loses_nothing_and_a_resume_computes_nothing_again(cluster, tmp_path):
    spec = SweepSpec.made(
        ts.Scenario(case=2), {"ptp_bandwidth_gb_per_s": {"from": 10, "to": 129, "step": 1}}
    )
    points = []
    with connect(cluster.scheduler_address) as executor:
        for point in run_points(spec, executor=executor, store=tmp_path):
            points.append(point)
            if len(points) == 20:
                os.kill(pid_of_a_worker(cluster.scheduler_address), signal.SIGKILL)
    assert sorted(point.index for point in points) == list(range(120))
    assert all(point.problem is None for point in points)
    assert len(Store(tmp_path).read()) == 120
    some = [p for p in points if p.index in (0, 50, 119)]
    for point in some:
        assert point.metrics["step_ms"] == ts.simulate(point.scenario).total_ms

    class Refusing:
        def submit(self, *arguments):
            raise AssertionError("a stored point is computed again")

    again = list(run_points(spec, executor=Refusing(), store=tmp_path))
    assert sorted(point.index for point in again) == list(range(120))


def test_no_scheduler_gets_one_sentence():
    with (
        pytest.raises(ts.ConfigError, match="no scheduler answers there"),
        connect("tcp://127.0.0.1:9", patience_s=0.5),
    ):
        pass

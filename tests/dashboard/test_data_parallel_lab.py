"""The pictures of the lab on data parallelism."""

from __future__ import annotations

import json

import pytest

from dashboard.lab.data_parallel import LAB, SIZES_MB
from tests.dashboard.labs import charts, open_question, press
from triosim import Scenario, simulate
from triosim.lab.bucket_sweep import sweep_buckets
from triosim.scenario import SAMPLE_TRACES

D1, D2, _ = LAB.asked
SCENARIO = Scenario(
    trace_dir=str(SAMPLE_TRACES / "resnet50"), case=2, gpus=64, ptp_bandwidth_gb_per_s=25,
    ptp_convention="link", latency_us=10, resident=True,
)  # fmt: skip


def test_the_exposed_part_is_marked_as_long_as_it_is() -> None:
    at = press(open_question(LAB, D1), "Show me")
    figure = json.loads(charts(at)[1])
    (box,) = [shape for shape in figure["layout"]["shapes"] if shape["type"] == "rect"]
    result = simulate(
        Scenario(
            trace_dir=SCENARIO.trace_dir, case=2, gpus=8, ptp_bandwidth_gb_per_s=65,
            ptp_convention="link", latency_us=5, resident=True,
        )
    )  # fmt: skip
    assert box["x1"] - box["x0"] == pytest.approx(result.exposed_communication_ms)
    # ORACLES D1: at least the last bucket's all-reduce is exposed.
    assert box["x1"] - box["x0"] > 0


def test_without_overlap_all_of_it_is_exposed() -> None:
    at = press(open_question(LAB, D1, d1_overlap="false", d1_latency_us="0"), "Show me")
    busy, exposed = at.metric[1].value, at.metric[2].value
    # SEMINAR D1: 2.75 ms.
    assert busy == exposed == "2.75 ms"


def test_one_replica_sends_nothing() -> None:
    at = press(open_question(LAB, D1, d1_replicas="1"), "Show me")
    assert at.metric[2].value == "0 ms"
    assert any(caption.value.startswith("Nothing is exposed") for caption in at.caption)


def test_a_bucket_has_an_optimum_between_latency_and_the_last_one() -> None:
    points = sweep_buckets(SCENARIO, SIZES_MB)
    exposed = [point.exposed_ms for point in points]
    best = exposed.index(min(exposed))
    assert 0 < best < len(points) - 1
    assert [point.buckets for point in points] == sorted(
        (point.buckets for point in points), reverse=True
    )


def test_the_sizes_are_drawn_with_the_least_and_the_chosen_one() -> None:
    at = press(open_question(LAB, D2), "Show me")
    figure = json.loads(charts(at)[1])
    assert len(figure["data"][0]["x"]) == len(SIZES_MB)
    assert figure["layout"]["shapes"][0]["x0"] == 25

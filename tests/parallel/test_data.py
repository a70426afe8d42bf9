"""Data parallel training: buckets, overlap, what is exposed."""

import pytest

from triosim.parallel.data import Bucket, fill_buckets

QUARTER = 25_560_000  # bytes: a quarter of ResNet-50's 25.56 million fp32 gradients
OVERLAPPING = {"case": 2, "gpus": 8, "resident": True, "bucket_mb": 24}


@pytest.fixture
def four_layers(make_trace):
    """Backward takes 40 ms and gives four equal gradients, at 10, 20, 30 and 40 ms."""
    return make_trace([1000.0] * 4, [10_000.0] * 4, parameter_bytes=QUARTER, optimizer_us=5.0)


def test_a_bucket_closes_with_the_gradient_that_fills_it(make_trace):
    trace = make_trace([1.0] * 5, [1.0] * 5, parameter_bytes=10, optimizer_us=1.0)
    # Backward operators 5 to 9; 20 bytes are reached with every second gradient, the rest is last.
    assert fill_buckets(trace, 20) == [Bucket(20, 6), Bucket(20, 8), Bucket(10, 9)]
    assert fill_buckets(trace, 21) == [Bucket(30, 7), Bucket(20, 9)]
    assert fill_buckets(trace, 1e9) == [Bucket(50, 9)]


def test_only_the_last_bucket_is_exposed_on_a_fast_network(four_layers, simulate_trace):
    result = simulate_trace(four_layers, **OVERLAPPING, ptp_bandwidth_gb_per_s=10)
    assert result.exposed_communication_ms == pytest.approx(2.556)
    assert result.total_ms == pytest.approx(4 + 40 + 2.556 + 0.005)


def test_a_slow_network_falls_behind(four_layers, simulate_trace):
    # 20 ms a bucket: the first starts at 10 ms of backward, the last ends at 90.
    result = simulate_trace(four_layers, **OVERLAPPING, ptp_bandwidth_gb_per_s=1.278)
    assert result.exposed_communication_ms == pytest.approx(50)


def test_one_bucket_has_no_overlap(four_layers, simulate_trace):
    one = simulate_trace(
        four_layers, **(OVERLAPPING | {"bucket_mb": 1000}), ptp_bandwidth_gb_per_s=10
    )
    assert one.exposed_communication_ms == pytest.approx(10.224)
    standard = simulate_trace(four_layers, case=1, gpus=8, resident=True, ptp_bandwidth_gb_per_s=10)
    assert standard.total_ms == pytest.approx(one.total_ms, rel=1e-12)


@pytest.mark.parametrize(("gpus", "ms"), [(8, 2.75), (16, 2.95)])
def test_link_and_algorithm_bandwidth(four_layers, simulate_trace, gpus, ms):
    # 102.24 MB at 65 GB/s: 2(n-1)/n S/B on links of that speed, S/B as nccl-tests' algbw.
    settings = {"case": 1, "gpus": gpus, "resident": True}
    link = simulate_trace(four_layers, **settings, ptp_convention="link")
    assert link.exposed_communication_ms == pytest.approx(ms, abs=0.005)
    algbw = simulate_trace(four_layers, **settings)
    assert algbw.exposed_communication_ms == pytest.approx(102.24 / 65)


def test_latency_is_paid_in_every_step(four_layers, simulate_trace):
    settings = {"case": 1, "gpus": 8, "resident": True}
    more = simulate_trace(four_layers, **settings, latency_us=5).total_ms
    assert more - simulate_trace(four_layers, **settings).total_ms == pytest.approx(14 * 5e-3)


def test_every_rank_sends_its_share(four_layers, simulate_trace):
    result = simulate_trace(four_layers, **OVERLAPPING)
    assert result.communication_bytes == pytest.approx(2 * 7 * 4 * QUARTER)
    reduces = result.timeline.query("phase == 'all-reduce'")
    assert reduces["bytes"].sum() == 4 * QUARTER
    assert result.per_rank[5]["communication_bytes"] == pytest.approx(2 * 7 / 8 * 4 * QUARTER)


@pytest.mark.parametrize("case", [1, 2])
def test_accumulated_batches_run_before_one_reduction(four_layers, simulate_trace, case):
    settings = OVERLAPPING | {"case": case, "ptp_bandwidth_gb_per_s": 10}
    once = simulate_trace(four_layers, **settings)
    thrice = simulate_trace(four_layers, **settings, accumulate=3)
    assert thrice.total_ms == pytest.approx(once.total_ms + 2 * 44)
    assert thrice.communication_bytes == once.communication_bytes
    assert thrice.samples_per_s == pytest.approx(3 * 8 / thrice.total_ms * 1e3)


def test_accumulating_keeps_one_gradient_and_adds_to_it(make_trace, simulate_trace):
    trace = make_trace([1.0] * 2, [1.0] * 2, parameter_bytes=1000, optimizer_us=1.0)
    peaks = [
        simulate_trace(trace, case=1, gpus=1, resident=True, accumulate=k).peak_memory_bytes
        for k in (1, 2, 5)
    ]
    # Two parameters, two gradients, and the one that is being added, with a few activations.
    assert peaks[0] < 4100
    assert 5000 <= peaks[1] < 5100
    assert peaks[2] == peaks[1] + 3 * 4  # every batch's input of 4 bytes is there from the start


def test_a_straggler_holds_everyone_up(four_layers, simulate_trace):
    result = simulate_trace(
        four_layers, case=1, gpus=8, resident=True, rank_speed={3: 0.5}, ptp_bandwidth_gb_per_s=10
    )
    assert result.total_ms == pytest.approx(2 * 44 + 10.224 + 2 * 0.005)
    fast, slow = result.per_rank[0], result.per_rank[3]
    # The fast ones wait 44 ms for the slow one's backward, and are done before its optimizer.
    assert fast["imbalance_ms"] == pytest.approx(44)
    assert fast["idle_ms"] == pytest.approx(0.005)
    assert slow["imbalance_ms"] == 0
    assert result.busiest_compute_ms == pytest.approx(2 * 44.005)
    assert result.speedup == pytest.approx(8 * 44.005 / result.total_ms)


def test_without_parameters_nothing_is_reduced_and_it_is_said(make_trace, simulate_trace):
    trace = make_trace([5.0], [5.0])
    for case in (1, 2):
        result = simulate_trace(trace, case=case, gpus=4, resident=True)
        assert result.communication_bytes == 0
        assert result.total_ms == pytest.approx(0.01)
        assert any("trains no parameters" in warning for warning in result.warnings)


def test_a_trace_of_an_optimizer_alone_has_nothing_to_reduce(make_trace, simulate_trace):
    whole = make_trace([1.0], [1.0], optimizer_us=3.0)
    trace = type(whole)(name="optimizer", operators=whole.operators[-1:], batch_size=1)
    for case in (0, 1, 2, 3):
        assert simulate_trace(trace, case=case, gpus=2, resident=True).total_ms == pytest.approx(
            0.003
        )

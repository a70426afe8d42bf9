"""Step times that vary: against independent draws of every rank, one simulation each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import triosim as ts
from triosim.jitter import MAX_SPEEDS, StepTimes, draw_speeds, on_curve, slowest_factors

MLP = str(Path(__file__).resolve().parents[1] / "sample_trace" / "mlp")


def run(**settings):
    return ts.simulate(ts.Scenario(trace_dir=MLP, **settings))


# The draws


@pytest.mark.parametrize("jitter", [0.02, 0.2, 1.0])
def test_factors_have_mean_1_and_the_standard_deviation_given(jitter):
    speeds = draw_speeds(100_000, {}, jitter, seed=1, most=100_000)
    factors = 1 / np.array([speeds[rank] for rank in range(100_000)])
    # Five standard errors of a sample's mean; the spread of a heavy tail converges more slowly.
    assert factors.mean() == pytest.approx(1, abs=5 * jitter / np.sqrt(100_000))
    assert factors.std() == pytest.approx(jitter, rel=0.1)


def test_no_jitter_leaves_the_speeds_given():
    assert draw_speeds(8, {3: 0.5}, 0.0, seed=7) == {3: 0.5}
    assert set(slowest_factors(8, {3: 0.5}, 0.0, seed=7, steps=10)) == {2.0}
    assert set(slowest_factors(8, {3: 2.0}, 0.0, seed=7, steps=10)) == {1.0}
    assert set(slowest_factors(2, {0: 2.0, 1: 4.0}, 0.0, seed=7, steps=10)) == {0.5}


def test_many_ranks_become_few_speeds_that_keep_the_slowest_and_the_mean():
    every = draw_speeds(4096, {5: 0.5}, 0.1, seed=3, most=4096)
    few = draw_speeds(4096, {5: 0.5}, 0.1, seed=3)
    assert len(set(every.values())) == 4096
    assert len(set(few.values())) == MAX_SPEEDS
    assert min(few.values()) == min(every.values())
    slowness = [np.array([1 / k[rank] for rank in range(4096)]) for k in (every, few)]
    assert slowness[1].sum() == pytest.approx(slowness[0].sum())
    assert np.abs(slowness[1] - slowness[0]).max() < 0.5


@pytest.mark.parametrize(
    ("ranks", "slow"), [(1, {}), (2, {}), (16, {}), (16, {2: 0.8, 3: 0.8, 9: 1.5}), (500, {})]
)
def test_the_slowest_factor_is_distributed_as_the_largest_of_all_draws(ranks, slow):
    jitter, steps = 0.1, 20_000
    random = np.random.default_rng(99)
    sigma = np.sqrt(np.log(1 + jitter**2))
    draws = random.lognormal(-(sigma**2) / 2, sigma, (steps, ranks))
    draws[:, list(slow)] /= list(slow.values())
    want = draws.max(axis=1)
    got = slowest_factors(ranks, slow, jitter, seed=5, steps=steps)
    # Kolmogorov-Smirnov: two samples of one distribution stay below this in 999 of 1,000 cases.
    points = np.sort(np.concatenate((want, got)))
    apart = [np.searchsorted(np.sort(k), points, side="right") / steps for k in (want, got)]
    assert np.abs(apart[0] - apart[1]).max() < 1.95 * np.sqrt(2 / steps)


def test_a_curve_of_a_few_points_is_exact_where_time_is_linear():
    factors = np.random.default_rng(0).uniform(0.5, 3, 1000)
    asked = []

    def step_s(factor):
        asked.append(factor)
        return 5.0 + 2.0 * factor

    assert on_curve(factors, step_s) == pytest.approx(5.0 + 2.0 * factors)
    assert len(asked) <= 7


def test_the_mixture_of_slow_and_usual_steps():
    times = StepTimes.of(np.full(10, 3.0), np.full(10, 1.0), slow_every=4)
    assert times.mean_ms == pytest.approx((3 + 3 * 1) / 4 * 1e3)
    assert (times.p50_ms, times.p95_ms) == (1e3, 3e3)
    assert (times.least_ms, times.most_ms) == (1e3, 3e3)


# Whole steps


def test_without_jitter_every_step_is_the_same():
    result = run(case=2, gpus=8, rank_speed={1: 0.5})
    assert result.step_times is None
    assert run(case=2, gpus=8, rank_speed={1: 0.5}, seed=9).total_ms == result.total_ms


@pytest.mark.parametrize("case", range(5))
def test_the_same_seed_is_the_same_text_and_another_one_is_not(case):
    given = {"case": case, "gpus": 4, "jitter": 0.1, "rank_speed": {1: 0.5}, "slow_every": 3}
    one, again, other = (run(**given, seed=seed).to_json() for seed in (7, 7, 8))
    assert one == again
    assert one != other


@pytest.mark.parametrize("gpus", [1, 2, 6])
@pytest.mark.parametrize("case", [0, 1, 2, 3])
def test_the_distribution_is_that_of_steps_drawn_one_by_one(case, gpus):
    common = {"case": case, "gpus": gpus, "ptp_bandwidth_gb_per_s": 200}
    times = run(**common, jitter=0.2, seed=4).step_times
    random = np.random.default_rng(11)
    sigma = np.sqrt(np.log(1 + 0.2**2))
    # Every rank of every step draws, and the step is simulated with those speeds.
    want = [
        run(
            **common,
            rank_speed=dict(enumerate(1 / random.lognormal(-(sigma**2) / 2, sigma, gpus))),
        ).total_ms
        for _ in range(120)
    ]
    error = np.std(want) / np.sqrt(len(want))
    assert times.mean_ms == pytest.approx(np.mean(want), abs=4 * error)
    # The standard error of a median is 1.25 times that of the mean, of a 95th percentile 2.1 times.
    assert times.p50_ms == pytest.approx(np.median(want), abs=4 * 1.25 * error)
    assert times.p95_ms == pytest.approx(np.quantile(want, 0.95), abs=4 * 2.5 * error)
    assert times.least_ms <= times.p50_ms <= times.p95_ms <= times.most_ms


@pytest.mark.parametrize("case", [1, 4])
@pytest.mark.parametrize("slow_every", [2, 3, 7, 1000])
def test_a_periodic_straggler_is_the_mixture_of_two_steps(case, slow_every):
    common = {"case": case, "gpus": 4}
    slow = run(**common, rank_speed={1: 0.5})
    usual = run(**common)
    result = run(**common, rank_speed={1: 0.5}, slow_every=slow_every)
    want = (slow.total_ms + (slow_every - 1) * usual.total_ms) / slow_every
    assert result.step_times.mean_ms == pytest.approx(want)
    assert result.total_ms == slow.total_ms
    assert result.step_times.most_ms == pytest.approx(slow.total_ms)
    assert result.step_times.least_ms == pytest.approx(usual.total_ms)


@pytest.mark.parametrize("topology", [None, "seminar-h100"])
def test_more_gpus_wait_longer_for_the_slowest(topology):
    p50 = [
        run(
            case=1, gpus=gpus, jitter=0.1, topology=topology, latency_us=0, protocol=False,
            ptp_bandwidth_gb_per_s=1e6, bandwidth_gb_per_s=1e6, overlap_slowdown=0.0,
            algorithm="ring" if topology else None,
        ).step_times.p50_ms
        for gpus in (1, 8, 64, 512)
    ]  # fmt: skip
    assert p50 == sorted(p50)
    assert p50[-1] > 1.2 * p50[0]


def test_pipelines_draw_every_stage():
    times = run(case=4, gpus=4, jitter=0.1, micro_batch_size=16).step_times
    still = run(case=4, gpus=4, micro_batch_size=16).total_ms
    assert times.least_ms < times.p50_ms < times.p95_ms <= times.most_ms
    # The slowest stage decides, so that varying stages take longer on average.
    assert times.mean_ms > still


def test_one_gpu_that_jitters_passes_its_checks():
    result = run(gpus=1, case=1, jitter=0.1, resident=True)
    assert [check for check in result.checks if not check.passed] == []
    assert run(gpus=1, case=1, resident=True).total_ms != result.total_ms


@pytest.mark.parametrize("gpus", [16, 16_384])
def test_many_gpus_stay_few_classes(gpus):
    result = run(case=2, gpus=gpus, jitter=0.05, rank_speed={0: 0.9})
    assert len(result.classes) <= MAX_SPEEDS
    assert sum(len(c.members) for c in result.classes) == gpus
    assert [check for check in result.checks if not check.passed] == []

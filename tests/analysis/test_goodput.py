"""Goodput under failures: published optima, an independent simulation, published training runs."""

import math
import random
import statistics

import pytest
from scipy.optimize import minimize_scalar

from triosim.analysis.goodput import daly_interval_s, goodput, young_interval_s
from triosim.errors import ConfigError, Infeasible

HOUR = 3600.0
# Dubey et al., The Llama 3 Herd of Models, arXiv 2407.21783, section 3.3.4: 419 unexpected
# interruptions in 54 days on 16,384 H100s, "higher than 90% effective training time".
LLAMA = {"work_s": 1.0, "gpus": 16_384, "gpu_mtbf_hours": 54 * 24 * 16_384 / 419}


def job(mtbf_s, **settings):
    """One GPU, so that the job's time between failures is the GPU's."""
    given = {"work_s": 1.0, "gpus": 1, "gpu_mtbf_hours": mtbf_s / HOUR} | settings
    return goodput(**({"restart_s": 0.0} | given))


def parts(found):
    return (found.goodput, found.checkpoint_share, found.rework_share, found.restart_share)


@pytest.mark.parametrize(
    ("mtbf_minutes", "minutes", "within"), [(24 * 60, 117, 0.5), (6 * 60, 57, 0.5), (15, 9.1, 0.05)]
)
def test_daly_prints_these_optima(mtbf_minutes, minutes, within):
    # Daly 2006, figures 3 to 5: checkpoints of 5 minutes.
    assert daly_interval_s(5 * 60, mtbf_minutes * 60) / 60 == pytest.approx(minutes, abs=within)


def test_the_first_order_optimum():
    # sqrt(2 * 5 min * 24 h) = sqrt(14,400) min
    assert young_interval_s(5 * 60, 24 * HOUR) / 60 == pytest.approx(120)
    assert job(24 * HOUR, checkpoint_s=5 * 60).young_s / 60 == pytest.approx(120)


@pytest.mark.parametrize("ratio", [2.0, 2.5, 10.0])
def test_checkpoints_longer_than_two_mtbfs_are_an_mtbf_apart(ratio):
    assert daly_interval_s(ratio * 100.0, 100.0) == 100.0


@pytest.mark.parametrize("checkpoint_s", [1.0, 60.0, 600.0])
def test_the_optimum_is_close_to_the_best_interval_of_all(checkpoint_s):
    found = job(2 * HOUR, checkpoint_s=checkpoint_s, restart_s=300.0)

    def loss(interval_s):
        return -job(
            2 * HOUR, checkpoint_s=checkpoint_s, restart_s=300.0, interval_s=interval_s
        ).goodput

    best = minimize_scalar(loss, bounds=(1.0, 4 * HOUR), method="bounded")
    assert found.interval_s == found.daly_s == pytest.approx(best.x, rel=0.02)
    assert found.goodput == pytest.approx(-best.fun, rel=1e-5)


def simulate_stretch(draw, mtbf_s, interval_s, checkpoint_s, restart_s):
    """Seconds until one stretch of work and its checkpoint are through; (lost, restarting)."""
    lost = restarting = 0.0
    while True:
        failure = draw.expovariate(1 / mtbf_s)
        if failure >= interval_s + checkpoint_s:
            return lost, restarting
        lost += failure
        while (failure := draw.expovariate(1 / mtbf_s)) < restart_s:
            restarting += failure
        restarting += restart_s


@pytest.mark.parametrize(
    ("mtbf_s", "checkpoint_s", "restart_s", "interval_s"),
    [(3 * HOUR, 60.0, 600.0, None), (HOUR, 120.0, 900.0, 1800.0), (600.0, 300.0, 300.0, None)],
)
def test_shares_equal_a_simulation_of_failures(mtbf_s, checkpoint_s, restart_s, interval_s):
    found = job(mtbf_s, checkpoint_s=checkpoint_s, restart_s=restart_s, interval_s=interval_s)
    draw = random.Random(2006)
    count = 40_000
    stretches = [
        simulate_stretch(draw, mtbf_s, found.interval_s, checkpoint_s, restart_s)
        for _ in range(count)
    ]
    per_stretch_s = found.interval_s / found.goodput
    expected_s = (found.rework_share * per_stretch_s, found.restart_share * per_stretch_s)
    for simulated, expected in zip(zip(*stretches, strict=True), expected_s, strict=True):
        error = statistics.stdev(simulated) / math.sqrt(count)
        assert statistics.fmean(simulated) == pytest.approx(expected, abs=4 * error)
    whole = [found.interval_s + checkpoint_s + sum(stretch) for stretch in stretches]
    error = statistics.stdev(whole) / math.sqrt(count)
    assert statistics.fmean(whole) == pytest.approx(per_stretch_s, abs=4 * error)
    assert sum(parts(found)) == pytest.approx(1, rel=1e-12)


def test_wall_time_scales_with_the_work_and_gives_the_failures():
    step = job(3 * HOUR, checkpoint_s=60.0, restart_s=600.0)
    run = job(3 * HOUR, checkpoint_s=60.0, restart_s=600.0, work_s=1e6)
    assert run.wall_s == pytest.approx(1e6 * step.wall_s) == pytest.approx(1e6 / step.goodput)
    assert run.failures == pytest.approx(run.wall_s / (3 * HOUR))


def test_twice_the_gpus_fail_twice_as_often():
    one = goodput(work_s=1, gpus=512, gpu_mtbf_hours=40_000, checkpoint_s=30, restart_s=300)
    two = goodput(work_s=1, gpus=1024, gpu_mtbf_hours=40_000, checkpoint_s=30, restart_s=300)
    assert one.mtbf_s == 2 * two.mtbf_s == pytest.approx(40_000 * HOUR / 512)
    assert two.goodput < one.goodput


def test_hosts_count_as_well_as_gpus():
    # Kokolis et al., arXiv 2410.21680: from 6.50 failures per thousand node-days, nodes of 8 GPUs,
    # they project 1.8 h between failures at 16,384 GPUs and 0.23 h at 131,072.
    hours = {
        gpus: goodput(
            work_s=1,
            gpus=gpus // 8,
            gpu_mtbf_hours=24 * 1000 / 6.5,
            checkpoint_s=10,
            restart_s=60,
        ).mtbf_s
        / HOUR
        for gpus in (16_384, 131_072)
    }
    assert hours[16_384] == pytest.approx(1.8, abs=0.05)
    assert hours[131_072] == pytest.approx(0.23, abs=0.005)


# The checkpoint is at most 4 GB for each GPU, and the storage sustains 2 TB/s (section 3.3.1).
@pytest.mark.parametrize(
    ("checkpoint_s", "restart_s"), [(2.0, 600.0), (10.0, 450.0), (4e9 * 16_384 / 2e12, 240.0)]
)
def test_llama_3_stays_above_ninety_percent(checkpoint_s, restart_s):
    found = goodput(**LLAMA, checkpoint_s=checkpoint_s, restart_s=restart_s)
    assert found.mtbf_s / HOUR == pytest.approx(3.09, abs=0.01)
    assert LLAMA["gpu_mtbf_hours"] == pytest.approx(50_677, abs=1)  # 5.8 years
    assert 0.90 < found.goodput < 0.95
    # Interruptions in 54 days of wall time: as many as were counted.
    assert found.failures / found.wall_s * 54 * 24 * HOUR == pytest.approx(419)


def test_llama_3_could_not_have_saved_every_hour():
    # Half an hour lost every three hours alone is a sixth.
    hourly = goodput(**LLAMA, checkpoint_s=2.0, restart_s=0.0, interval_s=HOUR)
    assert hourly.goodput < 0.90


def test_checkpoints_that_cost_nothing_leave_the_restarts():
    found = job(HOUR, checkpoint_s=0.0, restart_s=360.0)
    assert parts(found) == pytest.approx((math.exp(-0.1), 0, 0, 1 - math.exp(-0.1)))
    assert found.curve == ()
    nearly = job(HOUR, checkpoint_s=1e-9, restart_s=360.0)
    assert parts(nearly) == pytest.approx(parts(found), abs=1e-5)


def test_without_failures_only_checkpoints_cost():
    every_hour = job(math.inf, checkpoint_s=60.0, restart_s=600.0, interval_s=HOUR)
    assert parts(every_hour) == pytest.approx((60 / 61, 1 / 61, 0, 0))
    never = job(math.inf, checkpoint_s=60.0, restart_s=600.0)
    assert parts(never) == (1, 0, 0, 0)
    assert (never.interval_s, never.failures, never.curve) == (math.inf, 0, ())
    rare = job(1e15, checkpoint_s=60.0, restart_s=600.0, interval_s=HOUR)
    assert parts(rare) == pytest.approx(parts(every_hour), abs=1e-9)


def test_the_curve_has_its_top_at_the_optimum():
    found = job(3 * HOUR, checkpoint_s=60.0, restart_s=600.0, interval_s=4 * HOUR)
    intervals, heights = zip(*found.curve, strict=True)
    assert intervals[0] < found.daly_s < found.interval_s < intervals[-1]
    top = heights.index(max(heights))
    assert intervals[top - 1] < found.daly_s < intervals[top + 1]
    assert list(heights[: top + 1]) == sorted(heights[: top + 1])
    assert list(heights[top:]) == sorted(heights[top:], reverse=True)
    k = top + 5
    again = job(3 * HOUR, checkpoint_s=60.0, restart_s=600.0, interval_s=intervals[k])
    assert heights[k] == pytest.approx(again.goodput)


def test_failures_within_a_checkpoint_are_survived_or_refused_with_a_sentence():
    # C = 2 M: checkpoints M apart, stretches of 3 M, so M / (M (e^3 - 1)).
    found = job(60.0, checkpoint_s=120.0)
    assert found.interval_s == 60.0
    assert found.goodput == pytest.approx(1 / math.expm1(3))
    with pytest.raises(Infeasible, match=r"every 1\.00 minutes .* checkpoint takes 20\.00 minutes"):
        job(60.0, checkpoint_s=1200.0)
    with pytest.raises(Infeasible, match="no progress"):
        job(1e-3, checkpoint_s=1200.0, restart_s=1e6, interval_s=1e9)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("work_s", 0.0),
        ("work_s", math.inf),
        ("work_s", 1e300),
        ("work_s", 1e-300),
        ("gpus", 0),
        ("gpus", True),
        ("gpus", 10**10),
        ("gpus", 1.5),
        ("gpu_mtbf_hours", 0.0),
        ("gpu_mtbf_hours", math.nan),
        ("gpu_mtbf_hours", 1e-300),
        ("checkpoint_s", -1.0),
        ("checkpoint_s", math.nan),
        ("restart_s", math.inf),
        ("interval_s", 0.0),
        ("interval_s", math.nan),
    ],
)
def test_values_outside_their_range_are_named(field, value):
    settings = {"work_s": 1.0, "gpus": 8, "gpu_mtbf_hours": 1e4, "checkpoint_s": 1, "restart_s": 1}
    with pytest.raises(ConfigError, match=field):
        goodput(**(settings | {field: value}))

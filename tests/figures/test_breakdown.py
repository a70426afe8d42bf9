"""Where the step goes, as bars."""

from __future__ import annotations

from collections import defaultdict

import pytest

from triosim.figures import CLASS_COLOURS, breakdown_bars

NAMES = ["alone", "distributed", "tensor", "pipeline", "long pipeline", "straggler", "two hosts"]


@pytest.mark.parametrize("name", NAMES)
def test_every_bar_is_as_long_as_the_step(result_of, name):
    result = result_of(name)
    figure = breakdown_bars(result, range(result.scenario.gpus))
    length = defaultdict(float)
    for trace in figure.data:
        for gpu, value in zip(trace.y, trace.x, strict=True):
            length[gpu] += value
    assert list(length.values()) == pytest.approx([result.total_ms] * result.scenario.gpus)


@pytest.mark.parametrize("name", NAMES)
def test_parts_are_the_results_own(result_of, name):
    result = result_of(name)
    ranks = list(range(result.scenario.gpus))
    figure = breakdown_bars(result, ranks)
    for trace in figure.data:
        want = [result.per_rank[rank][f"{trace.meta}_ms"] for rank in ranks]
        assert list(trace.x) == pytest.approx(want)
        assert trace.marker.color == CLASS_COLOURS[trace.meta]
    left_out = set(CLASS_COLOURS) - {trace.meta for trace in figure.data}
    assert all(result.per_rank[r].get(f"{part}_ms", 0) == 0 for part in left_out for r in ranks)


def test_slowed_computing_is_a_part_of_its_own(make_trace, simulate_trace):
    """4 MB at 40 GB/s are all-reduced in 100 us, beside the second 200 us of backward.

    At half speed these 100 us do the work of 50: backward takes 50 us longer.
    """
    result = simulate_trace(
        make_trace([100, 100], [200, 200], parameter_bytes=4_000_000, optimizer_us=10),
        case=2, gpus=2, resident=True, bucket_mb=1e-6, ptp_bandwidth_gb_per_s=40,
        overlap_slowdown=1.0,
    )  # fmt: skip
    values = {trace.name: trace.x[0] for trace in breakdown_bars(result, [0]).data}
    assert values["slowdown"] == pytest.approx(0.05)
    assert values["backward"] == pytest.approx(0.4)


def test_shares_and_durations_are_in_the_hover(make_trace, simulate_trace):
    """100 us forward and 300 us backward: a quarter and three quarters."""
    result = simulate_trace(make_trace([100], [300]), gpus=1, resident=True)
    figure = breakdown_bars(result, [0])
    assert [(t.name, *t.customdata[0]) for t in figure.data] == [
        ("forward", "100 \u00b5s", "25.0 %"),
        ("backward", "300 \u00b5s", "75.0 %"),
    ]


def test_rows_are_limited(result_of):
    figure = breakdown_bars(result_of("huge"), range(1000))
    assert len(figure.data[0].y) == 256
    assert "256 of 1,000 chosen GPUs drawn" in figure.layout.xaxis.title.text

"""Curves of algorithms, two collectives over time, set-up times and goodput."""

from __future__ import annotations

import pytest

from triosim.analysis.goodput import goodput
from triosim.figures.network_lines import goodput_figure, setup_figure, shares_figure
from triosim.figures.network_overlap import Span, Usage, overlap_gantt, usage_figure
from triosim.figures.network_sizes import LOOKS, size_figure
from triosim.network.closed_forms import (
    ring_all_reduce,
    tree_all_reduce,
    tree_beats_ring_below_bytes,
)
from triosim.network.collectives.choose import ALGORITHMS

SIZES = [10.0**k for k in range(3, 11)]


def of(figure, meta):
    return next(trace for trace in figure.data if trace.meta == meta)


def curves(ranks=8, latency_s=5e-6, bytes_per_s=100e9):
    return {
        name: [(s, cost(ranks, s).time_s(bytes_per_s, latency_s)) for s in SIZES]
        for name, cost in (("ring", ring_all_reduce), ("tree", tree_all_reduce))
    }


def test_every_algorithm_has_a_look_of_its_own():
    assert set(LOOKS) == set(ALGORITHMS)
    assert len(set(LOOKS.values())) == len(LOOKS)


def test_times_and_bandwidths_are_those_of_the_closed_form():
    time = size_figure(curves(), best=[(0.0, "tree")])
    at = SIZES.index(1e9)
    # 14 steps of 5 us and 1.75 GB at 100 GB/s.
    assert of(time, "ring").y[at] == pytest.approx(14 * 5e-3 + 17.5)
    busbw = size_figure(curves(latency_s=0.0), quantity="busbw", bus_factor=1.75)
    assert list(of(busbw, "ring").y) == pytest.approx([100.0] * len(SIZES))
    algbw = size_figure(curves(latency_s=0.0), quantity="algbw", bus_factor=1.75)
    assert of(algbw, "ring").y[at] == pytest.approx(57.142857, rel=1e-6)
    assert time.layout.xaxis.type == time.layout.yaxis.type == "log"


def test_the_envelope_and_the_crossover_are_marked():
    turn = tree_beats_ring_below_bytes(8, 100e9, 5e-6)
    figure = size_figure(curves(), best=[(0.0, "tree"), (turn, "ring")], latency_until=2e6)
    fastest = of(figure, "fastest")
    ring, tree = of(figure, "ring"), of(figure, "tree")
    assert list(fastest.y) == [min(a, b) for a, b in zip(ring.y, tree.y, strict=True)]
    mark = of(figure, "crossover")
    assert list(mark.x) == [pytest.approx(turn)]
    assert mark.text[0] == "941 kB"
    labels = [annotation.text for annotation in figure.layout.annotations]
    assert labels == ["\u03b1: latency", "\u03b2: bandwidth"]


def test_a_group_of_one_gets_a_sentence():
    figure = size_figure({"ring": [(s, 0.0) for s in SIZES]})
    assert "Nothing moves" in figure.layout.annotations[0].text


def test_bars_are_where_the_collectives_are():
    spans = [
        Span(which=0, row="alone: first", start_s=0.0, end_s=0.004),
        Span(which=1, row="together: second", start_s=0.001, end_s=0.006),
    ]
    figure = overlap_gantt(("first", "second"), spans)
    assert [list(trace.base) for trace in figure.data] == [[0.0], [1.0]]
    assert [list(trace.x) for trace in figure.data] == [[4.0], [5.0]]
    assert list(figure.layout.yaxis.categoryarray) == ["alone: first", "together: second"]


def test_usage_is_a_stair_of_each_collective():
    link = Usage(
        name="GPU 0 to <b>leaf</b>",
        bytes_per_s=50e9,
        steps=[(0.0, 1e-3, (50e9, 0.0)), (1e-3, 3e-3, (25e9, 25e9))],
    )
    figure = usage_figure(("first", "second"), [link])
    first, second = figure.data
    assert list(first.x) == pytest.approx([0.0, 1.0, 3.0])
    assert list(first.y) == [50.0, 25.0, 0.0]
    assert list(second.y) == [0.0, 25.0, 0.0]
    assert {trace.line.shape for trace in figure.data} == {"hv"}
    assert "&lt;b&gt;" in figure.layout.annotations[0].text
    assert usage_figure(("a", "b"), []).data == ()


def test_the_break_even_is_where_the_lines_meet():
    figure = setup_figure([(0, 8), (2, 10), (4, 12)], 10.0, here_ms=1.0, break_even_ms=2.0)
    mark = of(figure, "break-even")
    assert (mark.x[0], mark.y[0]) == (2.0, 10.0)
    without = setup_figure([(0, 12), (4, 16)], 10.0, here_ms=1.0, break_even_ms=None)
    assert "break-even" not in [trace.meta for trace in without.data]


def test_goodput_has_its_intervals_and_shares_sum_to_the_whole():
    found = goodput(work_s=1e6, gpus=16_384, gpu_mtbf_hours=5e4, checkpoint_s=30, restart_s=600)
    figure = goodput_figure(found.curve, {"chosen": found.interval_s, "Young": found.young_s})
    assert list(of(figure, "Young").x) == pytest.approx([found.young_s / 60] * 2)
    # sqrt(2 C M) with C = 30 s and M = 50,000 h / 16,384
    assert found.young_s == pytest.approx((2 * 30 * 5e4 * 3600 / 16_384) ** 0.5)
    bars = shares_figure(
        {
            "useful_work": found.goodput,
            "checkpoints": found.checkpoint_share,
            "work_done_again": found.rework_share,
            "restarts": found.restart_share,
        }
    )
    assert sum(trace.x[0] for trace in bars.data) == pytest.approx(100)
    assert "No interval" in goodput_figure((), {}).layout.annotations[0].text

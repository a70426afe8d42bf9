"""A measured run of several ranks beside its prediction."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from tracer.convert.lanes import read_measured
from triosim import Scenario, overlay, simulate, write_trace
from triosim.cli import main
from triosim.errors import TraceFormatError
from triosim.figures import overlay_figure
from triosim.overlay import union

# Two processes of a small DDP model over gloo on one CPU, one step each, recorded for this test.
RECORDED = sorted(Path(__file__).parent.glob("ddp_rank*.json.gz"))


def profiler_file(rank, kernels, *, clock_us=0.0, host="", world=2):
    """A file of one rank with kernels (name, stream, start, duration) on a clock of its own."""
    events = [
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#7", "pid": 1, "tid": 1,
         "ts": clock_us, "dur": 5000.0},
    ]  # fmt: skip
    for number, (name, stream, start_us, length_us) in enumerate(kernels, 1):
        common = {"ph": "X", "args": {"correlation": number, "stream": stream}}
        launch = {**common, "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1}
        events.append({**launch, "ts": clock_us + number, "dur": 0.5})
        kernel = {**common, "cat": "kernel", "name": name, "pid": 0, "tid": stream}
        events.append({**kernel, "ts": clock_us + start_us, "dur": length_us})
    info = {"backend": "nccl", "rank": rank, "world_size": world}
    header = {"distributedInfo": info, "host_name": host}
    return json.dumps({**header, "traceEvents": events}).encode()


ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"
# Rank 1 computes 300 us longer, so rank 0 waits inside the first all-reduce.
LAST = [(ALL_REDUCE, 20, 1000, 50)]
RANKS = (
    [("a", 7, 100, 400), (ALL_REDUCE, 20, 500, 500), ("b", 7, 600, 100), *LAST],
    [("a", 7, 100, 700), (ALL_REDUCE, 20, 800, 200), ("b", 7, 900, 100), *LAST],
)


@pytest.fixture(scope="module")
def prediction(tmp_path_factory, make_trace):
    """Forward 100, backward 300, optimizer 100 us; 10^6 bytes at 10 GB/s between two GPUs."""
    folder = tmp_path_factory.mktemp("trace")
    trace = make_trace([100.0], [300.0], parameter_bytes=1_000_000, optimizer_us=100.0)
    write_trace(trace, folder)
    return simulate(
        Scenario(trace_dir=str(folder), case=1, gpus=2, resident=True, ptp_bandwidth_gb_per_s=10)
    )


@pytest.fixture(scope="module")
def both(prediction):
    skewed = [profiler_file(rank, RANKS[rank], clock_us=rank * 123_456.0) for rank in (1, 0)]
    return overlay(prediction, read_measured(skewed))


def lanes(found, rank):
    rows = found.frame[found.frame["rank"] == rank].set_index("lane")
    return {lane: tuple(row) for lane, row in rows.drop(columns="rank").iterrows()}


def test_lanes_by_hand(both):
    """In milliseconds; predicted: 0.5 of computing and an all-reduce of 1e6 / 10e9 s = 0.1 ms."""
    own = lanes(both, 0)
    # Rank 0 joins at 500 and rank 1 at 800: the first all-reduce counts from 800 to 1000 on both.
    assert own["compute"] == pytest.approx((0.5, 0.5, 0.0), abs=1e-9)
    assert own["communication"] == pytest.approx((0.25, 0.1, 0.1 / 0.25 - 1))
    assert own["exposed communication"] == pytest.approx((0.25, 0.1, 0.1 / 0.25 - 1))
    assert own["step"] == pytest.approx((0.95, 0.6, 0.6 / 0.95 - 1))
    other = lanes(both, 1)
    assert other["compute"][0] == pytest.approx(0.8)
    assert other["exposed communication"][0] == pytest.approx(0.15)  # 100 us beside kernel b
    assert both.measured_ms == pytest.approx(0.95)
    assert both.error == pytest.approx(0.6 / 0.95 - 1)


def test_clocks_are_aligned_by_the_ends_of_collectives(both):
    assert "2 collectives" in both.measured.clock
    own = both.spans[(both.spans["source"] == "measured") & (both.spans["lane"] == "communication")]
    ends = own.groupby("rank")["end_ms"].apply(sorted)
    assert ends[0] == pytest.approx(ends[1], abs=1e-9)


def test_the_clock_of_one_host_is_left_alone(prediction):
    later = [profiler_file(r, RANKS[r], clock_us=r * 50.0, host="node-3") for r in (0, 1)]
    measured = read_measured(later)
    assert "one host" in measured.clock
    first = [rank.spans[0].start_s for rank in measured.ranks]
    assert first == pytest.approx([0.0, 50e-6])


def test_ranks_that_ran_different_collectives_are_not_aligned(prediction):
    files = [profiler_file(0, RANKS[0]), profiler_file(1, RANKS[1][:3], clock_us=9e6)]
    assert "not known" in read_measured(files).clock


def test_a_recorded_ddp_run(prediction):
    measured = read_measured(RECORDED)
    assert [one.rank for one in measured.ranks] == [0, 1]
    found = overlay(prediction, measured)
    for one in measured.ranks:
        own = [span for span in one.spans if span.lane == "communication"]
        assert [span.name for span in own] == ["gloo:all_reduce"] * 2
        rows = lanes(found, one.rank)
        # Nothing is counted twice: lanes fit into the step.
        assert 0 < rows["compute"][0] <= rows["step"][0]
        assert rows["compute"][0] + rows["exposed communication"][0] <= rows["step"][0] + 1e-9
        for _, measured_ms, predicted_ms, error in rows_of(found, one.rank):
            assert predicted_ms == pytest.approx(measured_ms * (1 + error))


def rows_of(found, rank):
    return [(lane, *values) for lane, values in lanes(found, rank).items()]


def test_the_figure_draws_what_the_frame_says(both):
    figure = overlay_figure(both)
    drawn = {}
    for bar in figure.data:
        for row, width in zip(bar.y, bar.x, strict=True):
            drawn[row] = drawn.get(row, 0.0) + width
    for row in both.frame.itertuples():
        if row.lane in ("compute", "communication"):
            for source in ("measured", "predicted"):
                label = f"GPU {row.rank} \u00b7 {row.lane}, {source}"
                assert drawn[label] == pytest.approx(getattr(row, f"{source}_ms"), abs=2e-3)
    assert [note.text for note in figure.layout.annotations][:2] == ["+0.0%", "-60.0%"]


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ([profiler_file(5, RANKS[0])], "rank 5.*ranks 0 to 1"),
        ([profiler_file(0, RANKS[0])] * 2, "both are of rank 0"),
        ([profiler_file(0, [])], "nothing computes"),
        ([], "0 files"),
    ],
)
def test_what_cannot_be_laid_over(prediction, files, problem):
    with pytest.raises(TraceFormatError, match=problem):
        overlay(prediction, read_measured(files))


def test_the_command(capsys, tmp_path, prediction):
    saved = tmp_path / "scenario.json"
    saved.write_text(prediction.scenario.to_json())
    assert main(["overlay", str(saved), *map(str, RECORDED), "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["predicted_ms"] == pytest.approx(0.6)
    assert len(told["lanes"]) == 8
    assert main(["overlay", str(saved), *map(str, RECORDED)]) == 0
    assert "GPU 1   communication" in capsys.readouterr().out
    assert main(["overlay", str(saved), str(RECORDED[0]), "--step", "4"]) == 1
    assert "step 4" in capsys.readouterr().err


def test_union_against_a_raster():
    rng = np.random.default_rng(1)
    starts = rng.integers(0, 200, 60)
    intervals = np.stack((starts, starts + rng.integers(0, 9, 60)), axis=1).astype(float)
    cells = {c for a, b in intervals.astype(int).tolist() for c in range(a, b)}
    merged = union(intervals)
    assert (merged[:, 1] - merged[:, 0]).sum() == len(cells)
    assert (merged[1:, 0] > merged[:-1, 1]).all()
    assert math.isclose(len(union(np.zeros((0, 2)))), 0)

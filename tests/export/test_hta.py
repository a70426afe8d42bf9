"""One file a rank for Holistic Trace Analysis, and what that reads in them."""

from __future__ import annotations

import json
import logging
from itertools import pairwise

import numpy as np
import pytest

from triosim import Scenario, TrainScenario, simulate, train, write_hta
from triosim.cli import main
from triosim.export.hta import hta_traces
from triosim.export.spans import spans_of

DDP = Scenario(case=2, gpus=4)
PIPELINE = Scenario(case=4, gpus=3, resident=True)
# Slowed by its own communication, with transfers inside layers.
SHARDED = TrainScenario(model="llama3-8b", layers=1, gpus=8, tp=2)


@pytest.fixture(scope="module", params=[DDP, PIPELINE, SHARDED], ids=["ddp", "pipeline", "train"])
def result(request):
    run = train if isinstance(request.param, TrainScenario) else simulate
    return run(request.param)


def mask(spans, computes, cells):
    """Which nanoseconds x 100 of the step lie in spans that compute, or in the others."""
    found = np.zeros(cells, dtype=bool)
    for span in spans:
        if span.computes == computes:
            found[round(span.start_s * 1e7) : round(span.end_s * 1e7)] = True
    return found


def test_spans_say_what_the_breakdown_says(result):
    """Composite tasks are opened: what their kernels take is what the breakdown counts."""
    for c, breakdown in enumerate(result.breakdowns):
        spans = spans_of(result, c)
        compute = mask(spans, True, round(result.tasks.total_s * 1e7)).sum() * 1e-7
        assert compute == pytest.approx(breakdown.classes_s["compute"], abs=1e-7 * len(spans))
        kernels = sorted((s.start_s, s.end_s) for s in spans if s.computes)
        assert all(b[0] >= a[1] - 1e-12 for a, b in pairwise(kernels))


def test_the_files(result):
    files = dict(hta_traces(result))
    assert list(files) == [f"rank_{rank}.json" for rank in range(result.scenario.gpus)]
    for rank, text in enumerate(files.values()):
        trace = json.loads(text)
        assert trace["distributedInfo"]["rank"] == rank
        kernels = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        assert len(kernels) == len(spans_of(result, result.class_of(rank)))
        for event in kernels:
            assert event["cat"] in ("kernel", "gpu_memcpy")
            assert type(event["args"]["stream"]) is int
            assert type(event["ts"]) is type(event["dur"]) is int
        correlations = [e["args"]["correlation"] for e in kernels]
        assert len(set(correlations)) == len(kernels)


@pytest.mark.filterwarnings("ignore")  # the library's own, of pandas
def test_holistic_trace_analysis_finds_our_split(result, tmp_path):
    """Compute, what is not under it, and idle, to a microsecond a span."""
    pytest.importorskip("hta", reason="traceinsight is not installed")
    logging.disable(logging.CRITICAL)
    try:
        from hta.analyzers.breakdown_analysis import BreakdownAnalysis
        from hta.analyzers.communication_analysis import CommunicationAnalysis
        from hta.common.trace import Trace

        write_hta(result, tmp_path)
        traces = Trace(trace_dir=str(tmp_path))
        traces.load_traces(use_multiprocessing=False, use_memory_profiling=False)
        split = BreakdownAnalysis.get_temporal_breakdown(traces, visualize=False)
        overlap = CommunicationAnalysis.get_comm_comp_overlap(traces, visualize=False)
    finally:
        logging.disable(logging.NOTSET)
    split, overlap = split.set_index("rank"), overlap.set_index("rank")
    assert sorted(split.index) == list(range(result.scenario.gpus))
    for rank in split.index:
        c = result.class_of(rank)
        spans = spans_of(result, c)
        close = {"abs": 1e-6 * len(spans)}
        cells = round(result.tasks.total_s * 1e7)
        compute, other = mask(spans, True, cells), mask(spans, False, cells)
        # It counts from the first kernel to the last.
        whole_s = max(s.end_s for s in spans) - min(s.start_s for s in spans)
        exposed_s = (other & ~compute).sum() * 1e-7
        found_s = split.loc[rank] * 1e-6
        assert found_s["kernel_time(us)"] == pytest.approx(whole_s, **close)
        assert found_s["compute_time(us)"] == pytest.approx(compute.sum() * 1e-7, **close)
        assert found_s["non_compute_time(us)"] == pytest.approx(exposed_s, **close)
        idle_s = whole_s - compute.sum() * 1e-7 - exposed_s
        assert found_s["idle_time(us)"] == pytest.approx(idle_s, **close)
        if result.scenario is not PIPELINE:  # there transfers also move while nobody waits for them
            ours = result.breakdowns[c].classes_s
            assert found_s["compute_time(us)"] == pytest.approx(ours["compute"], **close)
            assert found_s["non_compute_time(us)"] == pytest.approx(
                ours["exposed_communication"], **close
            )
        transfers = [s for s in spans if not s.computes and s.phase not in ("fetch", "store")]
        moving = mask(transfers, False, cells)
        share = (moving & compute).sum() / moving.sum()
        told = overlap.loc[rank, "comp_comm_overlap_pctg"] / 100
        assert told == pytest.approx(share, abs=1e-6 * len(spans) / (moving.sum() * 1e-7))


def test_names_that_would_be_misread(make_trace, simulate_trace):
    trace = make_trace([1.0], [1.0])
    object.__setattr__(trace.operators[0], "name", "aten::index_add_masked (dma)")
    text = dict(hta_traces(simulate_trace(trace, gpus=1)))["rank_0.json"]
    names = {e["name"] for e in json.loads(text)["traceEvents"] if e["ph"] == "X"}
    assert "forward kernel" in names


@pytest.mark.parametrize(
    "words",
    [["-case", "2", "-GPUnumber", "2"], ["train", "--layers", "1", "--gpus", "2"]],
    ids=["simulate", "train"],
)
def test_the_commands(words, tmp_path, capsys):
    for _ in range(2):
        assert main([*words, "--hta", str(tmp_path / "a")]) == 0
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["rank_0.json", "rank_1.json"]
    capsys.readouterr()
    assert main([*words, "--chakra", str(tmp_path / "a")]) == 2
    assert "--chakra" in capsys.readouterr().err

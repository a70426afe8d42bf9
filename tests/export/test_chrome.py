"""The timeline for Perfetto and chrome://tracing."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from itertools import pairwise

import pytest

from triosim import Scenario, simulate
from triosim.export import chrome
from triosim.export.chrome import chrome_trace, written_ranks

PIPELINE = Scenario(case=4, gpus=3, micro_batch_size=2)
SLOW = Scenario(case=2, gpus=8, rank_speed={3: 0.5})


def events(result):
    """Events of the trace by kind."""
    found = defaultdict(list)
    for event in json.loads(chrome_trace(result))["traceEvents"]:
        found[event["ph"]].append(event)
    return found


def everyone(result):
    return result.expand(range(result.scenario.gpus))


@pytest.fixture(scope="module", params=[PIPELINE, SLOW], ids=["pipeline", "one slow rank"])
def result(request):
    return simulate(request.param)


def test_header(result):
    trace = json.loads(chrome_trace(result))
    assert trace["displayTimeUnit"] == "ms"
    assert Scenario.from_dict(trace["otherData"]["scenario"]) == result.scenario


def test_a_complete_event_per_task_in_microseconds(result):
    spans = events(result)["X"]
    written = Counter(
        (e["pid"] - 1, e["name"], e["cat"], round(e["ts"], 3), round(e["ts"] + e["dur"], 3))
        for e in spans
    )
    tasks = Counter(
        (row.rank, row.name, row.phase, round(row.start_ms * 1e3, 3), round(row.end_ms * 1e3, 3))
        for row in everyone(result).itertuples()
    )
    assert written == tasks
    assert min(e["dur"] for e in spans) >= 0
    assert max(e["ts"] + e["dur"] for e in spans) == pytest.approx(result.total_ms * 1e3, abs=1e-3)


def test_bytes_and_causes(result):
    spans = events(result)["X"]
    moved = everyone(result).query("bytes > 0")["bytes"]
    assert sorted(e["args"]["bytes"] for e in spans if e["args"].get("bytes")) == sorted(moved)
    causes = Counter(e["args"]["waited_for"] for e in spans)
    assert causes == Counter(everyone(result)["waited_for"])


def test_spans_of_one_thread_do_not_overlap(result):
    threads = defaultdict(list)
    for event in events(result)["X"]:
        threads[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for spans in threads.values():
        spans.sort()
        for (_, end), (start, _) in pairwise(spans):
            assert end <= start + 1e-6


def test_every_process_and_thread_has_a_name(result):
    found = events(result)
    named = [e for e in found["M"] if "name" in e["args"]]
    names = {(e["name"], e["pid"], e["tid"]): e["args"]["name"] for e in named}
    assert len(names) == len(named)
    streams = everyone(result).groupby("rank")["stream"].unique()
    for event in found["X"]:
        rank = event["pid"] - 1
        assert names["process_name", event["pid"], 0] == f"GPU {rank}"
        assert names["thread_name", event["pid"], event["tid"]] in streams[rank]


def test_too_many_spans_are_one_rank_of_each_class(monkeypatch):
    """Its process says how many it stands for."""
    result = simulate(SLOW)
    spans = len(everyone(result))
    for most, expected in ((spans, 8), (spans - 1, 2)):
        assert len(written_ranks(result, most)) == expected
    monkeypatch.setattr(chrome.written_ranks, "__defaults__", (spans - 1,))
    names = [e["args"]["name"] for e in events(result)["M"] if e["name"] == "process_name"]
    assert sorted(names) == ["GPU 0 (and 6 identical)", "GPU 3"]


def test_counters_are_the_memory_in_use(result):
    counters = events(result)["C"]
    assert {e["pid"] - 1 for e in counters} == set(range(result.scenario.gpus))
    peak = max(sum(e["args"].values()) for e in counters)
    assert peak == result.peak_memory_bytes
    for event in counters:
        assert min(event["args"].values()) >= 0
        assert 0 <= event["ts"] <= result.total_ms * 1e3 * (1 + 1e-12)


def test_flows_join_the_two_ends_of_a_send():
    found = events(simulate(PIPELINE))
    starts = {e["id"]: e for e in found["s"]}
    finishes = {e["id"]: e for e in found["f"]}
    assert starts.keys() == finishes.keys()
    assert len(starts) == len(found["s"]) == len(found["f"])
    # Batch 8 in micro-batches of 2: four go over each of two cuts, forth and back.
    assert len(starts) == 4 * 2 * 2
    spans = {(e["pid"], e["tid"], e["ts"]): e for e in found["X"]}
    for number, start in starts.items():
        finish = finishes[number]
        assert abs(start["pid"] - finish["pid"]) == 1
        sent = spans[start["pid"], start["tid"], start["ts"]]
        received = spans[finish["pid"], finish["tid"], finish["ts"]]
        assert (sent["cat"], received["cat"]) == ("send", "recv")
        assert sent["args"]["bytes"] == received["args"]["bytes"]


def test_no_flows_without_sends():
    found = events(simulate(SLOW))
    assert not found["s"]
    assert not found["f"]


def test_names_that_json_must_escape(tmp_path, make_trace):
    from triosim import write_trace

    trace = make_trace([1.0], [1.0])
    name = '"\\\n\u00e9\u2028</script>'
    object.__setattr__(trace.operators[0], "name", name)
    write_trace(trace, tmp_path)
    found = events(simulate(Scenario(trace_dir=str(tmp_path), gpus=1)))
    assert name in {event["name"] for event in found["X"]}

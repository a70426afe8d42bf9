"""What holds for every schedule, any number of stages and micro-batches, and uneven stages."""

from collections import Counter, defaultdict
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.schedules.strategies import CHUNKED, TIMES, runs, settings
from triosim.pipelines import pipeline
from triosim.schedules import SCHEDULES, check_complete, make_schedule

SPLIT = ("zb-h1", "zb-h2", "zb-v", "dualpipe")
WHOLE = tuple(name for name in SCHEDULES if name not in SPLIT)
counts = st.integers(1, 7)


def passes(result):
    """(kind, stage, chunk, micro-batch) -> (start, end), pairs taken apart."""
    found = {}
    for row in result.timeline.itertuples():
        parts = [(row.kind[0], row.chunk, row.microbatch)]
        if row.kind == "F&B":
            parts.append(("B", row.backward_chunk, row.backward_microbatch))
        for kind, chunk, microbatch in parts:
            key = (kind, row.stage, chunk, microbatch)
            assert key not in found
            found[key] = (row.start, row.end)
    return found


@given(runs())
def test_every_micro_batch_passes_every_stage_once_each_way(keywords):
    result = pipeline(**keywords)
    found, m = passes(result), keywords["microbatches"]
    check_complete(result.schedule)
    count = Counter(kind for kind, *_ in found)
    assert count["F"] == count["B"] == m * result.schedule.virtual_stages
    for (kind, *place), (start, _) in found.items():
        before = {"B": "F", "W": "B"}.get(kind)
        if before is not None:
            assert found[(before, *place)][1] <= start


@given(runs())
def test_a_stage_does_one_thing_at_a_time(keywords):
    result = pipeline(**keywords)
    for _, rows in result.timeline.groupby("stage"):
        assert (rows["start"].to_numpy()[1:] >= rows["end"].to_numpy()[:-1]).all()
    busy = result.timeline.assign(time=result.timeline["end"] - result.timeline["start"])
    assert busy.groupby("stage")["time"].sum().tolist() == pytest.approx(result.timing.busy)
    assert min(result.idle) >= -1e-12


@given(runs())
def test_micro_batches_move_from_stage_to_stage_and_back(keywords):
    """Forwards along the route, backwards the other way, each after its hop."""
    result = pipeline(**keywords)
    found, p, hop = passes(result), keywords["stages"], keywords["transfer"]
    for microbatch in range(keywords["microbatches"]):
        route = result.schedule.route(microbatch)
        for here, there in pairwise(route):
            between = {here.stage, there.stage}
            if len(between) == 1:
                delay = 0.0
            elif abs(here.stage - there.stage) == 1 and here.chunk == there.chunk:
                delay = hop[min(between)]
            else:
                assert between == {0, p - 1}
                delay = hop[p - 1]
            down = found["F", *here, microbatch][1], found["F", *there, microbatch][0]
            up = found["B", *there, microbatch][1], found["B", *here, microbatch][0]
            assert down[0] + delay <= down[1] + 1e-9
            assert up[0] + delay <= up[1] + 1e-9


def test_where_the_chunks_are():
    """Loops run on, the V and the second direction come back."""
    stages = {
        name: [[place.stage for place in route] for route in make_schedule(name, 4, 8, v).routes]
        for name, v in (("interleaved", 2), ("zb-v", 2), ("dualpipe", 2), ("1f1b", 1))
    }
    assert stages["interleaved"] == [[0, 1, 2, 3, 0, 1, 2, 3]]
    assert stages["zb-v"] == [[0, 1, 2, 3, 3, 2, 1, 0]]
    assert stages["dualpipe"] == [[0, 1, 2, 3], [3, 2, 1, 0]]
    assert stages["1f1b"] == [[0, 1, 2, 3]]


@given(runs())
def test_nothing_is_faster_than_its_critical_paths(keywords):
    """P4: the busiest stage, and one micro-batch through all stages and back."""
    result = pipeline(**keywords)
    forward, backward, weight = (keywords[k] for k in ("forward", "backward", "weight"))
    m, whole = keywords["microbatches"], [f + b for f, b in zip(forward, backward, strict=True)]
    if keywords["schedule"] == "dualpipe":
        stages = [(a + b) / 2 for a, b in zip(whole, whole[::-1], strict=True)]
    else:
        stages = whole
    assert result.ideal == pytest.approx(m * max(stages))
    assert result.period >= m * max(stages) - 1e-9
    assert result.makespan >= result.period - 1e-9
    through = sum(whole)
    if keywords["schedule"] in SPLIT:  # weight parts are off the path
        through -= sum(weight)
    assert result.makespan >= through - 1e-9


@given(runs(WHOLE), st.integers(2, 5))
def test_twice_the_times_take_twice_as_long(keywords, factor):
    scaled = {
        name: [factor * t for t in keywords[name]]
        for name in ("forward", "backward", "weight", "transfer")
    }
    assert pipeline(**{**keywords, **scaled}).makespan == pytest.approx(
        factor * pipeline(**keywords).makespan
    )


@given(runs(), st.sampled_from(["forward", "backward", "transfer"]))
def test_slower_parts_never_help(keywords, name):
    """A static order: no task can start earlier because another one takes longer."""
    slower = {**keywords, name: [t + 1 for t in keywords[name]]}
    assert pipeline(**slower).makespan >= pipeline(**keywords).makespan - 1e-9


@given(settings())
def test_one_stage_has_no_bubble(keywords):
    # DualPipe needs two stages, which it feeds from both ends.
    stages = 2 if keywords["schedule"] == "dualpipe" else 1
    result = pipeline(**{**keywords, "stages": stages})
    assert result.bubble_of_total == pytest.approx(0)
    assert result.makespan == pytest.approx(3 * keywords["microbatches"])
    assert result.period == pytest.approx(result.makespan)


@given(counts, st.integers(1, 20), TIMES, TIMES)
def test_gpipe_and_1f1b_take_the_same_time_with_different_memory(p, m, forward, backward):
    times = {"stages": p, "microbatches": m, "forward": forward + 0.125, "backward": backward}
    gpipe, alternating = pipeline("gpipe", **times), pipeline("1f1b", **times)
    expected = (m + p - 1) * (forward + 0.125 + backward)
    assert gpipe.makespan == pytest.approx(expected)
    assert alternating.makespan == pytest.approx(expected)
    assert gpipe.peak_in_flight == (m,) * p
    assert alternating.peak_in_flight == tuple(min(m, p - i) for i in range(p))


@given(counts, st.integers(1, 4), st.integers(1, 4), TIMES, TIMES)
def test_interleaved(p, groups, v, forward, backward):
    m, forward = groups * p, forward + 0.125
    result = pipeline(
        "interleaved", stages=p, microbatches=m, chunks=v, forward=forward, backward=backward
    )
    expected = m * (forward + backward) + (p - 1) * (forward + backward) / v
    assert result.makespan == pytest.approx(expected)
    assert result.peak_in_flight[0] == pytest.approx(min(m, p * (1 + (p - 1) / (p * v))))


@given(counts, st.integers(0, 9), st.integers(1, 4), TIMES, TIMES)
def test_looped_breadth_first(p, more, v, forward, backward):
    m, forward = p + more, forward + 0.125
    result = pipeline(
        "looped-bfs", stages=p, microbatches=m, chunks=v, forward=forward, backward=backward
    )
    expected = m * (forward + backward) + (p - 1) * (forward + backward) / v
    assert result.makespan == pytest.approx(expected)
    assert result.peak_in_flight == (m,) * p


@given(counts, st.integers(0, 12), TIMES, TIMES, TIMES)
def test_zb_h1(p, more, forward, inputs, weight):
    m = p + more
    forward, inputs = weight + forward + 0.125, weight + inputs  # W <= min(F, B - W)
    backward = inputs + weight
    times = {"forward": forward, "backward": backward, "weight": weight}
    result = pipeline("zb-h1", stages=p, microbatches=m, **times)
    bubble = (p - 1) * (forward + backward - 2 * weight)
    assert result.makespan == pytest.approx(m * (forward + backward) + bubble)
    assert result.peak_in_flight == (p,) * p


@given(counts, st.integers(0, 12), st.integers(1, 64))
def test_zb_h2_and_zb_v_without_bubble(p, more, unit):
    m = 2 * p - 1 + more
    times = {"stages": p, "microbatches": m, "forward": unit, "backward": 2 * unit, "weight": unit}
    high, shaped = pipeline("zb-h2", **times), pipeline("zb-v", **times)
    assert high.period == shaped.period == 3 * unit * m
    assert high.makespan == 3 * unit * m + (p - 1) * unit
    assert shaped.makespan >= 3 * unit * m + (p - 1) * unit / 2
    assert high.peak_in_flight[0] == 2 * p - 1
    assert shaped.peak_in_flight == (p,) * p


@given(st.integers(1, 5), st.integers(0, 6), TIMES, TIMES)
def test_dualpipe(half, more, unit, weight):
    """The published bubble, for a forward as long as a backward's input part or its weights."""
    p, m = 2 * half, 4 * half + 2 * more
    forward = max(unit, weight) + 0.125
    backward = forward + weight
    result = pipeline(
        "dualpipe", stages=p, microbatches=m, forward=forward, backward=backward, weight=weight
    )
    pair = forward + backward
    bubble = (p / 2 - 1) * (pair + backward - 3 * weight)
    assert result.period == pytest.approx(m * pair + bubble)
    assert result.peak_in_flight == (p + 1,) * p


@given(runs(("1f1b", "gpipe")))
def test_the_slowest_stage_sets_the_pace(keywords):
    """P4: with m large, one more micro-batch costs what the slowest stage takes for it.

    How large depends on how much slower it is: the others' lead at the beginning has to be used up.
    """
    forward, backward = keywords["forward"], keywords["backward"]
    if keywords["schedule"] == "gpipe":  # the two directions have their own slowest stages
        paces = [forward, backward]
    else:
        paces = [[f + b for f, b in zip(forward, backward, strict=True)]]
    assume(all(t == max(pace) or t <= 0.75 * max(pace) for pace in paces for t in pace))
    slowest = sum(map(max, paces))
    few, many = (
        pipeline(**{**keywords, "microbatches": m, "transfer": 0.0}).makespan for m in (60, 80)
    )
    assert (many - few) / 20 == pytest.approx(slowest)


@given(settings(CHUNKED))
def test_interleaving_sends_more_often(keywords):
    """P5: every boundary of virtual stages is a hop, each way."""
    p, v = keywords["stages"], keywords["chunks"]
    schedule = make_schedule(keywords["schedule"], p, keywords["microbatches"], v)
    assert schedule.sends == (2 * (p * v - 1) if p > 1 else 0)


def test_zb_v_turns_round_without_a_hop():
    assert make_schedule("zb-v", 4, 8).sends == 2 * (7 - 1)
    assert make_schedule("dualpipe", 4, 8).sends == make_schedule("1f1b", 4, 8).sends == 2 * 3


def test_the_order_decides_what_is_in_flight():
    """Counted again from the timeline: a forward's start to its backward's end."""
    for name, chunks in (("interleaved", 3), ("zb-h2", 1), ("zb-v", 1), ("dualpipe", 1)):
        result = pipeline(name, stages=4, microbatches=8, chunks=chunks)
        ends = defaultdict(float)
        found = passes(result)
        for (kind, *place), (_, end) in found.items():
            if kind in "BW":
                ends[tuple(place)] = max(ends[tuple(place)], end)
        share = 4 / result.schedule.virtual_stages
        for stage in range(4):
            held = [
                (start, ends[tuple(place)])
                for (kind, *place), (start, _) in found.items()
                if kind == "F" and place[0] == stage
            ]
            most = max(sum(a <= start < b for a, b in held) for start, _ in held)
            assert result.peak_in_flight[stage] == pytest.approx(share * most)

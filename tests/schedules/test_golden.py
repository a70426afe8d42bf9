"""The reference totals (F = 1, B = 2, W = 1) and the published bubble rates."""

import csv

import pytest

from triosim.pipelines import pipeline

MAKESPANS = [  # schedule, chunks, stages, micro-batches, makespan
    ("gpipe", 1, 4, 8, 33),
    ("1f1b", 1, 4, 8, 33),
    ("1f1b", 1, 4, 4, 21),
    ("1f1b", 1, 8, 8, 45),
    ("1f1b", 1, 8, 20, 81),
    ("1f1b", 1, 1, 4, 12),
    ("1f1b", 1, 4, 2, 15),
    ("interleaved", 2, 4, 8, 28.5),
    ("interleaved", 2, 4, 4, 16.5),
    ("interleaved", 2, 8, 8, 34.5),
    ("interleaved", 2, 1, 4, 12),
    ("zb-h1", 1, 4, 8, 27),
    ("zb-h1", 1, 4, 4, 15),
    ("zb-h1", 1, 8, 8, 31),
    ("zb-h1", 1, 8, 20, 67),
    ("zb-h1", 1, 1, 4, 12),
    ("zb-h2", 1, 4, 8, 27),
    ("zb-h2", 1, 8, 20, 67),
    ("zb-h2", 1, 1, 4, 12),
    ("dualpipe", 1, 4, 8, 26),
    ("dualpipe", 1, 8, 20, 66),
]
IN_FLIGHT = [  # schedule, chunks, stages, micro-batches, on stage 0
    ("gpipe", 1, 4, 8, 8),
    ("1f1b", 1, 4, 8, 4),
    ("1f1b", 1, 4, 2, 2),
    ("interleaved", 2, 4, 4, 4.0),
    ("interleaved", 2, 8, 8, 8.0),
    ("interleaved", 2, 8, 16, 11.5),
    ("interleaved", 2, 4, 8, 5.5),
    ("zb-h1", 1, 4, 8, 4),
    ("zb-h2", 1, 4, 8, 7),
    ("zb-h2", 1, 8, 20, 15),
    ("zb-v", 1, 4, 8, 4),
    ("dualpipe", 1, 4, 8, 5),
    ("dualpipe", 1, 8, 20, 9),
]
CHUNKS = {"GPT 1.5B": 3, "GPT 6.2B": 4, "GPT 14.6B": 3, "GPT 28.3B": 2}  # of the interleaved runs
RATES = {"1f1b": "bubble_1f1b", "zb-h1": "bubble_zb_h1", "zb-h2": "bubble_zb_h2"}


@pytest.mark.parametrize(("schedule", "chunks", "stages", "microbatches", "makespan"), MAKESPANS)
def test_makespan(schedule, chunks, stages, microbatches, makespan):
    result = pipeline(schedule, stages=stages, microbatches=microbatches, chunks=chunks)
    assert result.makespan == pytest.approx(makespan, abs=1e-9)


@pytest.mark.parametrize(("schedule", "chunks", "stages", "microbatches", "held"), IN_FLIGHT)
def test_activations_in_flight(schedule, chunks, stages, microbatches, held):
    result = pipeline(schedule, stages=stages, microbatches=microbatches, chunks=chunks)
    assert result.peak_in_flight[0] == held


@pytest.mark.parametrize("schedule", ["zb-h2", "zb-v"])
@pytest.mark.parametrize(("stages", "microbatches"), [(4, 8), (8, 20), (8, 15), (1, 4)])
def test_no_bubble_in_the_period(schedule, stages, microbatches):
    result = pipeline(schedule, stages=stages, microbatches=microbatches)
    assert result.period == 3 * microbatches
    assert result.bubble_of_ideal == result.bubble_of_total == 0


def test_zb_v_starts_its_last_stage_after_half_the_forwards():
    # m(F + B) + (p - 1)F/2 is the bound, and the handcrafted order meets it.
    assert pipeline("zb-v", stages=8, microbatches=20).makespan == 60 + 7 / 2


def test_fewer_micro_batches_than_stages_are_simulated():
    few = {"stages": 4, "microbatches": 2}
    assert pipeline("interleaved", chunks=2, **few).makespan <= 15
    # Down and up again without the weight parts, then the last of these on stage 0.
    for schedule in ("zb-h1", "zb-v"):
        assert pipeline(schedule, **few).makespan >= 4 * (1 + 1) + 1


def test_dualpipe_holds_the_parameters_twice():
    result = pipeline("dualpipe", stages=4, microbatches=8)
    assert result.parameter_copies == result.to_dict()["parameter_copies"] == 2
    assert pipeline("zb-v").parameter_copies == 1


def test_dualpipe_runs_overlapped_pairs():
    kinds = pipeline("dualpipe", stages=4, microbatches=8).timeline
    pairs = kinds[kinds["kind"] == "F&B"]
    assert len(pairs) > 0
    assert set(pairs["end"] - pairs["start"]) == {3.0}


def test_the_two_bubble_fractions():
    for schedule in ("gpipe", "1f1b"):
        result = pipeline(schedule, stages=8, microbatches=20)
        assert result.bubble_of_ideal == pytest.approx(7 / 20)
        assert result.bubble_of_total == pytest.approx(7 / 27)


def test_the_smallest_step_with_a_tenth_of_bubble():
    """Seminar P2: 63 micro-batches of the total, 70 of the ideal time."""
    results = {m: pipeline("1f1b", stages=8, microbatches=m) for m in range(60, 72)}
    assert min(m for m, r in results.items() if r.bubble_of_total <= 0.1 + 1e-12) == 63
    assert min(m for m, r in results.items() if r.bubble_of_ideal <= 0.1 + 1e-12) == 70


def test_interleaving_405b():
    """Seminar P3: 15 / 11.5 = 1.30; 1.28 was measured."""
    plain = pipeline("1f1b", stages=8, microbatches=8)
    halves = pipeline("interleaved", stages=8, microbatches=8, chunks=2)
    assert plain.makespan / halves.makespan == pytest.approx(15 / 11.5)


@pytest.fixture
def profiled(shared):
    """Zero Bubble's measured stage times and the bubble rates computed from them."""
    with open(shared / "published" / "zero_bubble_stage_times.csv") as file:
        return list(csv.DictReader(file))


def rate(row, schedule, chunks=1):
    forward, backward, weight, hop = (float(row[f"t_{k}_ms"]) for k in ("f", "b", "w", "comm"))
    result = pipeline(
        schedule,
        stages=int(row["pp"]),
        microbatches=int(row["micro_batches"]),
        forward=forward,
        backward=backward + weight,
        weight=weight,
        chunks=chunks,
        transfer=hop,
    )
    return result.bubble_of_total


@pytest.mark.parametrize("schedule", RATES)
def test_published_bubble_rates(profiled, schedule):
    assert len(profiled) == 12
    for row in profiled:
        assert rate(row, schedule) == pytest.approx(float(row[RATES[schedule]]), abs=1e-3), row


def test_published_bubble_rates_of_interleaving(profiled):
    for row in profiled:
        published = float(row["bubble_1f1b_interleaved"])
        got = rate(row, "interleaved", CHUNKS[row["model"]])
        assert got == pytest.approx(published, abs=5e-3), row

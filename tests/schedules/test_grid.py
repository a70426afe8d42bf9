"""Schedules typed as a grid: what they give, and one sentence for what is wrong."""

import pytest
from hypothesis import given

from tests.schedules.strategies import settings
from triosim import ConfigError
from triosim.pipelines import pipeline
from triosim.schedules import make_schedule, read_grid, write_grid

LOOPS = ("gpipe", "1f1b", "interleaved", "looped-bfs", "zb-h1", "zb-h2")
ALTERNATING = """
F0 F1 B0 B1
.  F0 B0 F1 B1
"""


def test_a_typed_grid_runs():
    result = pipeline(grid=ALTERNATING)
    assert (result.schedule.name, result.schedule.stages, result.schedule.microbatches) == (
        "grid",
        2,
        2,
    )
    assert result.makespan == pipeline("1f1b", stages=2, microbatches=2).makespan
    rows = result.timeline[["stage", "kind", "microbatch", "start", "end"]]
    assert rows.to_numpy().tolist() == [
        [0, "F", 0, 0.0, 1.0],
        [0, "F", 1, 1.0, 2.0],
        [0, "B", 0, 4.0, 6.0],
        [0, "B", 1, 7.0, 9.0],
        [1, "F", 0, 1.0, 2.0],
        [1, "B", 0, 2.0, 4.0],
        [1, "F", 1, 4.0, 5.0],
        [1, "B", 1, 5.0, 7.0],
    ]


def test_a_backward_with_weights_apart_is_shorter():
    result = pipeline(grid=["F0 B0 F1 B1 W1 W0"], backward=5, weight=2)
    times = result.timeline["end"] - result.timeline["start"]
    assert times.tolist() == [1, 3, 1, 3, 2, 2]


def test_all_ways_to_write_a_grid():
    expected = read_grid(ALTERNATING).rows
    lines = ALTERNATING.strip().splitlines()
    assert read_grid(lines).rows == expected
    assert read_grid([line.split() for line in lines]).rows == expected
    assert read_grid(ALTERNATING.lower().replace(".", "-")).rows == expected


@given(settings(LOOPS))
def test_what_is_written_can_be_read(keywords):
    name, stages, microbatches = (keywords[k] for k in ("schedule", "stages", "microbatches"))
    schedule = make_schedule(name, stages, microbatches, keywords["chunks"])
    again = read_grid(write_grid(schedule))
    assert (again.rows, again.routes) == (schedule.rows, schedule.routes)


@pytest.mark.parametrize(
    ("grid", "sentence"),
    [
        ("F0 B0\nF0 X0", r"grid X0: cell 2 of stage 1 must be F, B or W and a micro-batch"),
        ("F0 B0 F0", r"grid F0: stands twice on stage 0"),
        ("F0 B0 F1", r"grid B1: missing on stage 0; every stage"),
        ("F0 B0\n. .", r"grid F0: missing on stage 1"),
        ("F0 B0\nF0 B0 F0.1 B0.1", r"grid F0\.1: missing on stage 0"),
        ("B0 F0", r"grid B0: on stage 0 F0 must stand before it"),
        ("F0 W0 B0", r"grid W0: on stage 0 B0 must stand before it"),
        ("F0 B0 F1 B1\nF1 F0 B1 B0", r"grid B0 on stage 0: waits for B0 on stage 1, which cannot"),
        ("", r"grid \(empty\): must hold a row of cells for each stage"),
        (". .", r"grid \. \.: must hold a row"),
        (5, r"grid 5: must be text or a list of rows"),
        ([3], r"grid 3: a row must be text or a list of cells"),
        ([["F0", None, "B0"]], r"grid None: cell 2 of stage 0 must be"),
        ("F0 B999999", r"grid B999999: cell 2 of stage 0 must be .* numbers up to 100,000"),
        ("F0 B0 F70000", r"grid F1: missing on stage 0"),
    ],
)
def test_one_sentence_names_the_cell(grid, sentence):
    with pytest.raises(ConfigError, match=sentence):
        pipeline(grid=grid)


def test_the_circle_is_named_and_not_who_waits_for_it():
    """Stage 0 only waits; stages 1 and 2 wait for each other."""
    with pytest.raises(ConfigError, match=r"B0 on stage 1: waits for B0 on stage 2"):
        read_grid("F0 F1 B0 B1\nF0 B0 F1 B1\nF1 F0 B1 B0")

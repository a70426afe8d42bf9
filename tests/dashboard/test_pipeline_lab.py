"""The pictures of the lab on pipeline schedules."""

from __future__ import annotations

import json

import pytest

from dashboard.lab.pipeline import BY_HAND, LAB, VIEWS, held_by_stage, scheduled, times_of
from tests.dashboard.labs import charts, open_play
from triosim.lab.stage_times import MODELS
from triosim.schedules import SCHEDULES

P1, P2, P3 = LAB.asked
VALUES = {"forward": 1.0, "backward": 2.0, "weight": 1.0, "transfer": 0.0}


def opened(**parameters: str):
    """The first question's Play."""
    return open_play(LAB, P1, **parameters)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("times", [BY_HAND, next(iter(MODELS))])
def test_every_picture_is_drawn(view: str, times: str) -> None:
    at = opened(p1_view=view, p1_times=times)
    assert len(charts(at)) == 2
    assert len(at.metric) == 5


@pytest.mark.parametrize(
    ("schedule", "microbatches", "cards"),
    [  # ORACLES section 3: F 1, B 2, W 1 on 4 stages; bubbles of the period
        ("1f1b", "8", ["33", "33", "27.3 %", "37.5 %", "4"]),
        ("gpipe", "8", ["33", "33", "27.3 %", "37.5 %", "8"]),
        ("interleaved", "8", ["28.5", "28.5", "15.8 %", "18.8 %", "5.5"]),
        ("zb-h1", "8", ["27", "27", "11.1 %", "12.5 %", "4"]),
        ("zb-h2", "8", ["27", "24", "0.0 %", "0.0 %", "7"]),
        ("dualpipe", "8", ["26", "26", "7.7 %", "8.3 %", "5"]),
    ],
)
def test_the_cards_are_the_oracles(schedule: str, microbatches: str, cards: list[str]) -> None:
    at = opened(p1_schedule=schedule, p1_microbatches=microbatches)
    values = [metric.value for metric in at.metric]
    assert values[0] == cards[0]
    if schedule != "dualpipe":  # its period is not among the oracles
        assert values[:4] == cards[:4]
    assert values[4] == cards[4]


def test_the_grid_has_a_bar_for_every_task() -> None:
    grid = json.loads(charts(opened(p1_schedule="zb-h1"))[1])
    cells = [trace for trace in grid["data"] if trace["name"] != "idle"]
    assert {trace["name"] for trace in cells} == {"forward", "input part", "weight part"}
    assert [len(trace["text"]) for trace in cells] == [32, 32, 32]


def test_a_schedule_that_cannot_be_says_why() -> None:
    at = opened(p1_schedule="dualpipe", p1_microbatches="7")
    sentences = [warning.value for warning in at.warning]
    assert any(text.startswith("No schedule: Micro-batches m 7: dualpipe") for text in sentences)
    # Seven is no multiple of four either, which is what the question is about.
    assert any(text.startswith("Micro-batches m 7: interleaved") for text in sentences)
    assert not at.metric


def test_speed_for_memory_names_every_schedule_once() -> None:
    at = opened(p1_view="Speed for memory", p1_microbatches="16")
    figure = json.loads(charts(at)[1])
    drawn = [name for trace in figure["data"] for name in trace["text"]]
    missing = [name for name in SCHEDULES if name not in drawn]
    captions = " ".join(caption.value for caption in at.caption)
    assert len(drawn) == len(set(drawn))
    assert all(f"- {name}: " in captions for name in missing)
    labels = " ".join(note["text"] for note in figure["layout"]["annotations"])
    assert all(name in labels for name in drawn)


def test_what_makes_formula_and_simulation_differ_is_marked() -> None:
    at = opened(p1_transfer="0.5")
    explained = next(text.value for text in at.markdown if "**Transfer**" in text.value)
    assert explained.startswith("- **Transfer** :blue-badge[here]")
    assert any("more than the formula" in text.value for text in at.markdown)


@pytest.mark.parametrize("name", MODELS)
def test_stages_of_a_model_sum_to_the_model(name: str) -> None:
    """However many stages: their computing together is one GPU's, and nobody keeps nothing."""
    two, four = (times_of(VALUES, name, stages) for stages in (2, 4))
    for part in ("forward", "backward"):
        sums = [sum(getattr(times, part)) for times in (two, four)]
        assert sums[1] == pytest.approx(sums[0], rel=0.03)
    assert all(weight < back for weight, back in zip(four.weight, four.backward, strict=True))
    assert four.kept_gib is not None
    assert min(four.kept_gib) > 0
    run = scheduled("1f1b", 4, 8, 1, four)
    held = held_by_stage(run, four)
    assert held == pytest.approx(
        [count * size for count, size in zip((4, 3, 2, 1), four.kept_gib, strict=True)]
    )
    # ORACLES P4: the slowest stage sets the pace.
    slowest = max(f + b for f, b in zip(four.forward, four.backward, strict=True))
    assert run.makespan >= 8 * slowest

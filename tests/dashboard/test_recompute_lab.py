"""The pictures of the lab on recomputation."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.lab.recompute import BUYS, FEWER, LAB, STEP, VIEWS, shards_from, verdict
from tests.dashboard.labs import charts, open_play
from triosim.lab import Question
from triosim.lab.recompute_step import GPT, MODES, NOTHING, Point, Setup

R1, R2, R3 = LAB.asked
FULL = "full"


def opened(question: Question = R1, **parameters: str) -> AppTest:
    return open_play(LAB, question, **parameters)


@pytest.mark.parametrize("view", VIEWS)
def test_every_picture_is_drawn(view: str) -> None:
    at = opened(r1_view=view)
    assert len(charts(at)) == (2 if view == BUYS else 3)
    assert not at.warning


def test_bytes_of_a_layer_are_the_papers() -> None:
    """SEMINAR R1: 1.325 GB with nothing recomputed, 0.101 (7.6 %) in full."""
    figure = json.loads(charts(opened())[1])
    assert figure["data"][0]["x"][0] == pytest.approx(1.325, abs=1e-3)
    assert figure["data"][0]["x"][-1] == pytest.approx(0.101, abs=1e-3)
    notes = [note["text"] for note in figure["layout"]["annotations"]]
    assert notes[-1].endswith("(7.6 %)")


def test_the_layers_of_a_step_that_run_again_are_told_apart() -> None:
    at = opened(r1_view=STEP, r1_mode="every N-th layer", r1_period="4", r1_shards="4")
    kept, again = json.loads(charts(at)[2])["data"]
    assert (kept["name"], again["name"]) == ("kept", "runs again")
    assert again["x"] == list(range(0, 48, 4))
    assert at.metric[2].label == "Peak of a GPU"


@pytest.mark.parametrize("bought", ["a larger micro-batch", FEWER])
def test_what_memory_buys_has_a_line_for_each_mode(bought: str) -> None:
    at = opened(R3, r3_buys=bought, r3_seq="2048", r3_shards="4")
    assert [trace["name"] for trace in json.loads(charts(at)[1])["data"]] == list(MODES)
    table = at.dataframe[-1].value
    assert len(table) == len(MODES)


def point(mode: str, batch: int, gib: float, tokens_per_s: float, shards: int = 8) -> Point:
    return Point(
        mode=mode, batch=batch, shards=shards, peak_gib=gib, tokens_per_s=tokens_per_s,
        fits=gib <= 80,
    )  # fmt: skip


SETUP = Setup(model=GPT, mode=FULL, seq=2048, batch=1, tp=2, shards=8)


@pytest.mark.parametrize(
    ("doubled", "end"),
    # R3: half the memory for 10 % of the throughput must bring 11.1 %.
    [(1000.0, "brings 11.1 %. It does not pay."), (1020.0, "brings 13.3 %. Take it.")],
)
def test_the_verdict_on_half_the_memory_for_ten_percent(doubled: float, end: str) -> None:
    found = [
        point(NOTHING, 1, 60, 1000), point(NOTHING, 2, 110, 1050),
        point(FULL, 1, 30, 900), point(FULL, 2, 50, doubled),
    ]  # fmt: skip
    said = verdict(found, SETUP, larger=True)
    assert "50 % less memory for 10.0 % of the throughput" in said
    assert "must bring 11.1 %" in said
    assert said.endswith(end)


def test_what_fits_only_that_way_is_taken() -> None:
    found = [point(NOTHING, 1, 100, 1000), point(FULL, 1, 50, 900)]
    assert verdict(found, SETUP, larger=True).endswith("Without it nothing fits: take it.")
    found = [point(NOTHING, 1, 100, 1000), point(FULL, 1, 90, 900)]
    assert verdict(found, SETUP, larger=True).endswith("It does not fit.")


def test_fewer_shards_are_counted_in_gpus() -> None:
    found = [point(NOTHING, 1, 60, 1000), point(FULL, 1, 30, 900), point(FULL, 1, 70, 900, 4),
             point(FULL, 1, 150, 900, 2)]  # fmt: skip
    said = verdict(found, SETUP, larger=False)
    assert said.endswith("It fits with 4 shards: one copy on 8 GPUs.")


def test_shards_are_halved() -> None:
    assert shards_from(8) == (8, 4, 2)
    assert shards_from(2) == (2, 1)

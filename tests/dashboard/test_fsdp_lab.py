"""The pictures of the lab on FSDP."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.lab.fsdp import (
    BLOCK,
    HOSTS,
    LAB,
    MEMORY,
    SIZES,
    SMALL,
    TIMELINE,
    VIEWS,
    shards_of,
)
from tests.dashboard.labs import charts, open_play
from triosim.lab import Question
from triosim.lab.fsdp_step import GATHER, Setup, exposed, fsdp_step

F1, F2, F3 = LAB.asked


def opened(question: Question = F2, **parameters: str) -> AppTest:
    return open_play(LAB, question, **parameters)


@pytest.mark.parametrize("view", VIEWS)
def test_every_picture_is_drawn(view: str) -> None:
    at = opened(f2_view=view, f2_shard="8", f2_tokens="256")
    assert len(charts(at)) == 1 + (1 if view in (TIMELINE, HOSTS) else 2)
    assert len(at.metric) == (0 if view in (BLOCK, HOSTS) else 5)
    assert not at.warning


def test_exposed_gathers_are_marked_where_they_are() -> None:
    at = opened(f2_whole="true")
    figure = json.loads(charts(at)[1])
    boxes = [shape for shape in figure["layout"]["shapes"] if shape["type"] == "rect"]
    result = fsdp_step(Setup(shard=128, seq_len=1024, nic_gb_per_s=25))
    waits = [wait for wait in exposed(result) if wait.kind == GATHER]
    assert [box["x0"] for box in boxes] == [wait.start_ms for wait in waits[: len(boxes)]]
    assert len(boxes) > 1
    assert any(f"{len(waits)} times" in caption.value for caption in at.caption)


def test_hidden_gathers_leave_the_first() -> None:
    at = opened(f2_shard="8", f2_tokens="8192")
    assert any(caption.value.startswith("Only the first gather") for caption in at.caption)


def test_one_shard_gathers_nothing() -> None:
    at = opened(f2_shard="1", f2_replicate="8")
    assert at.metric[1].value == "0 ms"
    assert any(caption.value.startswith("One shard") for caption in at.caption)


def test_gathered_parameters_of_three_ways() -> None:
    at = opened(F1, f1_view=MEMORY, f1_shard="8")
    names = [trace["name"] for trace in json.loads(charts(at)[1])["data"]]
    assert [name.partition(":")[0] for name in names] == [
        "FSDP1, rate limiter", "FSDP1, no limiter", "FSDP2, 1 ahead",
    ]  # fmt: skip


def test_bytes_of_every_split_fall_with_the_shards() -> None:
    at = opened(F1, f1_view=SIZES)
    figure = json.loads(charts(at)[1])
    labels = figure["data"][0]["y"]
    assert labels == ["1 \u00d7 128", "8 \u00d7 16", "<b>128 \u00d7 1</b>"]
    totals = [sum(trace["x"][i] for trace in figure["data"]) for i in range(3)]
    # F1: 16 bytes for 8.03 billion parameters.
    for total, shards in zip(totals, (1, 8, 128), strict=True):
        assert total == pytest.approx(16 * 8.03e9 / shards / 2**30, rel=2e-3)


def test_splits_are_few_and_have_the_chosen_one() -> None:
    assert shards_of(Setup(shard=32, replicate=16)) == (1, 8, 32, 512)
    assert shards_of(Setup(shard=4, replicate=1)) == (1, 4)


def test_padding_is_drawn_and_counted() -> None:
    at = opened(F1, f1_view=BLOCK, f1_shard="4", f1_block=SMALL)
    assert any("FSDP1 1, FSDP2 21" in text.value for text in at.markdown)
    for chart, padding in zip(charts(at)[1:], (1, 21), strict=True):
        trace = next(t for t in json.loads(chart)["data"] if t["name"] == "padding")
        assert sum(trace["x"]) == padding


def test_over_hosts_has_the_questions_numbers() -> None:
    figure = json.loads(charts(opened(F3))[1])
    # SEMINAR F3.
    assert figure["data"][0]["x"] == pytest.approx([1.02, 8.18, 8.65, 20.6], rel=5e-3)

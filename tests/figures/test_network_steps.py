"""What the step player shows: messages in words, and who holds what after each step."""

from __future__ import annotations

import json

import numpy as np
import pytest

from triosim.figures.step_player import ADDING, step_player
from triosim.network.collectives.choose import algorithms_for
from triosim.network.collectives.moves import OPERATIONS
from triosim.network.collectives.steps import script

EVERY = [(op, name) for op in OPERATIONS if op != "send" for name in algorithms_for(op)]


def test_a_ring_in_words():
    data = step_player(script("all-reduce", "ring", 4))
    assert len(data["steps"]) == 6  # 2 (n - 1)
    assert (data["columns"], data["whole"]) == (4, 4)
    first = data["steps"][0]
    assert [m["text"] for m in first["messages"]][3] == (
        "rank 3 sends chunk 2 to rank 0, which adds it"
    )
    assert first["text"] == "4 messages of one chunk each; every receiver adds it to its own."
    assert "every receiver keeps it" in data["steps"][3]["text"]
    # After one step each rank has one chunk with two contributions.
    assert np.sort(data["held"][1], axis=1).tolist() == [[1, 1, 1, 2]] * 4


@pytest.mark.parametrize(("operation", "algorithm"), EVERY)
@pytest.mark.parametrize("ranks", [2, 3, 7, 8, 16])
def test_everyone_ends_with_what_the_operation_says(operation, algorithm, ranks):
    data = step_player(script(operation, algorithm, ranks))
    held = np.array(data["held"])
    assert held.shape == (len(data["steps"]) + 1, ranks, data["columns"])
    assert data["whole"] == (ranks if operation in ADDING else 1)
    whole = held[-1] == data["whole"]
    if operation == "reduce":
        assert whole[0].all()
    elif operation == "reduce-scatter":
        # Each chunk is complete somewhere; with a power of two every rank has its share.
        assert whole.any(axis=0).all()
    else:
        assert whole.all()
    assert (np.diff(held, axis=0) != 0).any(axis=(1, 2)).sum() >= len(data["steps"]) // 2
    assert len(json.dumps(data)) < 400_000


def test_a_switch_adds_up():
    data = step_player(script("all-reduce", "in-network", 4))
    assert data["switch"]
    up, down = data["steps"]
    assert up["messages"][0]["text"] == "rank 0 sends chunk 0 to the switch, which adds it up"
    assert down["messages"][0]["text"] == "the switch sends chunk 0 to rank 0, which keeps it"
    assert not down["messages"][0]["adds"]


def test_blocks_of_an_all_to_all_are_named_by_their_ends():
    data = step_player(script("all-to-all", "direct", 4))
    assert data["steps"][0]["messages"][2]["chunks"] == "2\u21923"
    assert np.array(data["held"][0]).tolist() == np.eye(4, dtype=int).tolist()
    assert np.array(data["held"][1]).sum() == 8


def test_long_lists_of_chunks_are_cut():
    data = step_player(script("all-to-all", "ring", 9))
    assert all(len(m["chunks"]) < 60 for s in data["steps"] for m in s["messages"])


def test_one_rank_has_no_steps():
    data = step_player(script("all-reduce", "ring", 1))
    assert data["steps"] == []
    assert data["held"] == [[[1] * data["columns"]]]

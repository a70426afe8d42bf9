"""Pieces of a program that are put one after the other."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triosim.engine.pieces import cut, put
from triosim.engine.program import Part, Program, RankClass
from triosim.engine.tiling import extent
from triosim.errors import Infeasible
from triosim.network.links import Load

LOAD = Load(bytes_by_link=(), latency_s=1.0, sent_bytes=2.0)
PARTS = {kind: (Part("compute", (kind, ""), s),) for kind, s in (("forward", 0.5), ("wait", 0.1))}


def empty():
    made = Program()
    for rank in range(2):
        made.add_class(RankClass(members=(rank,)))
    return made


def write(made, kind, label):
    """A pass on both classes; the first kind waits before it and marks its end, the other frees."""
    if kind == 0:
        for c in range(2):
            made.compose(c, "wait", "forward", PARTS["wait"])
    for c in range(2):
        task = made.compose(c, f"pass {label}", "forward", PARTS["forward"])
        made.allocate(task, "work", 5 + kind)
        if kind == 1:
            made.free(task, "work", 2)
    if kind == 0:
        made.marks.append(task)


def pieces():
    made, found = empty(), []
    for kind in range(2):
        since = extent(made)
        write(made, kind, "x 7")
        found.append(cut(made, since, "x 7"))
    return found


@given(st.lists(st.integers(0, 1), min_size=1, max_size=12))
def test_putting_is_writing(order):
    made, byhand = empty(), empty()
    write(made, 1, "before")
    write(byhand, 1, "before")
    labels = [f"x {7 + i}" for i in range(len(order))]
    own = pieces()
    for kind in (0, 1):  # both have their streams
        write(made, kind, "first")
        write(byhand, kind, "first")
    first = put(made, own, np.array(order), labels)
    begins = []
    for kind, label in zip(order, labels, strict=True):
        begins.append(len(byhand))
        write(byhand, kind, label)
    assert first.tolist() == begins
    for field in fields(Program):
        assert getattr(made, field.name) == getattr(byhand, field.name), field.name


def test_pieces_of_one_kind_are_equal_whatever_their_label():
    made, found = empty(), []
    for label in ("3", "12"):
        since = extent(made)
        write(made, 0, label)
        found.append(cut(made, since, label))
    assert found[0] == found[1]
    assert found[0] != pieces()[1]
    assert (found[0].name, found[0].labelled) == (
        ["wait", "wait", "pass ", "pass "], [False, False, True, True],
    )  # fmt: skip


@pytest.mark.parametrize(
    "more",
    [
        lambda made: made.compose(0, "pass 1", "forward", PARTS["forward"], [0]),
        lambda made: made.compute(0, "pass 1", "forward", 1.0),
        lambda made: made.communicate([(0, "g", "all-gather")], "pass 1", "x", 1.0, LOAD, [[]]),
    ],
    ids=["waits", "is not composite", "moves"],
)
def test_what_is_no_piece(more):
    made = empty()
    write(made, 1, "0")
    since = extent(made)
    more(made)
    assert cut(made, since, "1") is None


def test_a_program_has_a_largest_size(monkeypatch):
    made, own = empty(), pieces()
    monkeypatch.setattr("triosim.engine.pieces.MAX_TASKS", 7)
    put(made, own, np.array([0, 1]), ["0", "1"])
    with pytest.raises(Infeasible):
        put(made, own, np.array([1]), ["2"])

"""A trace four times as long takes four times the work, counted in lines of Python run."""

import sys

import pytest

from triosim.parallel.data import _step
from triosim.parallel.residency import plan_residency
from triosim.parallel.stages import cut_stages
from triosim.trace import Trace
from triosim.trace.memory import find_memory
from triosim.trace.parameters import find_parameters
from triosim.trace.partners import find_partners

SHORT = 100


def lines_run(function):
    """How many lines of Python a call runs, the same on every machine."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def chain(in_words, layers):
    """Every layer reads what the one before it made, and has an optimizer operator of its own."""
    x, w, g = (1_000 * k for k in (1, 3, 5))
    return in_words(
        *(("forward", "aten::linear", [x + i, w + i], [x + i + 1]) for i in range(layers)),
        *(
            ("backward", "AddmmBackward0", [g + i + 1, x + i, w + i], [g + i, g + 1_000 + i])
            for i in reversed(range(layers))
        ),
        *(("optimizer", "aten::add_", [w + i, g + 1_000 + i], []) for i in range(layers)),
    )


def mask(in_words, layers):
    """Every layer, forward and backward, also reads one activation."""
    return in_words(
        ("forward", "aten::mul", [1], [2]),
        *(("forward", "aten::mul", [100 + i, 2], [101 + i]) for i in range(layers)),
        *(("backward", "MulBackward0", [9_001 + i, 2], [9_000 + i]) for i in range(layers)[::-1]),
    )


def in_place(in_words, layers):
    """Every layer writes a new tensor into one storage."""
    ids = range(1, 2 * layers + 3)
    return in_words(
        *(("forward", "aten::add_", [1 + i], [2 + i]) for i in range(layers)),
        *(("backward", "AddBackward0", [i], [i + 1]) for i in range(layers + 1, 2 * layers + 1)),
        storage=dict.fromkeys(ids, 7),
    )


def adam(in_words, layers):
    """Four operators of the optimizer for every parameter."""
    w, d, m, v, s = (1_000 * k for k in range(1, 6))
    steps = [
        step
        for i in range(layers)
        for step in (
            ("lerp_", [m + i, d + i], []),
            ("addcmul_", [v + i, d + i, d + i], []),
            ("sqrt", [v + i], [s + i]),
            ("addcdiv_", [w + i, m + i, s + i], []),
        )
    ]
    return in_words(
        *(("forward", "aten::linear", [9_000, w + i], [9_001]) for i in range(layers)),
        *(("backward", "AddmmBackward0", [9_001, w + i], [d + i]) for i in range(layers)[::-1]),
        *(("optimizer", f"aten::{n}", inputs, outputs) for n, inputs, outputs in steps),
    )


def derive(trace: Trace):
    find_parameters(trace)
    find_memory(trace)
    find_partners(trace)
    cut_stages(trace, 4, "time")
    return _step(trace, (1,)).work


@pytest.mark.parametrize("shape", [chain, mask, in_place, adam])
def test_what_is_derived_from_a_trace(in_words, shape):
    short, long = (shape(in_words, layers) for layers in (SHORT, 4 * SHORT))
    assert lines_run(lambda: derive(long)) < 4.5 * lines_run(lambda: derive(short))


@pytest.mark.parametrize("resident", [False, True])
def test_a_plan_of_a_memory_that_holds_half(in_words, resident):
    works = [derive(chain(in_words, layers)) for layers in (SHORT, 4 * SHORT)]
    short, long = (
        lines_run(
            lambda work=work: plan_residency(
                work, sum(i.bytes for i in work.instances.values()) // 4, resident=resident
            )
        )
        for work in works
    )
    assert long < 5 * short

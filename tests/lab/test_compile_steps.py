"""Fusion pair by pair, launches and breaks, for the lab."""

from __future__ import annotations

import pytest

from triosim.compile import fuse
from triosim.errors import ConfigError
from triosim.lab import question
from triosim.lab.fusion_steps import (
    CHAIN,
    CYCLE,
    GRAPHS,
    LLAMA,
    REFUSED,
    cycle_graph,
    greedy,
)
from triosim.lab.launch_steps import (
    BREAKS,
    EAGER,
    FUSED,
    GPT2,
    REPLAYED,
    Setup,
    breaks_compared,
    compiled_layer,
    equal_lanes,
    layer_lanes,
)

US = 1e-6


@pytest.mark.parametrize("name", GRAPHS)
def test_the_last_step_has_the_loops_kernels(name: str) -> None:
    found = greedy(name)
    assert len(found.step(0).groups) == found.kernels_before
    assert found.step(0).candidate is None
    assert len(found.step(len(found.history)).groups) == found.kernels_after
    for number, candidate in enumerate(found.history, 1):
        before, after = found.step(number - 1), found.step(number)
        assert len(before.groups) - len(after.groups) == candidate.taken
        assert after.candidate is candidate


def test_the_chain_moves_four_passes_instead_of_eight() -> None:
    """SEMINAR K1."""
    elements = 16_384 * 4096
    found = greedy(CHAIN, elements)
    assert (found.bytes_before, found.bytes_after) == (8 * 2 * elements, 4 * 2 * elements)
    assert [candidate.taken for candidate in found.history] == [True, True]


def test_each_refusal_is_on_show() -> None:
    reasons = {c.refusal for name in (REFUSED, CYCLE) for c in greedy(name).history}
    assert reasons == {"", "no shared data", "other iteration space", "cycle"}


def test_the_cycle_is_one_of_groups_and_not_of_pairs() -> None:
    """Either pair alone is legal: without the other, its nodes are fused."""
    graph = cycle_graph()
    taken = [c for c in fuse(graph).history if c.taken]
    assert [(c.first, c.second) for c in taken] == [(("first",), ("late",))]
    refused = [c for c in fuse(graph).history if c.refusal == "cycle"]
    assert {(c.first, c.second) for c in refused} == {(("early",), ("last",))}
    # The nearer pair goes first; both save the same.
    assert taken[0].shared_bytes == refused[0].shared_bytes
    assert taken[0].distance < refused[0].distance


def test_edges_join_writers_and_readers() -> None:
    assert greedy(CHAIN).edges == ((0, 1), (1, 2))
    assert greedy(CYCLE).edges == ((0, 2), (1, 3), (2, 4), (3, 5))


def test_products_of_a_layer_are_calls() -> None:
    found = greedy(LLAMA)
    # Seven linear layers and attention.
    assert sum(found.closed) == 8


def test_an_unknown_graph_is_refused() -> None:
    with pytest.raises(ConfigError, match="graph x: must be one of"):
        greedy("x")


def test_equal_kernels_are_the_seminars() -> None:
    """SEMINAR K2: 1.5 against 1.2 ms; the GPU waits for one launch and works one kernel longer."""
    launched, replayed = equal_lanes(300, 5, 1.2)
    assert launched.timeline.step_s == pytest.approx(300 * 5 * US + 1.2e-3 / 300)
    assert replayed.timeline.step_s == pytest.approx(1.2e-3)
    assert (launched.name, replayed.name) == (EAGER, REPLAYED)
    asked = question("K2")
    assert 1e3 * launched.timeline.step_s == pytest.approx(asked.engine(asked.also[0]))  # type: ignore[arg-type]


def test_a_launch_bound_layer_takes_as_long_as_its_launches() -> None:
    setup = Setup(model=GPT2, tokens=64, launch_us=50)
    eager, fused, replayed = layer_lanes(setup)
    assert [lane.name for lane in (eager, fused, replayed)] == [EAGER, FUSED, REPLAYED]
    assert fused.kernels == replayed.kernels < eager.kernels
    for lane, guards_us in ((eager, 0), (fused, 4)):
        last = lane.timeline.launches[-1]
        expected = (guards_us + 50 * lane.kernels) * US + last.end_s - last.start_s
        assert lane.timeline.step_s == pytest.approx(expected)
    # One launch of 2.5 us after 4 us of guards, then the GPU alone.
    assert replayed.timeline.step_s == pytest.approx(6.5 * US + replayed.timeline.gpu_s)


def test_a_layer_that_the_gpu_bounds_gains_nothing_from_graphs() -> None:
    eager, fused, replayed = layer_lanes(Setup(model=GPT2, tokens=1024, launch_us=0.5))
    assert fused.timeline.step_s == pytest.approx(replayed.timeline.step_s, rel=0.05)
    assert fused.timeline.gpu_s < eager.timeline.gpu_s


@pytest.mark.parametrize("model", ["GPT-2, one GPU", "Llama 3 8B, one GPU"])
@pytest.mark.parametrize("broken", [name for name in BREAKS if name != "no break"])
def test_a_break_makes_two_graphs_of_each_and_more_kernels(model: str, broken: str) -> None:
    whole = compiled_layer(Setup(model=model, tokens=128, launch_us=5))
    cut = compiled_layer(Setup(model=model, tokens=128, launch_us=5, broken=broken))
    assert (len(whole.forward), len(cut.forward), len(cut.backward)) == (1, 2, 2)
    assert cut.launches > whole.launches


def test_a_break_costs_launches_guards_and_python_where_the_cpu_is_slower() -> None:
    """12 layers; forward and backward each have a break of 5 us, a guard of 4 us, more launches."""
    launch_us = 50.0
    found = {b.name: b for b in breaks_compared(Setup(model=GPT2, tokens=64, launch_us=launch_us))}
    whole, cut = found["no break"], found["after attention"]
    more_us = 12 * (2 * (5 + 4) + (cut.kernels - whole.kernels) * launch_us)
    assert 1e3 * (cut.step_ms - whole.step_ms) == pytest.approx(more_us, rel=0.05)
    assert cut.replayed_ms - whole.replayed_ms < 0.2 * (cut.step_ms - whole.step_ms)


def test_an_unknown_break_is_refused() -> None:
    with pytest.raises(ConfigError, match="break nowhere: must be one of no break"):
        compiled_layer(Setup(model=GPT2, tokens=64, launch_us=5, broken="nowhere"))

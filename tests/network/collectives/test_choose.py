"""Choosing an algorithm by size; C2 of the seminar is where a tree stops winning."""

import pytest

from tests.network.collectives.networks import GB, cluster, one_group, switch, torus_of
from triosim.errors import Infeasible
from triosim.network.collectives.choose import ALGORITHMS, candidates, cheapest, choose
from triosim.network.collectives.moves import OPERATIONS
from triosim.network.topology.tiered import Tiered

US = 1e-6


@pytest.mark.parametrize(("ranks", "crossover_mb"), [(8, 0.94), (64, 5.7)])
def test_a_tree_beats_a_ring_below_a_size(ranks, crossover_mb):
    network = switch(ranks, latency_s=5 * US)
    patterns = candidates("all-reduce", one_group(ranks), network)
    two = {name: patterns[name] for name in ("ring", "tree")}
    assert cheapest(two, 0.99 * crossover_mb * 1e6).algorithm == "tree"
    assert cheapest(two, 1.02 * crossover_mb * 1e6).algorithm == "ring"


def test_the_choice_is_the_least_of_all_times():
    choice = choose("all-reduce", one_group(16), cluster(16, 8, latency_s=US), GB)
    assert choice.time_s == min(choice.times_s.values())
    assert choice.times_s[choice.algorithm] == choice.time_s
    assert choice.pattern.time_s(GB) == choice.time_s
    assert choice.algorithm == "in-network"
    assert "torus" not in choice.times_s


@pytest.mark.parametrize("op", [op for op in OPERATIONS if op != "send"])
def test_candidates_are_what_the_network_allows(op):
    able = {name for name, entry in ALGORITHMS.items() if op in entry.operations}
    assert set(candidates(op, one_group(8), torus_of(2, 4))) == able - {"in-network"}
    assert set(candidates(op, one_group(8), switch(8))) == able - {"in-network", "torus"}
    assert set(candidates(op, one_group(8), switch(8, reduces=True))) == able - {"torus"}


def test_of_equal_ones_the_first():
    choice = choose("all-reduce", one_group(8), switch(8), GB)
    assert choice.algorithm == "ring"
    assert choice.why == "ring, 17.5 ms: as fast as bidirectional-ring."


@pytest.mark.parametrize(
    ("size_bytes", "names", "why"),
    [
        (
            GB,
            ("ring", "tree"),
            "ring, 17.6 ms: fewer bytes on the fullest link than tree (60 ms).",
        ),
        (1e3, ("ring", "tree"), "tree, 30.1 us: less latency than ring (70 us)."),
        (
            GB,
            ("halving-doubling", "tree"),
            "halving-doubling, 17.5 ms: fewer bytes on the fullest link than tree (60 ms).",
        ),
        (GB, ("ring",), "ring, 17.6 ms: compared with no other."),
    ],
)
def test_the_reason_is_one_sentence(size_bytes, names, why):
    patterns = candidates("all-reduce", one_group(8), switch(8, latency_s=5 * US))
    assert cheapest({name: patterns[name] for name in names}, size_bytes).why == why


def test_the_caller_can_add_costs():
    def slow_rings(pattern, size_bytes):
        return pattern.time_s(size_bytes) + (1.0 if pattern.steps > 6 else 0.0)

    choice = choose("all-reduce", one_group(8), switch(8), GB, slow_rings)
    assert choice.algorithm == "halving-doubling"
    assert choice.times_s["ring"] == pytest.approx(1.0175)


def test_nothing_to_do_is_free():
    choice = choose("all-reduce", one_group(1), switch(1), GB)
    assert (choice.time_s, choice.algorithm) == (0.0, "ring")


def test_a_missing_path_is_not_hidden():
    class Cut(Tiered):
        def traffic(self, source, target, size_bytes):
            raise Infeasible("no path from GPU 0 to GPU 1")

    network = Cut(switch(4).tiers, 4)
    with pytest.raises(Infeasible, match="no path"):
        choose("all-reduce", one_group(4), network, GB)

"""Choosing an algorithm by size; C2 of the seminar is where a tree stops winning."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.network.collectives.networks import (
    GB,
    cluster,
    mesh_of,
    one_group,
    ring_of,
    switch,
    torus_of,
)
from triosim.errors import Infeasible
from triosim.network.collectives.choose import ALGORITHMS, candidates, cheapest, choose
from triosim.network.collectives.moves import OPERATIONS
from triosim.network.collectives.planned import Planner
from triosim.network.topology.describe import machine_names, topology_of
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
            "ring, 17.6 ms: less time on its fullest link than tree (60 ms).",
        ),
        (1e3, ("ring", "tree"), "tree, 30.1 us: less latency than ring (70 us)."),
        (
            GB,
            ("halving-doubling", "tree"),
            "halving-doubling, 17.5 ms: less time on its fullest link than tree (60 ms).",
        ),
        (GB, ("ring",), "ring, 17.6 ms: compared with no other."),
    ],
)
def test_the_reason_is_one_sentence(size_bytes, names, why):
    patterns = candidates("all-reduce", one_group(8), switch(8, latency_s=5 * US))
    assert cheapest({name: patterns[name] for name in names}, size_bytes).why == why


NETWORKS = st.one_of(
    st.builds(switch, st.integers(2, 20), st.sampled_from([0.0, US]), st.booleans()),
    st.builds(
        cluster, st.integers(2, 24), st.integers(2, 8), st.sampled_from([100.0, 450.0]),
        st.sampled_from([10.0, 50.0]), st.booleans(), st.sampled_from([0.0, US]),
    ),
    st.builds(ring_of, st.integers(2, 12), st.sampled_from([0.0, US])),
    st.builds(mesh_of, st.integers(2, 12), st.sampled_from([0.0, US])),
    st.builds(torus_of, st.integers(2, 4), st.integers(2, 4)),
    st.builds(topology_of, st.sampled_from(list(machine_names())), st.integers(2, 24)),
)  # fmt: skip
SIZES = st.sampled_from([0.0, 1e3, 1e6, GB])


def full_time_s(pattern, network):
    """What the fullest link takes for each byte, phase by phase."""
    capacity = network.capacity_bytes_per_s
    return sum(float((k.share / capacity[k.links]).max(initial=0.0)) for k in pattern.phases)


@settings(max_examples=200)
@given(NETWORKS, st.sampled_from([op for op in OPERATIONS if op != "send"]), SIZES, st.booleans())
def test_every_reason_is_true(network, op, size_bytes, calibrated):
    groups = one_group(network.ranks)
    planner = Planner(network)
    auto = planner.plan(op, groups, size_bytes, protocol=calibrated)
    head, _, reason = auto.why.removesuffix(".").partition(": ")
    assert head.startswith(f"{auto.algorithm}, ")
    times = {name: t for name, t in auto.candidates_s.items() if name != auto.algorithm}
    if not times:
        assert reason == "compared with no other"
        return
    if reason.startswith("as fast as "):
        rival = reason.removeprefix("as fast as ")
        assert times[rival] == pytest.approx(auto.time_s, rel=1e-11)
        return
    reasons, _, rest = reason.partition(" than ")
    rival = rest.partition(" (")[0]
    assert times[rival] == pytest.approx(min(times.values()), rel=1e-11)
    assert times[rival] > auto.time_s
    other = planner.plan(op, groups, size_bytes, rival, protocol=calibrated)
    moving = [full_time_s(k.pattern, network) for k in (auto, other)]
    for text in reasons.split(" and "):
        if text == "less latency":
            assert auto.latency_s < other.latency_s
        elif text == "less protocol cost of each byte":
            assert calibrated
            assert auto.time_s - auto.latency_s < other.time_s - other.latency_s
        elif text == "less time with all tiers busy at once":
            assert auto.algorithm == "hierarchical-pipelined"
            assert auto.pattern.shares() == pytest.approx(other.pattern.shares())
            assert moving[0] < moving[1]
        else:
            assert text.startswith("less time on its fullest link")
            assert moving[0] < moving[1]


def test_the_reason_of_pipelining_is_not_bytes():
    """Hierarchical in chunks puts the same bytes on every link as without."""
    patterns = candidates("all-reduce", one_group(16), cluster(16, 8))
    two = {name: patterns[name] for name in ("hierarchical", "hierarchical-pipelined")}
    # C4: 2 x 7/8 S at 450 GB/s inside, then 2 x 1/2 S/8 at 50 GB/s between, which passes the
    # links inside as well; in chunks all of it goes on at once.
    inside, between, both = 1.75 / 0.45, 0.125 / 0.05, 1.875 / 0.45
    assert cheapest(two, GB).why == (
        f"hierarchical-pipelined, {max(both, between):.3g} ms: less time with all tiers busy "
        f"at once than hierarchical ({inside + between:.3g} ms)."
    )


@pytest.mark.parametrize("op", ["reduce-scatter", "all-gather"])
@pytest.mark.parametrize("ranks", range(2, 18))
def test_auto_compares_only_what_leaves_every_rank_its_shard(op, ranks):
    network, groups = switch(ranks, latency_s=US), one_group(ranks)
    name, planner = "halving-doubling", Planner(network)
    power = ranks in (2, 4, 8, 16)
    assert (name in candidates(op, groups, network)) == power
    assert (name in planner.plan(op, groups, 1e3).candidates_s) == power
    assert name in planner.plan("all-reduce", groups, 1e3).candidates_s
    # C3: when asked for by name they are the halves of the all-reduce.
    both = 2 * planner.plan(op, groups, 1e3, name).time_s
    assert both == pytest.approx(planner.plan("all-reduce", groups, 1e3, name).time_s)


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

"""The calculator: closed forms over all algorithms, operations and counts, and what it refuses."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import triosim as ts
from triosim.collective import MAX_BYTES, MAX_RANKS
from triosim.network import closed_forms as forms
from triosim.network.collectives.choose import ALGORITHMS
from triosim.network.collectives.moves import OPERATIONS
from triosim.network.topology.base import LinkSpec
from triosim.network.topology.describe import machine_names, topology_names, topology_of

B, ALPHA, S = 100e9, 5e-6, 1e9
COUNTS = range(1, 18)
PIPELINED = ("double-binary-tree", "hierarchical-pipelined")
SHARDS = ("reduce-scatter", "all-gather")


def collective(op, n, algorithm, size=S, latency_us=5.0, **settings):
    return ts.collective(
        op,
        size_bytes=size,
        ranks=n,
        algorithm=algorithm,
        link_gb_per_s=100,
        latency_us=latency_us,
        **settings,
    )


def hosts_of_eight(n, size):
    """Hierarchical over hosts of eight: inside, between, with all links alike; None if uneven."""
    if n <= 8:
        return forms.ring_all_reduce(n, size)
    return forms.torus_all_reduce((8, n // 8), size) if n % 8 == 0 else None


def squarest(n):
    a = max(k for k in range(1, int(math.sqrt(n)) + 1) if n % k == 0)
    return n // a, a


def all_reduce_cost(algorithm, n, size):
    """Bytes on the busiest link and steps, from the closed forms; None where there is none."""
    if algorithm in ("ring", "direct"):
        return forms.ring_all_reduce(n, size)
    if algorithm == "bidirectional-ring":
        # Two ranks have one link each way: nothing to gain from a second direction.
        return forms.Cost(forms.ring_all_reduce(n, size).link_bytes / 2, 2 * (n - 1))
    if algorithm == "tree":
        return forms.tree_all_reduce(n, size)
    if algorithm == "halving-doubling":
        return forms.halving_doubling_all_reduce(n, size)
    if algorithm == "hierarchical":
        return hosts_of_eight(n, size)
    if algorithm == "torus":
        return forms.torus_all_reduce(squarest(n), size)
    if algorithm == "in-network":
        # One step through the switch: half of its latency up, half down.
        return forms.Cost(size, 1) if n > 1 else forms.Cost(0, 0)
    raise AssertionError(algorithm)


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize(
    "algorithm",
    [
        "ring",
        "direct",
        "bidirectional-ring",
        "tree",
        "halving-doubling",
        "hierarchical",
        "torus",
        "in-network",
    ],
)
def test_an_all_reduce_on_the_links_it_is_made_for_takes_its_closed_form(algorithm, n):
    want = all_reduce_cost(algorithm, n, S)
    if want is None:
        pytest.skip("hosts of different sizes have no closed form")
    if algorithm == "bidirectional-ring" and n == 2:
        want = forms.ring_all_reduce(2, S)
    got = collective("all-reduce", n, algorithm)
    assert got.time_ms == pytest.approx(want.time_s(B, ALPHA) * 1e3, rel=1e-12, abs=1e-15)
    if algorithm in ("ring", "direct", "bidirectional-ring", "in-network"):
        assert got.link_bytes == pytest.approx(want.link_bytes)
    if algorithm != "in-network":
        assert got.steps == want.steps


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("algorithm", ["ring", "direct", "hierarchical", "torus"])
def test_reduce_scatter_and_all_gather_move_all_but_a_rank_s_own_share(algorithm, n):
    """C2: (n-1)/n S/B each; C3: together they are the all-reduce, exactly."""
    parts = [collective(op, n, algorithm) for op in SHARDS]
    whole = collective("all-reduce", n, algorithm)
    assert sum(part.time_ms for part in parts) == pytest.approx(whole.time_ms, rel=1e-12)
    assert sum(part.steps for part in parts) == whole.steps
    if algorithm in ("ring", "direct"):
        want = forms.ring_reduce_scatter(n, S).time_s(B, ALPHA) * 1e3
        assert [part.time_ms for part in parts] == pytest.approx([want, want], rel=1e-12)


@pytest.mark.parametrize("n", COUNTS)
def test_an_all_to_all_is_flat_on_a_switch_and_grows_on_a_ring(n):
    flat = collective("all-to-all", n, "direct")
    assert flat.time_ms == pytest.approx(forms.switch_all_to_all(n, S).time_s(B, ALPHA) * 1e3)
    grown = collective("all-to-all", n, "ring")
    if n == 2:  # one connection, so that there is no other way round
        assert grown.time_ms == pytest.approx(flat.time_ms)
        return
    assert grown.time_ms == pytest.approx(forms.ring_all_to_all(n, S).time_s(B, ALPHA) * 1e3)


def test_the_golden_values_of_hierarchies():
    """C4: two hosts of 8 with all links alike are the flat ring of 16: 18.75 ms."""
    assert collective("all-reduce", 16, "hierarchical", latency_us=0).time_ms == pytest.approx(
        18.75
    )


def test_the_longest_pipelined_trees_approach_twice_the_array():
    """C6: the double binary tree approaches 2S/B."""
    for n in (2, 3, 8, 17, 1000):
        got = collective("all-reduce", n, "double-binary-tree", latency_us=0)
        assert 2 * (n - 1) / n * 10 <= got.time_ms * (1 + 1e-12) <= 20 * (1 + 1e-9)
    assert got.time_ms == pytest.approx(20)


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("op", [op for op in OPERATIONS if op != "send"])
def test_every_algorithm_an_operation_names_works_for_any_count(op, n):
    factor = {"all-reduce": 2 * (n - 1) / n, "broadcast": 1, "reduce": 1}.get(op, (n - 1) / n)
    times = {}
    for name, entry in ALGORITHMS.items():
        if op not in entry.operations:
            with pytest.raises(ts.ConfigError, match=f"algorithm {name}: {op} can use "):
                collective(op, n, name)
            continue
        got = collective(op, n, name)
        times[name] = got.time_ms
        assert got.algorithm == name
        if n == 1:
            assert (got.time_ms, got.steps, got.link_bytes) == (0, 0, 0)
            assert got.algbw_gb_per_s is got.busbw_gb_per_s is None
            continue
        assert got.algbw_gb_per_s == pytest.approx(S / got.time_ms / 1e6)
        assert got.busbw_gb_per_s == pytest.approx(got.algbw_gb_per_s * factor)
        # Switches that add up pass a message on in two halves of a step.
        half = 2 if name == "in-network" else 1
        assert got.latency_ms == pytest.approx(got.steps * 5e-3 / half)
    # On one network, "auto" is the least of all that work there.
    auto = collective(op, n, "auto", topology="switch")
    assert auto.time_ms == pytest.approx(min(auto.candidates_ms.values()), rel=1e-11)
    assert auto.algorithm in times


def test_a_send_joins_two():
    assert collective("send", 2, "direct", latency_us=0).time_ms == pytest.approx(10)
    across = collective("send", 8, "direct", topology="ring", group=[0, 3])
    assert across.time_ms == pytest.approx(10 + 3 * 5e-3)
    with pytest.raises(ts.ConfigError, match="a send joins two of them"):
        collective("send", 8, "direct")


# The questions of the seminar


@pytest.mark.parametrize("n", [2, 4, 8, 64, 1024])
def test_time_per_byte_of_a_ring_depends_little_on_the_count(n):
    got = collective("all-reduce", n, "ring", latency_us=0)
    assert got.busbw_gb_per_s == pytest.approx(100)
    assert 10 <= got.time_ms < 20


def test_small_messages_pay_latency_and_large_ones_bandwidth():
    small, large = (collective("all-reduce", 64, k, size=1e3) for k in ("tree", "ring"))
    assert small.time_ms < large.time_ms
    tree, ring = (collective("all-reduce", 64, k, size=1e9) for k in ("tree", "ring"))
    assert ring.time_ms < tree.time_ms
    crossover = forms.tree_beats_ring_below_bytes(64, B, ALPHA)
    both = [collective("all-reduce", 64, k, size=crossover).time_ms for k in ("tree", "ring")]
    assert both[0] == pytest.approx(both[1])


def test_between_hosts_a_hierarchy_beats_one_flat_ring_through_a_shared_nic():
    table = {
        "kind": "tiers",
        "tiers": [
            {"name": "host", "children": 8, "link": {"gb_per_s": 450}},
            {"name": "network", "children": 0, "link": {"gb_per_s": 50}, "links": 1},
        ],
    }
    flat, tiered = (
        collective("all-reduce", 16, k, topology=table, latency_us=0).time_ms
        for k in ("ring", "hierarchical")
    )
    # C4 with one NIC for each host: the middle term is 8 times as long. The flat ring crosses once.
    inside, between = 7 / 8 * 1e9 / 450e9, 2 * 1 / 2 * 1e9 / 50e9
    assert tiered == pytest.approx((2 * inside + between) * 1e3)
    assert flat == pytest.approx(2 * 15 / 16 * 1e9 / 50e9 * 1e3)


# Groups and topologies


def test_groups_at_the_same_time_load_the_network_together():
    one = collective("all-reduce", 8, "ring", topology="ring", group=[0, 2, 4, 6])
    both = collective("all-reduce", 8, "ring", topology="ring", group=[[0, 2, 4, 6], [1, 3, 5, 7]])
    assert both.time_ms - both.latency_ms == pytest.approx(2 * (one.time_ms - one.latency_ms))
    assert (one.group_size, both.group_size, both.ranks) == (4, 4, 8)
    assert one.busbw_gb_per_s == pytest.approx(one.algbw_gb_per_s * 1.5)


@pytest.mark.parametrize("name", [*topology_names(), *machine_names()])
@pytest.mark.parametrize("ranks", [1, 2, 8])
def test_every_topology_by_name(name, ranks):
    got = ts.collective("all-reduce", ranks=ranks, topology=name)
    assert got.topology == name
    assert got.time_ms == pytest.approx(min(got.candidates_ms.values()), rel=1e-11)
    values = json.loads(got.to_json())
    assert values["calibrated_ms"] is None or values["calibrated_ms"] >= 0
    if name in topology_names() or name == "mi300x":  # nobody has measured its links
        assert got.calibrated is None
    elif ranks > 1:
        assert got.calibrated_ms > 0


def test_a_topology_that_is_built_already_or_described():
    built = topology_of("ring", 6, LinkSpec(bytes_per_s=B, latency_s=ALPHA))
    got = ts.collective("all-reduce", topology=built, algorithm="ring")
    assert (got.ranks, got.time_ms) == (6, collective("all-reduce", 6, "ring").time_ms)
    table = {"kind": "ring", "links": [{"gb_per_s": 100, "latency_us": 5}]}
    assert collective("all-reduce", 6, "ring", topology=table).time_ms == got.time_ms


@pytest.mark.parametrize(
    "spelling", ["All-Reduce", "all_reduce", "all reduce", " allreduce ", "ALL/REDUCE"]
)
def test_spellings_of_operations(spelling):
    if spelling.strip() == "allreduce":
        spelling = "all-reduce"
    assert ts.collective(spelling, ranks=2).operation == "all-reduce"


@given(
    st.integers(1, 40), st.sampled_from(["ring", "tree", "auto"]),
    st.just(0.0) | st.floats(1, 1e12), st.floats(1, 1e12),
)  # fmt: skip
def test_more_bytes_never_take_less(n, algorithm, one, other):
    less, more = sorted((one, other))
    times = [collective("all-reduce", n, algorithm, size=k).time_ms for k in (less, more)]
    assert times[0] <= times[1] * (1 + 1e-12)


MINE = {"kind": "ring", "link": {"gb_per_s": 50}}


@pytest.mark.parametrize("topology", ["dgx-h100", " DGX-H100 ", MINE])
def test_links_that_the_topology_has_itself(topology):
    name = "as described" if topology is MINE else topology
    plain = ts.collective("all-reduce", ranks=8, topology=topology)
    given = ts.collective(
        "all-reduce", ranks=8, topology=topology, link_gb_per_s=100, latency_us="5"
    )
    assert plain.warnings == ()
    assert given.warnings == (
        f"The bandwidth of 100 GB/s is unused: the topology {name} has links of its own.",
        f"The latency of 5 us is unused: the topology {name} has links of its own.",
    )
    assert given.time_ms == plain.time_ms
    assert json.loads(given.to_json())["warnings"] == list(given.warnings)


@pytest.mark.parametrize("topology", [None, "ring", "Torus:2x4", " switch "])
def test_links_that_are_the_caller_s(topology):
    slow, fast = (
        ts.collective("all-reduce", ranks=8, topology=topology, link_gb_per_s=k, latency_us=1)
        for k in (50, 100)
    )
    assert slow.warnings == fast.warnings == ()
    moving = [k.time_ms - k.latency_ms for k in (slow, fast)]
    assert moving[0] == pytest.approx(2 * moving[1])


def test_a_result_is_shown_with_its_time():
    text = repr(ts.collective("all-reduce", size_bytes=1e9, ranks=8, algorithm="ring"))
    assert "all-reduce of 1 GB over 8 GPUs, ring" in text
    assert "17.5 ms" in text


# What is refused


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"ranks": 0}, "ranks 0: must be a whole number from 1 to 1,048,576."),
        ({"ranks": 1.5}, "ranks 1.5: must be a whole number from 1 to 1,048,576."),
        ({"ranks": "x"}, "ranks x: must be a whole number from 1 to"),
        ({"ranks": True}, "ranks True: must be a whole number from 1 to"),
        ({"ranks": MAX_RANKS + 1}, "ranks 1048577: must be a whole number from 1 to"),
        ({"size_bytes": 1e-300}, "size_bytes 1e-300: must be 0 or from 1 to 1e+18."),
        ({"size_bytes": -1}, "size_bytes -1: must be a number from 0 to 1e+18."),
        ({"size_bytes": math.nan}, "size_bytes nan: must be a number from 0 to 1e+18."),
        ({"size_bytes": 2 * MAX_BYTES}, "size_bytes 2e+18: must be a number from 0 to 1e+18."),
        ({"size_bytes": None}, "size_bytes None: must be a number from 0 to 1e+18."),
        ({"link_gb_per_s": 0}, "link_gb_per_s 0: must be a number from 1e-06 to 1e+09."),
        ({"latency_us": -1}, "latency_us -1: must be a number from 0 to 1e+09."),
        ({"latency_us": math.inf}, "latency_us inf: must be a number from 0 to 1e+09."),
        ({"operation": "all-reduse"}, "operation all-reduse: must be one of all-reduce, reduce-sc"),
        ({"operation": None}, "operation None: must be one of all-reduce"),
        ({"algorithm": "rings"}, "algorithm rings: all-reduce can use ring, bidirectional-ring"),
        ({"algorithm": "in-network", "topology": "ring"}, "algorithm in-network: needs switches"),
        ({"algorithm": "torus", "topology": "switch"}, "algorithm torus: needs a ring, mesh or to"),
        ({"topology": "tours"}, "topology tours: no such topology; known are ring, switch"),
        ({"topology": "no.toml"}, "topology no.toml: "),
        ({"topology": 5}, "topology 5"),
        ({"topology": "torus:3x2"}, "topology"),
        ({"group": [0, 0]}, "group [0, 0]: a rank can take part only once."),
        ({"group": [[0, 1], [1, 2]]}, "group [[0, 1], [1, 2]]: a rank can take part only once."),
        ({"group": [0, 8]}, "group 8: ranks here are 0 to 7."),
        ({"group": [-1, 2]}, "group -1: ranks here are 0 to 7."),
        ({"group": [[0, 1], [2]]}, "group [[0, 1], [2]]: must be ranks, as in [0, 1, 2], or group"),
        ({"group": []}, "group []: must be ranks, as in [0, 1, 2]"),
        ({"group": [0.5, 1]}, "group [0.5, 1]: must be ranks"),
        ({"group": ["a"]}, "group ['a']: must be ranks"),
        ({"group": "0,1"}, "group 0,1: must be ranks"),
        ({"group": 3}, "group 3: must be ranks"),
        ({"group": [10**30]}, "group [1"),
        ({"group": np.zeros((2, 2, 2), dtype=int)}, "group"),
    ],
)
def test_what_is_refused_in_one_sentence(given, sentence):
    with pytest.raises(ts.ConfigError) as caught:
        ts.collective(**({"operation": "all-reduce", "ranks": 8} | given))
    text = str(caught.value)
    assert text.startswith(sentence)
    assert text.endswith(".")
    assert "\n" not in text
    assert not re.search(r"np\.|array\(", text)


def test_a_cut_topology_has_no_answer():
    table = {"kind": "graph", "gpus": ["a", "b", "c"], "connections": [
        {"between": ["a", "b"], "gb_per_s": 10},
    ]}  # fmt: skip
    with pytest.raises(ts.TrioSimError, match="c"):
        ts.collective("all-reduce", ranks=3, topology=table)

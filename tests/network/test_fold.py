"""Links loaded alike are one: the same step as with every rank and every link on its own."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.network.programs import NAMES, build, programs, run, speeds
from triosim.network.collectives.choose import candidates
from triosim.network.fold import classes_of
from triosim.network.topology.base import one_group


def by_rank(timeline, ranks):
    """Starts and ends of each rank's tasks, in program order."""
    found = [None] * ranks
    for c, rank_class in enumerate(timeline.program.classes):
        tasks = np.sort(timeline.tasks(c))
        for rank in rank_class.members:
            found[rank] = np.stack((timeline.start_s[tasks], timeline.end_s[tasks]))
    return found


def carried(timeline):
    """Bytes over all links, members counted."""
    members = [link.members for link in timeline.program.links]
    return float(timeline.carried_bytes @ np.array(members, dtype=np.float64))


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20)
@given(
    ranks=st.integers(1, 64),
    steps=programs,
    slow=speeds,
    overlap_slowdown=st.sampled_from([0.0, 0.18]),
)
def test_a_folded_program_takes_as_long_as_every_rank_and_link_on_its_own(
    name, ranks, steps, slow, overlap_slowdown
):
    topology = build(name, ranks if name != "hybrid-cube-mesh" else 1 + ranks % 8)
    assume(topology is not None)
    one, every = (
        run(steps, topology, slow, fold=fold, overlap_slowdown=overlap_slowdown)
        for fold in (True, False)
    )
    assert len(every.program.classes) == topology.ranks
    assert len(every.program.links) >= len(one.program.links)
    assert one.total_s == pytest.approx(every.total_s, rel=1e-9)
    for folded, single in zip(
        by_rank(one, topology.ranks), by_rank(every, topology.ranks), strict=True
    ):
        np.testing.assert_allclose(folded, single, rtol=1e-9, atol=1e-9 * every.total_s)
    assert carried(one) == pytest.approx(carried(every), rel=1e-9)


def reference_classes(phases, capacity):
    """Links by capacity and exact loads, one tuple for each."""
    loads = np.zeros((len(phases), len(capacity)))
    for row, phase in zip(loads, phases, strict=True):
        row[phase.links] = phase.share
    used = np.flatnonzero(loads.any(axis=0))
    # Sums of the same shares in another order differ in the last bits.
    keys = [(capacity[k], *(float(f"{x:.10g}") for x in loads[:, k])) for k in used.tolist()]
    counts = {}
    for key in keys:
        counts[key] = counts.get(key, 0) + 1
    return counts


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ranks", [1, 2, 8, 12, 48])
def test_the_classes_are_the_links_with_equal_capacity_and_loads(name, ranks):
    topology = build(name, ranks)
    if topology is None:
        assert name == "hybrid-cube-mesh"
        return
    patterns = [
        *candidates("all-reduce", one_group(ranks), topology).values(),
        *candidates("all-to-all", one_group(ranks), topology).values(),
    ]
    phases = [phase for pattern in patterns for phase in pattern.phases]
    capacity = topology.capacity_bytes_per_s
    found = classes_of(phases, capacity)
    want = reference_classes(phases, capacity)
    assert sorted(found.members.tolist()) == sorted(want.values())
    single = classes_of(phases, capacity, fold=False)
    assert len(single.first) == found.members.sum()
    for (own, share), phase in zip(found.of_phase, phases, strict=True):
        assert (found.members[own] * share).sum() == pytest.approx(phase.share.sum(), rel=1e-9)
        heaviest = (share / capacity[found.first[own]]).max(initial=0.0)
        assert heaviest == pytest.approx(phase.seconds_per_byte, rel=1e-9)


def test_a_ring_is_one_class_and_nothing_is_none():
    topology = build("ring", 6)
    (pattern,) = [candidates("all-reduce", one_group(6), topology)["ring"]]
    found = classes_of(pattern.phases, topology.capacity_bytes_per_s)
    assert found.members.tolist() == [6]
    assert classes_of([], topology.capacity_bytes_per_s).members.tolist() == []


def test_two_tiers_fold_to_a_handful_of_links():
    topology = build("seminar-h100", 16_384)
    patterns = [
        candidates("all-reduce", one_group(16_384), topology)[k] for k in ("ring", "hierarchical")
    ]
    phases = [phase for pattern in patterns for phase in pattern.phases]
    assert len(classes_of(phases, topology.capacity_bytes_per_s).first) < 30

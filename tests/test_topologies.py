"""Whole steps on topologies: the rules of a step hold whatever joins the GPUs."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import triosim as ts
from triosim.network.topology.describe import machine_names, topology_names

SAMPLES = Path(__file__).resolve().parents[1] / "sample_trace"
GENERIC = tuple(name for name in topology_names() if name != "hybrid-cube-mesh")
NAMES = (*topology_names(), *machine_names())
SYMMETRIC = ("ring", "switch", "fully-connected", "torus:2x4", "torus-3d:2x2x2", "fat-tree:8")


def run(name="convnet", **settings):
    return ts.simulate(ts.Scenario(trace_dir=str(SAMPLES / name), **settings))


def transfer_ms(result, phase="all-reduce"):
    """How long each transfer of rank 0 took."""
    frame = result.expand([0])
    rows = frame[frame["phase"] == phase]
    return (rows["end_ms"] - rows["start_ms"]).tolist()


scenarios = st.fixed_dictionaries(
    {
        "case": st.integers(0, 4),
        "gpus": st.integers(1, 8),
        "topology": st.sampled_from([None, *NAMES]),
        "algorithm": st.sampled_from([None, "auto", "ring", "tree", "direct", "hierarchical"]),
        "protocol": st.booleans(),
        "overlap_slowdown": st.sampled_from([None, 0.0, 0.3]),
        "rank_speed": st.sampled_from([None, {0: 0.5}, {0: 0.5, 1: 2.0}]),
        "latency_us": st.sampled_from([0.0, 5.0]),
        "ptp_bandwidth_gb_per_s": st.sampled_from([5.0, 65.0]),
        "ptp_convention": st.sampled_from(["algbw", "link"]),
        "jitter": st.sampled_from([0.0, 0.0, 0.1]),
        "resident": st.booleans(),
        "schedule": st.sampled_from(["gpipe", "1f1b"]),
        "micro_batch_size": st.sampled_from([None, 16]),
        "accumulate": st.integers(1, 2),
        "bucket_mb": st.sampled_from([1.0, 25.0]),
    }
)
optical = st.fixed_dictionaries(
    {
        "interconnect": st.just("optical"),
        "case": st.integers(1, 4),
        "gpus": st.sampled_from([2, 4, 8]),
        "mesh_rows": st.sampled_from([1, 2]),
        "circuit_setup_ms": st.sampled_from([0.0, 0.5]),
        "circuit_teardown_ms": st.sampled_from([0.0, 0.5]),
        "wavelengths": st.sampled_from([None, 2, 8]),
        "micro_batch_size": st.sampled_from([None, 16]),
        "resident": st.booleans(),
    }
)


def some_dead_link(data, settings):
    """A dead or half link of the topology that is chosen, by name."""
    try:
        run(**settings, dead_links=("no-link",))
    except ts.ConfigError as error:
        if error.field != "dead_links":
            return ()
        names = re.sub(".*for example, ", "", error.problem).split(", ")
    if names == ["none here"]:
        return ()
    left = data.draw(st.sampled_from(["", "=0.5"]))
    return (data.draw(st.sampled_from(names)) + left,)


@settings(max_examples=80)
@given(st.data(), scenarios, st.booleans())
def test_every_check_passes_folded_and_unfolded(data, given, broken):
    if given["gpus"] == 1 and given["rank_speed"]:
        given["rank_speed"] = {0: 0.5}
    if broken and given["case"] and (given["topology"] or given["algorithm"] not in (None, "ring")):
        given["dead_links"] = some_dead_link(data, given)
    try:
        folded = run(**given)
    except ts.Infeasible as error:
        assert "cut off from each other" in str(error)  # noqa: PT017
        assert given["dead_links"]
        return
    every = run(**given, fold=False)
    assert [check for check in (*folded.checks, *every.checks) if not check.passed] == []
    assert folded.total_ms == pytest.approx(every.total_ms, rel=1e-9)
    for one, other in zip(folded.per_rank, every.per_rank, strict=True):
        for name in one:
            assert one[name] == pytest.approx(other[name], rel=1e-9, abs=1e-9)


@settings(max_examples=30)
@given(optical)
def test_every_check_passes_on_circuits(given):
    try:
        result = run(**given)
    except ts.Infeasible as error:
        assert "raise the wavelengths" in str(error)  # noqa: PT017
        assert given["wavelengths"] is not None
        return
    assert [check for check in result.checks if not check.passed] == []


@pytest.mark.parametrize("case", [1, 2, 3])
@pytest.mark.parametrize("gpus", [2, 5, 8])
@pytest.mark.parametrize("topology", ["ring", "switch"])
def test_a_ring_and_a_switch_take_what_the_ring_of_the_cases_takes(case, gpus, topology):
    common = {"case": case, "gpus": gpus, "latency_us": 3, "ptp_convention": "link"}
    plain = run(**common)
    placed = run(**common, topology=topology, algorithm="ring")
    assert placed.total_ms == pytest.approx(plain.total_ms, rel=1e-12)
    assert placed.communication_bytes == pytest.approx(plain.communication_bytes, rel=1e-12)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_a_pipeline_on_a_line_is_the_chain_of_case_4(schedule):
    common = {"case": 4, "gpus": 4, "latency_us": 3, "micro_batch_size": 16, "schedule": schedule}
    line = run(**common, topology="mesh:4")
    assert line.total_ms == pytest.approx(run(**common).total_ms, rel=1e-12)


def test_a_pipeline_has_no_all_reduce_whatever_the_algorithm():
    common = {"case": 4, "gpus": 4, "latency_us": 3, "micro_batch_size": 16}
    assert run(**common, algorithm="tree").total_ms == run(**common).total_ms


def test_a_pipeline_pays_every_hop_of_the_way():
    # Stages 3 and 4 of mesh:2x4 are at opposite ends of two rows: 4 hops, the others are 1.
    common = {"case": 4, "gpus": 8, "resident": True, "latency_us": 1000}
    grid = run(**common, topology="mesh:2x4").expand([3])
    line = run(**common, topology="mesh:8").expand([3])
    times = []
    for frame in (grid, line):
        sent = frame[frame["phase"] == "send"].iloc[0]
        assert sent["name"]
        times.append(sent["end_ms"] - sent["start_ms"])
    assert times[0] - times[1] == pytest.approx(3)


@pytest.mark.parametrize("topology", NAMES)
@pytest.mark.parametrize("case", [2, 4])
def test_less_to_send_never_takes_longer(topology, case):
    """A smaller batch sends less in case 4 and computes less in both."""
    common = {"case": case, "gpus": 8, "topology": topology, "overlap_slowdown": 0.0}
    small, large = (run(**common, batch_size_sim=batch) for batch in (8, 64))
    assert small.total_ms <= large.total_ms * (1 + 1e-9)


@settings(max_examples=40)
@given(
    topology=st.sampled_from(GENERIC),
    case=st.integers(1, 4),
    gpus=st.sampled_from([2, 3, 6, 8]),
    slow=st.sampled_from([None, {1: 0.5}]),
    change=st.sampled_from(
        [{"ptp_bandwidth_gb_per_s": 20}, {"latency_us": 0}, {"overlap_slowdown": 0.0}]
    ),
)
def test_wider_or_sooner_links_never_lengthen_a_step(topology, case, gpus, slow, change):
    base = {
        "case": case, "gpus": gpus, "topology": topology, "latency_us": 4, "overlap_slowdown": 0.2,
        "ptp_bandwidth_gb_per_s": 10, "rank_speed": slow, "micro_batch_size": 32,
    }  # fmt: skip
    assert run(**base | change).total_ms <= run(**base).total_ms * (1 + 1e-9)


@pytest.mark.parametrize("topology", SYMMETRIC)
@pytest.mark.parametrize("algorithm", ["auto", "ring", "tree", "halving-doubling"])
def test_renumbering_on_a_symmetric_topology_changes_nothing(topology, algorithm):
    common = {"case": 2, "gpus": 8, "topology": topology, "algorithm": algorithm}
    totals = [run(**common, rank_speed={rank: 0.5}).total_ms for rank in (0, 3, 7)]
    assert totals == pytest.approx([totals[0]] * 3, rel=1e-12)


@pytest.mark.parametrize("topology", ["seminar-h100", "torus", "dragonfly"])
@pytest.mark.parametrize("case", [1, 2, 3])
def test_a_straggler_decides_the_step(topology, case):
    """All GPUs as slow as the slowest take as long: the others wait for it."""
    common = {"case": case, "gpus": 16, "topology": topology, "resident": True}
    one = run(**common, rank_speed={5: 0.5})
    every = run(**common, rank_speed=dict.fromkeys(range(16), 0.5))
    assert one.total_ms == pytest.approx(every.total_ms, rel=1e-12)
    assert run(**common).total_ms < one.total_ms
    assert one.per_rank[0]["imbalance_ms"] > 0
    assert one.per_rank[5]["imbalance_ms"] == 0


def test_a_degraded_link_slows_every_all_reduce_down_to_it():
    common = {"case": 1, "gpus": 8, "topology": "ring", "algorithm": "ring", "latency_us": 0}
    (whole,), (half,) = (
        transfer_ms(run(**common, **more)) for more in ({}, {"dead_links": ("2-3=0.5",)})
    )
    assert half == pytest.approx(2 * whole)


def test_round_a_dead_link_of_a_ring_everything_goes_the_long_way():
    # Rank 3 reaches rank 4 over the 7 other links, which then carry their own share as well; those
    # run against the direction of the ring, so that nothing shares: the way is free but longer.
    common = {"case": 1, "gpus": 8, "topology": "ring", "algorithm": "ring", "latency_us": 100}
    (whole,), (long_way,) = (
        transfer_ms(run(**common, **more)) for more in ({}, {"dead_links": ("3-4",)})
    )
    assert long_way - whole == pytest.approx(14 * 6 * 0.1)


@pytest.mark.parametrize(
    ("settings", "pair"),
    [
        ({"case": 4, "gpus": 4, "dead_links": ("1-2",)}, "GPU 1 and GPU 2"),
        ({"case": 1, "gpus": 4, "topology": "switch", "dead_links": ("gpu 2-switch 0",)}, "GPU 2"),
        ({"case": 2, "gpus": 2, "topology": "ring", "dead_links": ("0-1",)}, "GPU 0 and GPU 1"),
        ({"case": 3, "gpus": 6, "topology": "mesh:6", "dead_links": ("2-3",)}, "GPU"),
    ],
)
def test_a_cut_is_infeasible_and_names_the_pair(settings, pair):
    with pytest.raises(
        ts.Infeasible, match="are cut off from each other: no way is left"
    ) as caught:
        run(**settings)
    assert pair in str(caught.value)


def test_a_dead_link_of_the_ring_of_the_cases_is_gone_round():
    common = {"case": 2, "gpus": 8}
    assert run(**common, dead_links=("3-4",)).total_ms >= run(**common).total_ms
    assert run(**common, dead_links=("3-4=0.5",)).total_ms > run(**common).total_ms


def test_dead_links_that_are_not_there_are_named():
    with pytest.raises(ts.ConfigError, match="dead_links 0-5: no such link; there are, for exampl"):
        run(case=1, gpus=8, topology="ring", dead_links=("0-5",))


def test_the_cost_does_not_grow_with_symmetric_gpus():
    for name, slow in (
        ("seminar-h100", None),
        ("seminar-h100", {1: 0.5}),
        ("rail-optimised", None),
    ):
        steps = [
            run(case=2, gpus=gpus, topology=name, rank_speed=slow, algorithm="hierarchical")
            for gpus in (512, 8192)
        ]
        assert steps[0].tasks.events == steps[1].tasks.events
        links = [len(step.tasks.program.links) for step in steps]
        assert links[0] == links[1] < 20


@pytest.mark.parametrize("case", [1, 2, 3, 4])
def test_speed_up_and_throughput_follow_from_the_step_times(case):
    common = {"case": case, "topology": "dgx-h100", "resident": True}
    alone, together = run(**common, gpus=1), run(**common, gpus=4)
    share = 4 if case <= 2 else 1
    assert together.speedup == pytest.approx(share * alone.total_ms / together.total_ms)
    assert together.samples_per_s == pytest.approx(share * alone.samples / together.total_ms * 1e3)


# Slow-down beside communication


def test_only_machines_have_a_slow_down_unless_it_is_given():
    common = {"case": 2, "gpus": 8, "bucket_mb": 1, "protocol": False}
    for topology, slowed in (("switch", False), ("dgx-h100", True)):
        computed = [
            run(**common, topology=topology, overlap_slowdown=value).compute_ms
            for value in (0.0, None, 0.18)
        ]
        assert computed[0] < computed[2]
        assert computed[1] == pytest.approx(computed[2] if slowed else computed[0], rel=1e-12)


# Circuits


def test_wavelengths_too_few_for_the_ring_are_named():
    given = {"case": 1, "gpus": 4, "mesh_rows": 2, "interconnect": "optical"}
    assert run(**given, wavelengths=1).total_ms == pytest.approx(run(**given).total_ms)
    with pytest.raises(ts.Infeasible, match="has 1 wavelength; raise the wavelengths to 2"):
        run(**given | {"mesh_rows": 1}, wavelengths=1)


def test_taking_circuits_down_costs_only_where_they_are_in_the_way():
    # Stage after stage sends on one hop: no circuit ever has to go.
    given = {"case": 4, "gpus": 4, "interconnect": "optical", "circuit_setup_ms": 1}
    free = run(**given).total_ms
    assert run(**given, circuit_teardown_ms=5, wavelengths=2).total_ms == pytest.approx(free)


# Reports


def test_the_result_says_what_carried_the_all_reduces():
    result = run(case=2, gpus=16, topology="seminar-h100", bucket_mb=5)
    data = result.to_dict()["network"]
    assert data["topology"] == "seminar-h100"
    (used,) = [row for row in data["algorithms"] if row["operation"] == "all-reduce"]
    assert used["transfers"] == len(transfer_ms(result))
    assert used["protocol"] in ("simple", "ll", "ll128")
    alone = ts.collective(
        "all-reduce", size_bytes=5 * 2**20, ranks=16, topology="seminar-h100"
    ).calibrated
    assert used["algorithm"] == alone.algorithm
    ideal = run(case=2, gpus=16, topology="seminar-h100", protocol=False).to_dict()["network"]
    assert {row["protocol"] for row in ideal["algorithms"]} == {None}


def test_without_a_topology_the_network_is_named_too():
    assert run(case=2, gpus=8).to_dict()["network"] == {"topology": None, "algorithms": []}
    assert run(case=0, gpus=8, topology="ring").to_dict()["network"]["algorithms"] == []

"""What a result says about itself: settings that had no effect, and what it takes for granted."""

from pathlib import Path

import pytest

import triosim as ts
from triosim.network.topology.machines import load_machine

MLP = str(Path(__file__).resolve().parents[1] / "sample_trace" / "mlp")
OPTICAL = {"case": 1, "gpus": 4, "interconnect": "optical"}


def run(**settings):
    return ts.simulate(ts.Scenario(trace_dir=MLP, **settings))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"case": 0, "topology": "torus"}, "The topology torus is unused: GPUs that train alone"),
        (OPTICAL | {"topology": "torus"}, "The topology torus is unused: the optical"),
        ({"case": 0, "dead_links": ("0-1",)}, "The dead links 0-1 are unused: GPUs that train"),
        (OPTICAL | {"dead_links": ("0-1",)}, "The dead links 0-1 are unused: the optical"),
        ({"case": 0, "algorithm": "tree"}, "The algorithm tree is unused: GPUs that train alone"),
        (OPTICAL | {"algorithm": "tree"}, "The algorithm tree is unused: the optical"),
        ({"case": 4, "gpus": 2, "algorithm": "tree"}, "The algorithm tree is unused: a pipeline"),
        ({"case": 0, "overlap_slowdown": 0.2}, "The slow-down of 0.2 is unused: GPUs that train"),
        (
            {"case": 1, "topology": "dgx-h100", "ptp_bandwidth_gb_per_s": 50},
            "The GPU to GPU bandwidth of 50 GB/s is unused: dgx-h100 has links of its own.",
        ),
        (
            {"case": 1, "topology": "dgx-h100", "latency_us": 5},
            "The latency of 5 us is unused: dgx-h100 has links of its own.",
        ),
        (OPTICAL | {"latency_us": 5}, "The latency of 5 us is unused: the optical interconnect"),
        ({"case": 1, "wavelengths": 4}, "The 4 wavelengths are unused: only the optical"),
        ({"case": 1, "circuit_setup_ms": 2}, "The circuit set-up time of 2 is unused"),
        ({"case": 1, "circuit_teardown_ms": 2}, "The circuit tear-down time of 2 is unused"),
        ({"case": 1, "seed": 3}, "The seed 3 is unused: nothing varies without jitter."),
        ({"case": 1, "slow_every": 5}, "One slow step in 5 is unused: no GPU has a speed of its"),
    ],
)
def test_a_setting_without_effect_is_named(settings, words):
    result = run(**settings)
    (warning,) = result.warnings
    assert warning.startswith(words)
    assert warning.endswith(".")


@pytest.mark.parametrize(
    "settings",
    [
        {"case": 1, "topology": "torus:2x4", "ptp_bandwidth_gb_per_s": 50, "latency_us": 5},
        {"case": 1, "topology": "Rail-Optimized:4x2", "latency_us": 5},
        {"case": 2, "topology": "dgx-h100", "algorithm": "ring", "overlap_slowdown": 0.1},
        {"case": 4, "gpus": 2, "topology": "ring", "dead_links": ("0-1=0.5",)},
        {"case": 2, "jitter": 0.1, "seed": 3, "rank_speed": {1: 0.5}, "slow_every": 5},
        OPTICAL | {"wavelengths": 8, "circuit_setup_ms": 1, "circuit_teardown_ms": 1},
    ],
)
def test_settings_with_effect_are_not(settings):
    assert run(**settings).warnings == ()


def test_a_machine_s_assumptions_are_the_result_s():
    result = run(case=2, gpus=16, topology="Seminar-H100")
    for sentence in load_machine("seminar-h100").assumptions:
        assert sentence in result.assumptions
    assert any("1.18 times as long beside communication" in k for k in result.assumptions)
    assert any("was measured to cost" in k for k in result.assumptions)
    ideal = run(case=2, gpus=16, topology="seminar-h100", protocol=False, overlap_slowdown=0)
    assert ideal.assumptions == load_machine("seminar-h100").assumptions
    assert run(case=2, gpus=16, topology="switch").assumptions == ()
    assert run(case=0, gpus=16, topology="seminar-h100").assumptions == ()
    assert result.to_dict()["assumptions"] == list(result.assumptions)


KEEPS = "A link with a share of its bandwidth left keeps all of its traffic"
ROUND = "Neighbours of TrioSim's ring are joined in both directions: what a dead link carried"


@pytest.mark.parametrize(
    ("settings", "beginnings"),
    [
        ({"case": 1, "dead_links": ("0-1",)}, [ROUND]),
        ({"case": 1, "dead_links": ("0-1=0.5",)}, [KEEPS]),
        ({"case": 3, "dead_links": ("0-1=0.5", "2-3")}, [KEEPS, ROUND]),
        ({"case": 1, "topology": "torus", "dead_links": ("0-1",)}, []),
        ({"case": 1, "topology": "torus", "dead_links": ("0-1=0.1",)}, [KEEPS]),
        ({"case": 4, "gpus": 2, "dead_links": ("0-1=0.1",)}, [KEEPS]),
        ({"case": 0, "dead_links": ("0-1=0.1", "1-2")}, []),
        (OPTICAL | {"dead_links": ("0-1=0.1", "1-2")}, []),
    ],
)
def test_where_traffic_goes_that_meets_a_faulty_link(settings, beginnings):
    found = run(**settings).assumptions
    assert [k.partition(",")[0] for k in found] == [
        KEEPS if k == KEEPS else f"{ROUND} goes the other way round" for k in beginnings
    ]


def test_a_dead_link_of_the_ring_loads_the_way_back():
    """The all-reduce of the other links is unchanged: what was lost goes over the idle ones."""
    whole, dead = (run(case=1, gpus=8, dead_links=k) for k in ((), ("0-1",)))
    nearly = run(case=1, gpus=8, dead_links=("0-1=0.1",))
    assert whole.total_ms <= dead.total_ms < nearly.total_ms


def test_which_of_many_steps_is_shown():
    said = run(case=1, rank_speed={1: 0.5}, slow_every=5, jitter=0.1).assumptions
    assert said[0] == "The step shown is the one in 5 in which slow GPUs are slow."
    assert said[1].startswith("The step shown is one of many")

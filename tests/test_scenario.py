"""What a scenario accepts, says and saves."""

from __future__ import annotations

import dataclasses
import json
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triosim import ConfigError, Description, Scenario
from triosim.scenario import checked_fields, read_scenario

# Field: lowest and highest legal value; from the issue, where it gives them.
WHOLE = {
    "case": (0, 4),
    "gpus": (1, 2**20),
    "batch_size": (1, 2**30),
    "batch_size_sim": (1, 2**30),
    "micro_batch_size": (1, 2**30),
    "accumulate": (1, 4096),
    "mesh_rows": (1, 2**20),
    "mesh_cols": (1, 2**20),
    "capacity_log2": (10, 60),
    "wavelengths": (1, 4096),
    "slow_every": (1, 1000),
    "seed": (0, 2**32 - 1),
}
NUMBERS = {
    "bandwidth_gb_per_s": (1e-6, 1e9),
    "ptp_bandwidth_gb_per_s": (1e-6, 1e9),
    "latency_us": (0, 1e9),
    "optical_gb_per_s": (1e-6, 1e9),
    "hop_latency_ns": (0, 1e12),
    "circuit_setup_ms": (0, 1e6),
    "circuit_teardown_ms": (0, 1e6),
    "bucket_mb": (1e-6, 1e6),
    "jitter": (0, 1),
}
CHOICES = {
    "ptp_convention": ("algbw", "link"),
    "interconnect": ("electrical", "optical"),
    "schedule": ("gpipe", "1f1b"),
    "stage_cut": ("time", "count"),
}
OPTIONAL = {"batch_size", "batch_size_sim", "micro_batch_size", "mesh_rows", "mesh_cols"}
OPTIONAL |= {"wavelengths"}
# From the table of the issue.
DEFAULTS = {
    "case": 0,
    "gpus": 8,
    "batch_size": None,
    "batch_size_sim": None,
    "micro_batch_size": None,
    "accumulate": 1,
    "bandwidth_gb_per_s": 696,
    "ptp_bandwidth_gb_per_s": 65,
    "ptp_convention": "algbw",
    "latency_us": 0,
    "interconnect": "electrical",
    "mesh_rows": None,
    "mesh_cols": None,
    "optical_gb_per_s": 64,
    "hop_latency_ns": 20,
    "circuit_setup_ms": 0,
    "circuit_teardown_ms": 0,
    "wavelengths": None,
    "topology": None,
    "algorithm": None,
    "protocol": True,
    "dead_links": (),
    "overlap_slowdown": None,
    "slow_every": 1,
    "jitter": 0,
    "seed": 0,
    "capacity_log2": 40,
    "resident": False,
    "bucket_mb": 25,
    "schedule": "gpipe",
    "stage_cut": "time",
    "rank_speed": None,
    "fold": True,
    "gpu": None,
    "trace_gpu": None,
}
NO_NUMBERS = [
    True,
    math.nan,
    math.inf,
    -math.inf,
    "1",
    "",
    b"1",
    [1],
    {},
    10**400,
    np.array([1, 2]),
]


def refused(field, value) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        Scenario(**{field: value})
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field} ")
    assert str(caught.value).endswith(".")
    return caught.value


def test_defaults():
    values = dataclasses.asdict(Scenario())
    assert values.pop("trace_dir").endswith("transformer")
    assert values == DEFAULTS


@pytest.mark.parametrize("field", WHOLE)
def test_whole_numbers(field):
    low, high = WHOLE[field]
    for value in (low, high, float(low), np.int64(high)):
        kept = getattr(Scenario(**{field: value}), field)
        assert kept == value
        assert type(kept) is int
    for value in (low - 1, high + 1, low + 0.5, *NO_NUMBERS):
        assert f"{low} to {high}" in refused(field, value).problem or (field, value) == ("case", 5)


@pytest.mark.parametrize("field", NUMBERS)
def test_numbers(field):
    low, high = NUMBERS[field]
    for value in (low, high, 1, np.float32(0.5)):
        kept = getattr(Scenario(**{field: value}), field)
        assert kept == value
        assert type(kept) is float
    for value in (math.nextafter(low, -1), math.nextafter(high, math.inf), -1, None, *NO_NUMBERS):
        assert refused(field, value).problem == f"must be a number from {low:g} to {high:g}"


@pytest.mark.parametrize("field", [*WHOLE, *CHOICES, "resident", "fold", "protocol"])
def test_none_is_legal_where_it_is_the_default(field):
    if field in OPTIONAL:
        assert getattr(Scenario(**{field: None}), field) is None
    else:
        refused(field, None)


@pytest.mark.parametrize("field", CHOICES)
def test_choices(field):
    for value in CHOICES[field]:
        assert getattr(Scenario(**{field: value}), field) == value
    for value in ("", "ALGBW", 0, 1, True, None, ["link"], math.nan):
        assert refused(field, value).problem == f"must be {' or '.join(CHOICES[field])}"


@pytest.mark.parametrize("field", ["resident", "fold", "protocol"])
def test_switches(field):
    for value in (0, 1, "true", "", None, math.nan):
        assert refused(field, value).problem == "must be true or false"


def test_a_topology_is_a_name_a_file_or_a_description(tmp_path):
    table = {"kind": "ring", "links": [{"gb_per_s": 50}]}
    described = Scenario(topology=table)
    assert described.topology == Description.from_dict(table)
    assert described == Scenario(topology=described.topology)
    assert len({described, Scenario(topology=table), Scenario()}) == 2
    assert Scenario.from_dict(json.loads(described.to_json())) == described
    file = tmp_path / "ring.json"
    file.write_text(json.dumps(table))
    assert Scenario(topology=str(file)).topology == str(file)
    assert Scenario(topology=" torus:2x4 ").topology == "torus:2x4"
    names = [Scenario(topology=k).topology_name for k in (None, "torus", table)]
    assert names == [None, "torus", "a described network (ring)"]


@pytest.mark.parametrize(
    "value", ["", "tours", "torus:2x", "ring:8", "no.toml", 5, [], {"kind": "x"}, {}]
)
def test_no_topology(value):
    refused("topology", value)


@pytest.mark.parametrize("value", ["", "rings", "Ring", 5, "all-reduce"])
def test_no_algorithm(value):
    assert refused("algorithm", value).problem.startswith("must be auto, ring, ")


def test_dead_links_are_connections_and_what_is_left_of_them():
    given = Scenario(dead_links=["3-4", " 0-1 = 0.5 ", "3-4"])
    assert given.dead_links == ("3-4", "0-1 = 0.5")
    assert given.faults == {"3-4": 0.0, "0-1": 0.5}
    assert Scenario(dead_links="3-4").faults == {"3-4": 0.0}
    assert Scenario(dead_links={"3-4": 0, "0-1": 0.25}).faults == {"3-4": 0.0, "0-1": 0.25}


@pytest.mark.parametrize(
    "value", [[""], ["=0.5"], ["3-4=1"], ["3-4=-0.1"], ["3-4=nan"], ["3-4=x"], [3], 5, None, [None]]
)
def test_no_dead_links(value):
    assert "connection" in refused("dead_links", value).problem


@pytest.mark.parametrize("share", ["1", "2", "nan", "-0.1", "x", ""])
def test_a_share_that_cannot_be_left(share):
    problem = refused("dead_links", [f"3-4={share}"]).problem
    assert "where the share left of its bandwidth is a number from 0 to below 1" in problem


@pytest.mark.parametrize("value", [-0.1, 10.5, math.nan, "0.2", True])
def test_no_slow_down(value):
    assert refused("overlap_slowdown", value).problem == "must be a number from 0 to 10"


@pytest.mark.parametrize(
    ("values", "placed"),
    [
        ({}, False),
        ({"case": 2}, False),
        ({"case": 2, "topology": "ring"}, True),
        ({"case": 0, "topology": "ring"}, False),
        ({"case": 2, "topology": "ring", "interconnect": "optical"}, False),
        ({"case": 2, "algorithm": "ring"}, False),
        ({"case": 2, "algorithm": "tree"}, True),
        ({"case": 4, "algorithm": "tree"}, False),
        ({"case": 4, "dead_links": ("0-1",)}, True),
    ],
)
def test_when_a_topology_joins_the_gpus(values, placed):
    assert Scenario(**values).on_topology is placed


def test_case_5_is_not_offered():
    assert refused("case", 5).problem == ("case 5 (Hop, backup workers) is not offered; use 0 to 4")


@pytest.mark.parametrize("value", [None, "", 5, True, b"x", ["a"], "a\0b"])
def test_no_folder(value):
    assert refused("trace_dir", value).problem == "must be the path of a folder"


def test_a_path_is_kept_as_text(tmp_path):
    assert Scenario(trace_dir=tmp_path).trace_dir == str(tmp_path)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (None, None),
        ({}, None),
        ({3: 1}, None),
        ({3: 0.5}, ((3, 0.5),)),
        ({5: 2, 3: 0.5, 0: 1.0}, ((3, 0.5), (5, 2.0))),
        (((3, 0.5), (1, 2)), ((1, 2.0), (3, 0.5))),
        ([[3, 0.5]], ((3, 0.5),)),
        ({np.int64(3): np.float32(0.5)}, ((3, 0.5),)),
        ({0: 1e-3, 7: 1e3}, ((0, 1e-3), (7, 1e3))),
    ],
)
def test_rank_speed(given, kept):
    scenario = Scenario(rank_speed=given)
    assert scenario.rank_speed == kept
    assert scenario.speeds == dict(kept or ())
    assert hash(scenario) == hash(Scenario(rank_speed=kept))


@pytest.mark.parametrize("rank", [8, -1, 0.5, True, "3", math.nan, math.inf, None])
def test_no_rank(rank):
    assert refused("rank_speed", {rank: 0.5}).problem == "ranks go from 0 to 7"


@pytest.mark.parametrize("speed", [0, -1, 0.0009, 1001, None, *NO_NUMBERS])
def test_no_speed(speed):
    assert refused("rank_speed", {3: speed}).problem == "must be a number from 0.001 to 1000"


@pytest.mark.parametrize("value", [3, "3=0.5", "ab", [3], [(1, 2, 3)], 0.5])
def test_no_map_of_speeds(value):
    assert "must map ranks to speeds" in refused("rank_speed", value).problem


def test_a_micro_batch_is_at_most_the_batch():
    assert Scenario(batch_size=8, micro_batch_size=8).micro_batch_size == 8
    assert Scenario(batch_size=4, batch_size_sim=8, micro_batch_size=8).micro_batch_size == 8
    for values in ({"batch_size": 8}, {"batch_size": 16, "batch_size_sim": 8}):
        with pytest.raises(ConfigError, match="micro_batch_size 9: must be at most the simulated"):
            Scenario(micro_batch_size=9, **values)


def test_frozen_hashable_equal():
    one, other = Scenario(gpus=4, rank_speed={1: 0.5}), Scenario(gpus=4.0, rank_speed={1: 0.5})
    assert one == other
    assert len({one, other, Scenario(gpus=5)}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.gpus = 3


@pytest.mark.parametrize(
    ("gpus", "rows", "cols", "mesh"),
    [
        (8, None, None, (1, 8)),
        (8, 2, None, (2, 4)),
        (8, None, 2, (4, 2)),
        (8, 8, None, (8, 1)),
        (8, 4, 2, (4, 2)),
        (1, None, None, (1, 1)),
        (7, None, 7, (1, 7)),
    ],
)
def test_mesh(gpus, rows, cols, mesh):
    scenario = Scenario(gpus=gpus, mesh_rows=rows, mesh_cols=cols, interconnect="optical")
    assert scenario.mesh == mesh


@pytest.mark.parametrize(
    ("rows", "cols", "field"),
    [(3, None, "mesh_rows"), (None, 3, "mesh_cols"), (2, 2, "mesh_rows"), (16, None, "mesh_rows")],
)
def test_a_mesh_that_does_not_fit(rows, cols, field):
    with pytest.raises(ConfigError, match="legal: 1 x 8, 2 x 4, 4 x 2, 8 x 1") as caught:
        Scenario(gpus=8, mesh_rows=rows, mesh_cols=cols, interconnect="optical")
    assert caught.value.field == field
    # Electrical links have no mesh.
    assert Scenario(gpus=8, mesh_rows=rows, mesh_cols=cols).mesh_rows == rows


def test_the_reference_of_the_speed_up_is_one_gpu_at_full_speed():
    scenario = Scenario(gpus=8, mesh_rows=2, interconnect="optical", rank_speed={3: 0.5}, case=2)
    more = {"topology": "ring", "dead_links": ("0-1",), "jitter": 0.1, "seed": 3, "slow_every": 2}
    assert dataclasses.replace(scenario, **more).on_one_gpu() == scenario.on_one_gpu()
    alone = scenario.on_one_gpu()
    assert (alone.gpus, alone.mesh, alone.speeds, alone.case) == (1, (1, 1), {}, 2)


def scenarios():
    """Random legal scenarios."""
    fields = {field: st.integers(*limits) for field, limits in WHOLE.items()}
    fields |= {field: st.floats(*limits) for field, limits in NUMBERS.items()}
    fields |= {field: st.sampled_from(values) for field, values in CHOICES.items()}
    fields |= {"resident": st.booleans(), "fold": st.booleans(), "trace_dir": st.just("a b")}
    ring = Description.from_dict({"kind": "ring", "links": [{"gb_per_s": 50}]})
    fields |= {
        "topology": st.sampled_from([None, "ring", "seminar-h100", "torus", ring]),
        "algorithm": st.sampled_from([None, "auto", "ring", "in-network"]),
        "protocol": st.booleans(),
        "dead_links": st.sampled_from([(), ("3-4",), ("0-1=0.5", "GPU 3-host 0:1")]),
        "overlap_slowdown": st.none() | st.floats(0, 10),
    }
    speeds = st.dictionaries(st.integers(0, 7), st.floats(1e-3, 1e3), max_size=3)
    fields["gpus"] = st.integers(8, 2**20)
    fields["mesh_cols"] = st.none()
    fields["micro_batch_size"] = st.none() | st.just(1)
    return st.fixed_dictionaries({}, optional=fields | {"rank_speed": speeds}).map(
        lambda values: (
            Scenario(**(values | {"mesh_rows": 1}))
            if values.get("interconnect") == "optical"
            else Scenario(**values)
        )
    )


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(scenarios())
def test_round_trip_through_json(scenario):
    assert Scenario.from_dict(scenario.to_dict()) == scenario
    assert Scenario.from_dict(json.loads(scenario.to_json())) == scenario


def test_saved_text_has_the_version_and_every_field():
    saved = json.loads(Scenario(rank_speed={3: 0.5}, trace_dir="t").to_json())
    assert saved == {
        **DEFAULTS,
        "dead_links": [],
        "schema_version": 1,
        "trace_dir": "t",
        "rank_speed": {"3": 0.5},
    }


def test_absent_fields_take_their_defaults():
    assert Scenario.from_dict({}) == Scenario()
    assert Scenario.from_dict({"gpus": 2}) == Scenario(gpus=2)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"graphics": 2}, r"scenario graphics: no such field; known are trace_dir, case, gpus"),
        ({"schema_version": 2}, r"schema_version 2: this program reads version 1\."),
        ({"schema_version": "1"}, r"schema_version 1: this program reads version 1\."),
        ({"schema_version": None}, r"schema_version None: this program"),
        ([], r"scenario list: must be a JSON object\."),
        (None, r"scenario NoneType: must be a JSON object\."),
        ({"rank_speed": {"x": 0.5}}, r"rank_speed x: a rank is a whole number from 0\."),
        ({"rank_speed": {"9": 0.5}}, r"rank_speed 9: ranks go from 0 to 7\."),
        ({"gpus": "8"}, r"gpus 8: must be a whole number from 1 to 1048576\."),
        ({"trace_dir": None}, r"trace_dir None: must be the path of a folder\."),
    ],
)
def test_no_saved_scenario(values, message):
    with pytest.raises(ConfigError, match=message):
        Scenario.from_dict(values)


def test_checked_fields_holds_only_what_is_given():
    assert checked_fields({"schema_version": 1, "gpus": 4, "rank_speed": {"1": 2}}) == (
        {"gpus": 4, "rank_speed": {1: 2}}
    )


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, b"\xff"])
def test_a_file_that_is_no_json(tmp_path, text):
    file = tmp_path / "s.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ConfigError, match=rf"scenario {re.escape(str(file))}: not a JSON file"):
        read_scenario(file)


def test_a_file_with_a_byte_order_mark(tmp_path):
    file = tmp_path / "s.json"
    file.write_text('\ufeff{"gpus": 4}', encoding="utf-8")
    assert read_scenario(file) == {"gpus": 4}


@pytest.mark.parametrize(("name", "problem"), [("no", "No such file"), (".", "Is a directory")])
def test_a_file_that_cannot_be_read(tmp_path, name, problem):
    with pytest.raises(ConfigError, match=problem):
        read_scenario(tmp_path / name)

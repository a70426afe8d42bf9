"""What a link leaves out must keep its meaning for as long as the version stays."""

import pytest

from dashboard.plain import micro
from dashboard.settings import SETTINGS, VERSION, number_text, range_text
from triosim import Scenario

DEFAULTS_OF_VERSION_1 = {
    "trace": "transformer",
    "case": 2,
    "gpu": None,
    "gpus": 8,
    "bandwidth_gb_per_s": 696.0,
    "interconnect": "electrical",
    "topology": None,
    "algorithm": None,
    "ptp_bandwidth_gb_per_s": 65.0,
    "latency_us": 0.0,
    "mesh_rows": 1,
    "mesh_cols": None,
    "batch_size_sim": None,
    "micro_batch_size": None,
    "capacity_log2": 40,
    "resident": False,
    "protocol": True,
    "ptp_convention": "algbw",
    "bucket_mb": 25.0,
    "accumulate": 1,
    "schedule": "gpipe",
    "stage_cut": "time",
    "optical_gb_per_s": 64.0,
    "hop_latency_ns": 20.0,
    "circuit_setup_ms": 0.0,
    "circuit_teardown_ms": 0.0,
    "wavelengths": None,
    "rank_speed": None,
    "slow_every": 1,
    "jitter": 0.0,
    "seed": 0,
    "dead_links": None,
    "own_network": None,
    "overlap_slowdown": None,
    "batch_size": None,
    "trace_gpu": None,
    "fold": True,
}


def test_defaults_are_those_of_the_version() -> None:
    assert VERSION == "1"
    assert {name: s.default for name, s in SETTINGS.items()} == DEFAULTS_OF_VERSION_1


def test_every_field_of_a_scenario_has_a_setting() -> None:
    fields = set(Scenario.__dataclass_fields__)
    assert {s.field for s in SETTINGS.values()} == fields | {"own_network"}  # of topology, too


def test_numbers_have_their_unit_in_the_label() -> None:
    plain = {"case", "gpus", "mesh_rows", "mesh_cols", "accumulate", "seed"}
    for setting in SETTINGS.values():
        if setting.kind in ("whole", "number") and setting.name not in plain:
            assert "(" in setting.label, setting.name


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1e-6, "0.000001"), (0.25, "0.25"), (-4.0, "-4"), (1e7, "10000000")],
)
def test_numbers_are_written_as_people_do(value: float, text: str) -> None:
    assert number_text(value) == text


def test_a_range_is_in_plain_numbers() -> None:
    assert range_text(1e-6, 1e9) == "0.000001 to 1,000,000,000"
    assert not any("e-" in setting.range_text for setting in SETTINGS.values())


def test_microseconds_have_their_sign_and_words_stay() -> None:
    assert micro("ring, 12.5 us: 3 used by us") == "ring, 12.5 \u00b5s: 3 used by us"

import base64
import contextlib
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

import triosim as ts
from dashboard.packed import MAX_UNPACKED, pack, unpack

SCENARIOS = [
    ts.Scenario(case=2, gpus=16, rank_speed={3: 0.5}, dead_links=("0-1=0.5",), topology="torus"),
    ts.Scenario(interconnect="optical", case=1, gpus=8, mesh_rows=2, mesh_cols=4),
    ts.TrainScenario(gpus=64, tp=2, sequence_parallel=True, constants={"gemm": 0.7}, compile=True),
    ts.TrainScenario(layers=4, hidden=256, heads=4, ffn=512, vocab=1000, rank_speed={1: 0.9}),
]


def packed(value):
    squeezed = zlib.compress(json.dumps(value).encode())
    return base64.urlsafe_b64encode(squeezed).decode().rstrip("=")


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_scenarios_come_back_as_they_were(count):
    assert unpack(pack(SCENARIOS[:count])) == SCENARIOS[:count]


def test_an_address_with_four_is_short_enough_for_any_browser():
    text = pack(SCENARIOS)
    assert len(text) < 1500
    assert set(text) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


def test_no_path_travels_and_none_is_read():
    text = pack([ts.Scenario()])
    squeezed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    assert b"/" not in zlib.decompress(squeezed)
    for wrong in (
        {"kind": "trace", "trace_dir": "/etc"},
        {"kind": "trace", "trace_dir": "../sample_trace/transformer"},
        {"kind": "train", "trace_dir": "/etc"},
        {"kind": "train", "config": "/etc/passwd"},
        {"kind": "train", "machine": "/etc/x.toml"},
        {"kind": "trace", "topology": "../x.json"},
    ):
        with pytest.raises(ts.ConfigError):
            unpack(packed([wrong]))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "***",
        "a" * 20_000,
        packed([]),
        packed({}),
        packed([1]),
        packed([{"kind": "other"}]),
        packed([{"kind": ["train"]}]),
        packed([{"kind": {}}]),
        packed([{"kind": "trace"}] * 5),
        packed([{"kind": "train", "gpus": "many"}]),
        packed([{"kind": "train", "gpus": [1]}]),
        packed([{"kind": "trace", "rank_speed": 3}]),
        packed([{"kind": "trace", "unheard": 3}]),
        packed([{"kind": "trace", "topology": {"kind": 3}}]),
        base64.urlsafe_b64encode(zlib.compress(b"[" * (MAX_UNPACKED + 1))).decode(),
        base64.urlsafe_b64encode(zlib.compress(b"[" * 100_000)).decode(),
    ],
)
def test_what_is_no_link_gets_one_sentence(text):
    with pytest.raises(ts.ConfigError) as caught:
        unpack(text)
    assert "\n" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
FIELDS = st.sampled_from(sorted(ts.TrainScenario().to_dict()) + sorted(ts.Scenario().to_dict()))


@given(st.dictionaries(FIELDS, JSON, max_size=4), st.sampled_from(["trace", "train"]))
def test_any_values_give_a_scenario_or_a_documented_error(values, kind):
    with contextlib.suppress(ts.TrioSimError):
        (scenario,) = unpack(packed([{"kind": kind, **values}]))
        assert unpack(pack([scenario])) == [scenario]

"""Readers of outside data return or refuse with one sentence, whatever they are given."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.fuzz_inputs import make_input, pack
from benchmarks.fuzz_readers import PART, READERS
from dashboard.train_configs import check_config
from triosim import Description
from triosim.errors import ConfigError, TraceFormatError, TrioSimError
from triosim.trace.read import TENSOR_COLUMNS

pytestmark = pytest.mark.usefixtures("quiet_streamlit")
INPUTS = 12  # of each reader; benchmarks/fuzz.py runs 200,000
few = settings(
    max_examples=INPUTS, derandomize=True, database=None, deadline=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


def read(name, data):
    """Whether an input was read; refusals are one sentence on one line that names no place here."""
    try:
        READERS[name].read(data)
    except TrioSimError as error:
        refusal = error
    else:
        return True
    assert type(refusal) in (ConfigError, TraceFormatError)
    assert str(refusal).endswith(".")
    assert len(str(refusal)) < 2_000
    return False


@pytest.mark.parametrize("name", READERS)
def test_what_inputs_are_made_from_is_read(name):
    """Or nothing of what follows would come past the first check."""
    reader = READERS[name]
    for seed in reader.seeds():
        assert read(name, pack(seed) if reader.form == "packed" else seed)


@pytest.mark.parametrize("name", READERS)
@few
@given(random=st.randoms(use_true_random=False))
def test_changed_inputs(name, random):
    reader = READERS[name]
    read(name, make_input(reader, reader.seeds(), random))


@pytest.mark.parametrize("name", READERS)
@few
@given(data=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_arbitrary_bytes(name, data):
    read(name, data)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.parametrize("name", [n for n, r in READERS.items() if r.form in ("json", "packed")])
@few
@given(value=JSON, name_of=st.sampled_from(["traceEvents", "nodes", "steps", "model_type", "case"]))
def test_arbitrary_json(name, value, name_of):
    read(name, json.dumps(value).encode())
    read(name, json.dumps({name_of: value}).encode())


# What the fuzzer found; each was another exception or took minutes.
DIGITS = "9" * 5000
META = b'{"batch_size": 4}'


def refused(name, data, match):
    with pytest.raises((ConfigError, TraceFormatError), match=match):
        READERS[name].read(data)


def test_a_number_of_more_digits_than_python_converts():
    refused("sweep", f"[sweep]\ngpus = [{DIGITS}]\n".encode(), "not a TOML file")
    refused("preset", b"x" + PART + f"minutes = {DIGITS}\n".encode(), "is no TOML")
    refused("topology", f'kind = "ring"\nshape = [{DIGITS}]\n'.encode(), "not a TOML file")
    refused("config", f'{{"model_type": {DIGITS}}}'.encode(), "is no JSON")


def test_a_size_of_more_digits_than_a_float_has():
    (config, *_) = READERS["config"].seeds()
    values = json.loads(config) | {"max_position_embeddings": 10**400}
    with pytest.raises(ConfigError, match=r"seq_len 1000000.*: must be a whole number"):
        check_config(json.dumps(values).encode())


def test_brackets_in_brackets():
    for name, opened in (("config", "["), ("scenario", '{"a":'), ("sweep", "a = [")):
        refused(name, (opened + "[" * 100_000).encode(), "is no JSON|not a JSON|not a TOML")


def test_a_table_of_a_million_columns():
    """Each name was counted among all: a hundred thousand took longer than a minute."""
    header = ",".join(TENSOR_COLUMNS) + ",a" * 10**6 + "\n"
    parts = READERS["trace"].seeds()[0].split(PART)
    refused("trace", PART.join([parts[0], header.encode()]), "column 'a' appears more than once")


def test_a_third_of_the_links_is_written_and_read_as_the_same():
    """50 GB/s, 8 to each of 4 hosts, over 3: bytes/s that were no multiple of a GB/s."""
    text = READERS["topology"].seeds()[0].replace(b"oversubscription = 2", b"oversubscription = 3")
    found = READERS["topology"].read(text)
    assert found.tiers[2].link.bytes_per_s == pytest.approx(50e9 * 4 * 8 / 3)
    assert Description.from_dict(found.to_dict()) == found


@pytest.mark.parametrize("word", [b'"pandas_type"', b'"columns"'])
def test_a_stored_batch_with_a_damaged_description_is_passed_over(word):
    batch = READERS["store"].seeds()[0]
    assert word in batch
    assert len(READERS["store"].read(batch)) == 1
    assert len(READERS["store"].read(batch.replace(word, word[:-2] + b'x"'))) in (0, 1)


def test_notes_of_a_recorder_in_utf_16_are_read_as_their_kind_was():
    profiler, graph, _ = READERS["upload"].seeds()[0].split(PART)
    notes = META.decode().encode("utf-16")
    reading = READERS["upload"].read(PART.join([profiler, graph, notes]))
    assert json.loads(reading.files["meta.json"])["batch_size"] == 4


def test_a_small_file_of_millions_of_empty_events_is_refused_early():
    bomb = gzip.compress(b'{"traceEvents": [' + b"{}," * 2**22)
    assert len(bomb) < 100_000
    refused("kineto", bomb, "more than 524,289 entries")

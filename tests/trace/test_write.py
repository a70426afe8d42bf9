"""A written trace reads back the same, here and with the original reader."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triosim import read_trace, write_trace
from triosim.trace.write import _microseconds

# The original reader finds columns by position.
TRACE_COLUMNS = [
    *("OperatorID", "OperatorName", "Operator_input", "Operator_output", "Operator_cudatime"),
    *("Operator_cudatimenooverlap", "InputSize", "OutputSize", "gpuid", "stage", "tpflag"),
]
TENSOR_COLUMNS = [
    *("Index", "TensorID", "TensorShape", "TensorNumElement", "TensorEachByte", "TensorType"),
    *("TensorStorgeid", "gpuid"),
]
SHIPPED = ["mlp", "convnet", "transformer"]


def records(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("name", SHIPPED)
def test_round_trip_of_the_shipped_traces(repository, tmp_path, name):
    source = repository / "sample_trace" / name
    trace = read_trace(source)
    write_trace(trace, tmp_path / "made" / "here")
    read = read_trace(tmp_path / "made" / "here")
    assert read.operators == trace.operators
    assert (read.name, read.batch_size, read.warnings) == (name, trace.batch_size, ())


@pytest.mark.parametrize("name", SHIPPED)
def test_written_files_are_the_original_ones(repository, tmp_path, name):
    """Which the original reader accepts: same columns, same order, integers as integers."""
    source = repository / "sample_trace" / name
    write_trace(read_trace(source), tmp_path)
    assert records(tmp_path / "trace.csv") == records(source / "trace.csv")
    written, original = records(tmp_path / "tensor.csv"), records(source / "tensor.csv")
    assert written[0] == original[0] == TENSOR_COLUMNS
    # Not the type: one tensor is one operator's output and another's input there.
    for rows in (written, original):
        for row in rows:
            del row[5], row[0]
    assert sorted(set(map(tuple, written))) == sorted(set(map(tuple, original)))


@pytest.mark.parametrize("name", ["vgg13", "resnet50"])
def test_upstream_operators_survive(upstream, tmp_path, name):
    trace = read_trace(upstream / name)
    write_trace(trace, tmp_path)
    assert read_trace(tmp_path).operators == trace.operators
    assert records(tmp_path / "trace.csv") == records(upstream / name / "trace.csv")


def test_odd_numbers_are_written_plainly(good, tmp_path):
    """What our reader accepts beyond the original one is not written: 1.5e3, 4.0, commas."""
    good.trace.put(2, "Operator_cudatimenooverlap", "1.0e2")
    good.trace.put(3, "Operator_cudatimenooverlap", "0.125")
    good.trace.put(2, "Operator_input", "[1.0, 2, 3]")
    good.trace.put(2, "tpflag", "1.0")
    good.tensor.put(2, "TensorNumElement", "1.536E+03")
    write_trace(good.read(), tmp_path / "out")
    header, conv, relu, *_ = records(tmp_path / "out" / "trace.csv")
    assert header == TRACE_COLUMNS
    assert conv[:4] == ["1", "aten::conv2d", "[1; 2; 3]", "[4]"]
    assert conv[4:] == ["100", "100", "[1536; 108; 4]", "[2048]", "0", "forward", "1"]
    assert relu[5] == "0.125"
    assert records(tmp_path / "out" / "tensor.csv")[1] == (
        ["0", "1", "[8, 3, 8, 8]", "1536", "4", "input", "101", "0"]
    )


def test_names_with_commas_quotes_and_line_breaks(good, tmp_path):
    trace = good.read()
    conv, relu, *rest = trace.operators
    named = (replace(conv, name='a, "b"; c\nd'), replace(relu, name="e\rf"), *rest)
    write_trace(replace(trace, operators=named), tmp_path / "out")
    names = [op.name for op in read_trace(tmp_path / "out").operators[:2]]
    assert names == ['a, "b"; c\nd', "e f"]


def test_meta_json_keeps_what_it_held_but_for_the_batch(good, tmp_path):
    good.overwrite("meta.json", '{"batch_size": 4, "name": "n", "gpu": "H100"}')
    trace = good.read()
    write_trace(trace.at_batch(16), tmp_path / "out")
    meta = json.loads((tmp_path / "out" / "meta.json").read_text())
    assert meta == {"batch_size": 16, "name": "n", "gpu": "H100"}
    assert read_trace(tmp_path / "out").batch_size == 16


def test_a_trace_without_tpflag_is_written_for_a_reader_that_wants_one(good, tmp_path):
    good.trace.drop("tpflag")
    write_trace(good.read(), tmp_path / "out")
    assert {row[-1] for row in records(tmp_path / "out" / "trace.csv")[1:]} == {"0"}


@settings(deadline=None, derandomize=True, database=None, max_examples=500)
@given(st.decimals(0, 10**9, places=6))
def test_times_with_decimals_survive(microseconds):
    seconds = float(microseconds) * 1e-6
    assert float(_microseconds(seconds)) * 1e-6 == seconds


def test_optional_columns_come_back(tmp_path, in_words):
    trace = in_words(("forward", "aten::linear", [1], [2]), ("forward", "aten::relu", [2], [3]))
    full = replace(
        trace.operators[0],
        tensor_parallel=True,
        busy_time_s=trace.operators[0].time_s,
        module="model.layers.0",
        flops=3.5e9,
        bytes=1024.0,
        dtype="bf16",
        saved_bytes=77,
        provenance="roofline",
    )
    trace = replace(trace, operators=(full, *trace.operators[1:]))
    write_trace(trace, tmp_path / "out")
    assert read_trace(tmp_path / "out").operators[0] == full
    assert read_trace(tmp_path / "out").operators[1].provenance == "measured"

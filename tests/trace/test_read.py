"""Reading good traces: columns by name, lists, batch size, meta.json."""

from __future__ import annotations

import random

import pytest

from triosim import TraceFormatError, load_trace, read_trace, write_trace

SHIPPED = {"mlp": 64, "convnet": 32, "transformer": 8}


def test_an_operator_as_the_file_says_it(good):
    conv = good.read().operators[0]
    assert (conv.id, conv.name, conv.phase) == (1, "aten::conv2d", "forward")
    assert conv.time_s == pytest.approx(100e-6, rel=1e-15)
    assert conv.tensor_parallel is True
    assert [tensor.id for tensor in conv.inputs] == [1, 2, 3]
    (output,) = conv.outputs
    assert (output.id, output.storage, output.shape) == (4, 104, (8, 4, 8, 8))
    assert (output.numel, output.element_bytes, output.bytes) == (2048, 4, 8192)
    assert output.kind == "output"


def test_time_with_and_without_overlap(good):
    good.trace.put(2, "Operator_cudatime", "120")
    conv = good.read().operators[0]
    assert conv.busy_time_s == pytest.approx(120e-6)
    assert conv.time_s == pytest.approx(100e-6)


@pytest.mark.parametrize("column", ["Operator_cudatime", "InputSize", "OutputSize", "gpuid"])
def test_optional_columns_of_operators(good, column):
    want = [(op.id, op.time_s, op.inputs, op.outputs) for op in good.read().operators]
    good.trace.drop(column)
    trace = good.read()
    assert [(op.id, op.time_s, op.inputs, op.outputs) for op in trace.operators] == want
    assert trace.warnings == ()


@pytest.mark.parametrize("column", ["Index", "TensorType", "gpuid"])
def test_optional_columns_of_tensors(good, column):
    want = [[tensor.id for tensor in op.inputs] for op in good.read().operators]
    good.tensor.drop(column)
    assert [[tensor.id for tensor in op.inputs] for op in good.read().operators] == want


def test_extra_columns_are_ignored(good):
    want = good.read().operators
    for table in good.tables.values():
        for number, row in enumerate(table.rows):
            row.insert(1, "stream" if number == 0 else "nan")
            row.append("" if number == 0 else "'\";")
    assert good.read().operators == want


def test_spaces_around_values_and_column_names(good):
    want = good.read().operators
    for table in good.tables.values():
        table.rows = [[f" {value}\t" for value in row] for row in table.rows]
    assert good.read().operators == want


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_tensor_rows_does_not_matter(good, seed):
    # The same tensor with other words, and an id that is used for another size.
    good.tensor.rows += [
        ["15", "4", "[2048]", "2048", "4", "input", "104", "0"],
        ["16", "4", "[2, 1024]", "2048", "4", "input", "104", "0"],
        ["17", "4", "[9]", "9", "4", "output", "104", "0"],
        ["18", "1", "[2, 768]", "1536", "4", "input", "101", "0"],
    ]
    want = good.read()
    header, *rows = good.tensor.rows
    random.Random(seed).shuffle(rows)
    good.tensor.rows = [header, *rows]
    read = good.read()
    assert (read.operators, read.batch_size) == (want.operators, want.batch_size)


def test_a_size_chooses_between_tensors_of_one_id(good):
    good.tensor.rows.append(["15", "4", "[9]", "9", "8", "output", "777", "0"])
    good.trace.put(3, "InputSize", "[9]")
    relu = good.read().operators[1]
    assert (relu.inputs[0].storage, relu.inputs[0].bytes) == (777, 72)
    assert (relu.outputs[0].storage, relu.outputs[0].bytes) == (104, 8192)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("[1; 2; 3]", [1, 2, 3]),
        ("[1, 2, 3]", [1, 2, 3]),
        ("[1;2;3]", [1, 2, 3]),
        ("  [ 1 ;2;  3 ]", [1, 2, 3]),
        ("[1.0; 2e0; .3E1]", [1, 2, 3]),
        ("[]", []),
        ("[ ]", []),
    ],
)
def test_forms_of_a_list(good, text, ids):
    good.trace.put(2, "Operator_input", text)
    good.trace.put(2, "InputSize", "")
    assert [tensor.id for tensor in good.read().operators[0].inputs] == ids


@pytest.mark.parametrize(
    ("flag", "value"), [("0", False), ("1", True), ("1.0", True), ("0e0", False), ("", None)]
)
def test_forms_of_tpflag(good, flag, value):
    good.trace.put(2, "tpflag", flag)
    assert good.read().operators[0].tensor_parallel is value


@pytest.mark.parametrize("text", ["", "\n", "   \n", ",,,\n", "\r\n"])
def test_blank_lines_are_passed_over(good, text):
    want = good.read().operators
    for name, table in good.tables.items():
        lines = table.text().splitlines(keepends=True)
        good.overwrite(name, text + text.join(lines) + text)
    assert read_trace(good.path).operators == want


@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_endings_and_byte_order_mark(good, ending, mark):
    want = good.read().operators
    for name, table in good.tables.items():
        good.overwrite(name, mark + table.text().rstrip("\n").replace("\n", ending))
    assert read_trace(good.path).operators == want


def test_one_operator_may_list_very_many_tensors(good):
    """A fused optimizer step of a large model: one field of 340,000 characters."""
    ids = range(1_000_000, 1_040_000)
    good.tensor.rows += [["", str(i), "[1]", "1", "4", "", str(i), "0"] for i in ids]
    good.trace.put(10, "Operator_input", "[" + "; ".join(map(str, ids)) + "]")
    good.trace.put(10, "InputSize", "[" + "; ".join("1" for _ in ids) + "]")
    assert [tensor.id for tensor in good.read().operators[-1].inputs] == list(ids)


@pytest.mark.parametrize("name", SHIPPED)
def test_batch_size_of_the_shipped_traces(name, repository):
    assert read_trace(repository / "sample_trace" / name).batch_size == SHIPPED[name]


@pytest.mark.parametrize("name", ["vgg13", "resnet50"])
def test_batch_size_of_the_upstream_traces(upstream, name):
    assert read_trace(upstream / name).batch_size == 128


@pytest.mark.parametrize(
    ("meta", "batch_size"),
    [
        ('{"batch_size": 3}', 3),
        ('\ufeff{"batch_size": 3}', 3),
        ('{"batch_size": null}', 8),
        ('{"name": "a"}', 8),
        ("{}", 8),
    ],
)
def test_meta_json_wins_over_the_first_dimension(good, meta, batch_size):
    good.overwrite("meta.json", meta)
    assert good.read().batch_size == batch_size


@pytest.mark.parametrize(
    ("line", "column", "value"),
    [(2, "TensorShape", "[]"), (2, "TensorShape", ""), (2, "TensorShape", "[0, 3]")],
)
def test_a_batch_that_cannot_be_told_is_one_with_a_warning(good, line, column, value):
    good.tensor.put(line, column, value)
    trace = good.read()
    assert trace.batch_size == 1
    assert [w for w in trace.warnings if "batch" in w] != []


def test_the_first_forward_operator_decides_the_batch(good):
    good.trace.rows[1], good.trace.rows[5] = good.trace.rows[5], good.trace.rows[1]
    # Backward comes first now; the first forward operator is relu_ on [8, 4, 8, 8].
    good.tensor.put(5, "TensorShape", "[16, 128]")
    assert good.read().batch_size == 16


@pytest.mark.parametrize("sizes", ["[1536; 108]", "[1536; 108; 4; 4]"])
def test_a_list_of_sizes_of_another_length_is_a_warning(good, sizes):
    want = good.read().operators
    good.trace.put(2, "InputSize", sizes)
    trace = good.read()
    assert trace.operators == want
    (warning,) = trace.warnings
    assert warning.startswith("trace.csv, line 2: 3 tensors in Operator_input but")


@pytest.mark.parametrize("name", ["trace.csv", "tensor.csv", "meta.json"])
def test_a_changed_file_is_read_again(good, name):
    good.overwrite("meta.json", '{"batch_size": 4}')
    before = load_trace(good.write())
    assert load_trace(good.path) is before
    good.overwrite(name, (good.path / name).read_text() + "\n")
    assert load_trace(good.path) is not before


def test_where_times_come_from_without_a_column(repository, tmp_path):
    """The shipped hand-made traces say that no GPU has run them."""
    trace = read_trace(repository / "sample_trace" / "mlp")
    assert {op.provenance for op in trace.operators} == {"roofline"}
    write_trace(trace, tmp_path / "copy")
    assert read_trace(tmp_path / "copy").operators == trace.operators
    (tmp_path / "copy" / "meta.json").write_text('{"provenance": "guessed"}')
    with pytest.raises(TraceFormatError, match=r"meta\.json: provenance is 'guessed'"):
        read_trace(tmp_path / "copy")

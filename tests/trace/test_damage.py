"""Every kind of damage to a trace is one sentence that names the place."""

from __future__ import annotations

import os
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from triosim import Scenario, TraceFormatError, TrioSimError, read_trace, simulate
from triosim.trace.table import read_rows

REQUIRED = [
    ("trace.csv", "OperatorID"),
    ("trace.csv", "OperatorName"),
    ("trace.csv", "Operator_input"),
    ("trace.csv", "Operator_output"),
    ("trace.csv", "Operator_cudatimenooverlap"),
    ("trace.csv", "stage"),
    ("tensor.csv", "TensorID"),
    ("tensor.csv", "TensorNumElement"),
    ("tensor.csv", "TensorEachByte"),
    ("tensor.csv", "TensorStorgeid"),
]
WHOLE = [
    ("trace.csv", "OperatorID"),
    ("tensor.csv", "TensorID"),
    ("tensor.csv", "TensorNumElement"),
    ("tensor.csv", "TensorEachByte"),
    ("tensor.csv", "TensorStorgeid"),
]
TIMES = [("trace.csv", "Operator_cudatimenooverlap"), ("trace.csv", "Operator_cudatime")]
LISTS = [
    ("trace.csv", "Operator_input"),
    ("trace.csv", "Operator_output"),
    ("trace.csv", "InputSize"),
    ("trace.csv", "OutputSize"),
    ("tensor.csv", "TensorShape"),
]
NO_NUMBERS = ["nan", "inf", "-inf", "-1", "abc", "1e400", str(2**63), "0x10", "1 2", "1,5", "--1"]


def sentence(folder) -> str:
    """What reading the folder says, which must be one sentence on one line."""
    with pytest.raises(TraceFormatError) as caught:
        read_trace(folder)
    text = str(caught.value)
    assert text.isprintable()
    assert text.endswith(".")
    assert len(text) < 400
    return text


def place(file: str, line: int, column: str, value: str) -> str:
    return f"{file}, line {line}, column {column}, value {value!r}: "


@pytest.mark.parametrize(("file", "column"), REQUIRED)
def test_a_missing_column(good, file, column):
    good.tables[file].drop(column)
    text = sentence(good.write())
    assert text.startswith(f"{file}, line 1: column {column} is missing; it has ")


@pytest.mark.parametrize(("file", "column"), [*REQUIRED, *LISTS, ("trace.csv", "gpuid")])
def test_a_repeated_column(good, file, column):
    table = good.tables[file]
    for row in table.rows:
        row.append(row[table.column(column)])
    assert sentence(good.write()).startswith(
        f"{file}, line 1: column '{column}' appears more than once"
    )


@pytest.mark.parametrize("value", [*NO_NUMBERS, "", "1.5", "1e-1"])
@pytest.mark.parametrize(("file", "column"), WHOLE)
def test_no_whole_number(good, file, column, value):
    good.tables[file].put(4, column, value)
    want = place(file, 4, column, value) + "must be a whole number from 0 to 2^63 - 1."
    assert sentence(good.write()) == want


@pytest.mark.parametrize("value", NO_NUMBERS)
@pytest.mark.parametrize(("file", "column"), TIMES)
def test_no_time(good, file, column, value):
    good.tables[file].put(4, column, value)
    want = place(file, 4, column, value) + "must be a number from 0 to 2^63 - 1."
    assert sentence(good.write()) == want


def test_no_time_at_all(good):
    good.trace.put(4, TIMES[0][1], "")
    assert sentence(good.write()).startswith(place("trace.csv", 4, TIMES[0][1], ""))


@pytest.mark.parametrize("value", ["2", "-1", "nan", "inf", "abc", "1e400", "0.5", str(2**63)])
def test_no_tpflag(good, value):
    good.trace.put(7, "tpflag", value)
    assert sentence(good.write()).startswith(place("trace.csv", 7, "tpflag", value) + "must be ")


@pytest.mark.parametrize("value", ["", "Forward", "fwd", "0", "forward backward"])
def test_an_unknown_phase(good, value):
    good.trace.put(3, "stage", value)
    assert sentence(good.write()) == (
        place("trace.csv", 3, "stage", value) + "must be forward, backward or optimizer."
    )


@pytest.mark.parametrize(
    "value",
    [
        *("[1; 2", "1; 2]", "1;2", "1", "(1; 2)", "{1}", "[1 2]", "[1;; 2]", "[;]", "[1;]", "[a]"),
        *("[[1]; 2]", "[nan]", "[-1]", "[1e400]", f"[{2**63}]", "[1.5]", "[1; 2,3]", "[None]"),
    ],
)
@pytest.mark.parametrize(("file", "column"), LISTS)
def test_no_list(good, file, column, value):
    good.tables[file].put(2, column, value)
    text = sentence(good.write())
    assert text.startswith(place(file, 2, column, value))
    assert re.search(r"must be a (list such as \[4; 6; 8\]|whole number from 0 to 2\^63 - 1)", text)


@pytest.mark.parametrize("column", ["Operator_input", "Operator_output"])
def test_an_empty_cell_is_no_list_of_tensors(good, column):
    good.trace.put(2, column, "")
    assert sentence(good.write()).startswith(place("trace.csv", 2, column, "") + "must be a list")


@pytest.mark.parametrize("column", ["Operator_input", "Operator_output"])
@pytest.mark.parametrize("line", [2, 6, 10])
def test_a_tensor_that_does_not_exist(good, column, line):
    good.trace.put(line, column, "[4; 99]")
    text = sentence(good.write())
    assert text == place("trace.csv", line, column, "[4; 99]") + "tensor 99 is not in tensor.csv."


@pytest.mark.parametrize(
    ("line", "column", "value"), [(2, "InputSize", "[1536; 109; 4]"), (3, "OutputSize", "[1]")]
)
def test_a_size_that_tensor_csv_does_not_know(good, line, column, value):
    good.trace.put(line, column, value)
    assert re.fullmatch(
        re.escape(place("trace.csv", line, column, value))
        + r"tensor \d has (109|1) elements here and (108|2048) in tensor\.csv\.",
        sentence(good.write()),
    )


@pytest.mark.parametrize("line", [2, 5, -1])
@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize("file", ["trace.csv", "tensor.csv"])
def test_a_row_that_is_too_short_or_too_long(good, file, line, change):
    rows = good.tables[file].rows
    fields = len(rows[0])
    number = line if line > 0 else len(rows)
    row = rows[number - 1]
    rows[number - 1] = row[:-1] if change < 0 else [*row, "0"]
    assert sentence(good.write()).startswith(
        f"{file}, line {number}: {fields + change} of {fields} fields"
    )


@pytest.mark.parametrize("file", ["trace.csv", "tensor.csv"])
def test_a_header_with_a_column_too_many(good, file):
    header = good.tables[file].rows[0]
    fields = len(header)
    header.append("more")
    assert sentence(good.write()).startswith(f"{file}, line 2: {fields} of {fields + 1} fields")


@pytest.mark.parametrize("file", ["trace.csv", "tensor.csv"])
@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff", "  \n"])
def test_an_empty_file(good, file, content):
    good.write()
    assert sentence(good.overwrite(file, content)).startswith(f"{file}: the file is empty")


def test_no_tensors(good):
    del good.tensor.rows[1:]
    assert sentence(good.write()).endswith("tensor 1 is not in tensor.csv.")


@pytest.mark.parametrize("file", ["trace.csv", "tensor.csv"])
@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda text: text.encode("utf-16"), ", line 1: byte 0xff is not UTF-8"),
        (lambda text: text.encode("utf-16-le"), ", line 1: holds a NUL character"),
        (
            lambda text: text.replace("4", "\u00e9", 1).encode("latin-1"),
            ", line \\d: byte 0xe9 is not UTF-8",
        ),
        (lambda text: text.replace("\n", "\n\0", 1), ", line 2: holds a NUL character"),
        (lambda text: text.replace("\n", '\n"', 1), ", line 2: not CSV"),
        (lambda text: text.replace("\n", '\n"2"', 1), ", line 2: not CSV"),
        (lambda text: text.replace(",", ";"), ", line 1: column .* is missing"),
        (lambda text: "PK\x03\x04", ", line 1: column .* is missing"),
    ],
    ids=["utf-16", "utf-16 without mark", "latin-1", "NUL", "open quote", "quote", ";", "zip"],
)
def test_no_csv(good, file, damage, problem):
    good.write()
    good.overwrite(file, damage((good.path / file).read_text()))
    assert re.match(re.escape(file) + problem, sentence(good.path))


def test_lines_are_counted_as_an_editor_does(good):
    """Blank lines count, and a field with line breaks stands on the line that it begins on."""
    good.trace.put(3, "OperatorName", "two\nlines")
    good.trace.put(4, "stage", "two\nmore")
    good.write()
    text = good.trace.text().replace("\n", "\n\n", 1).replace("\n", "\r\n")
    assert sentence(good.overwrite("trace.csv", text)).startswith("trace.csv, line 6, column stage")


def test_long_and_unprintable_values_are_shown_short(good):
    good.trace.put(2, "stage", "\n\x1b[31m" + "x" * 10**6)
    assert "\\n\\x1b[31mxxx" in sentence(good.write())
    good.trace.put(2, "stage", "forward")
    good.trace.put(2, "Operator_input", f"[{'7' * 10**6}]")
    assert "7..." in sentence(good.write())
    good.tensor.rows[0] = ["\n" + "y" * 10**5]
    sentence(good.write())


def test_operators_of_two_gpus(good):
    good.trace.put(5, "gpuid", "1")
    assert sentence(good.write()) == (
        place("trace.csv", 5, "gpuid", "1") + "line 2 is on another GPU and a trace is one GPU's."
    )


@pytest.mark.parametrize(("column", "value"), [("TensorEachByte", "8"), ("TensorStorgeid", "1")])
def test_one_tensor_described_in_two_ways(good, column, value):
    good.tensor.rows.append(list(good.tensor.rows[3]))
    good.tensor.put(17, column, value)
    assert sentence(good.write()).startswith(
        place("tensor.csv", 17, "TensorID", "3") + "line 4 gives this tensor"
    )


def test_repeated_operator_ids_are_named_pair_by_pair(good):
    for line in (3, 4, 8):
        good.trace.put(line, "OperatorID", "1")
    trace = good.read()
    assert len(trace.operators) == 9
    assert [re.findall(r"lines (\d+) and (\d+)", w) for w in trace.warnings] == (
        [[("2", "3")], [("2", "4")], [("2", "8")]]
    )


@pytest.mark.parametrize(
    "meta",
    [
        *("", "{", "batch_size: 8", "[]", "3", '"x"', "null", b"\xff\xfe{}", "[" * 100_000),
        *(f'{{"batch_size": {v}}}' for v in ("0", "-1", "1.5", '"8"', "true", "[]", "1e400")),
        '{"batch_size": ' + "9" * 5000 + "}",
    ],
)
def test_no_meta_json(good, meta):
    good.write()
    assert sentence(good.overwrite("meta.json", meta)).startswith("meta.json: ")


@pytest.mark.parametrize("name", ["absent", "trace.csv", "x" * 300, "nul\0", "trace.csv/deeper"])
def test_no_folder(good, name):
    good.write()
    with pytest.raises(TraceFormatError, match=r"no such folder; it should hold trace\.csv and"):
        read_trace(good.path / name)


def test_no_folder_for_the_cache_either(good):
    with pytest.raises(TraceFormatError, match="no such folder"):
        simulate(Scenario(trace_dir=str(good.path / ("x" * 300))))


@pytest.mark.parametrize("file", ["trace.csv", "tensor.csv"])
def test_a_missing_file(good, file):
    (good.write() / file).unlink()
    assert sentence(good.path).startswith(f"{file}: No such file or directory (")


@pytest.mark.parametrize("file", ["trace.csv", "tensor.csv", "meta.json"])
def test_a_folder_in_the_place_of_a_file(good, file):
    (good.write() / file).unlink(missing_ok=True)
    (good.path / file).mkdir()
    text = sentence(good.path)
    assert text.startswith(f"{file}: ")
    assert "Is a directory" in text


@pytest.mark.parametrize("file", ["trace.csv", "tensor.csv", "meta.json"])
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_may_not_be_read(good, file):
    good.overwrite("meta.json", "{}")
    (good.write() / file).chmod(0)
    assert sentence(good.path).startswith(f"{file}: ")


def test_readers_do_not_disturb_each_other(good):
    """The csv module has one limit for all readers of the process."""
    good.trace.put(10, "OperatorName", "x" * 200_000)
    path = good.write() / "trace.csv"
    one, other = read_rows(path, ()), read_rows(path, ())
    next(one), next(other)
    assert len(list(one)) == 8
    assert len(list(other)) == 8


NASTY = st.sampled_from(
    [
        *(*NO_NUMBERS, "", "0", "1", "[", "]", "[]", "[1]", "[4; 4]", "[0]", "1e18", "1_0"),
        *('"', "\n", "\r", "forward", "backward", "optimizer", "\u0661", "=1", str(2**63 - 1)),
    ]
)
FILES = st.sampled_from(["trace.csv", "tensor.csv"])
CELLS = st.lists(
    st.tuples(FILES, st.integers(0, 15), st.integers(0, 10), NASTY | st.text(max_size=4)),
    min_size=1,
    max_size=4,
)
BYTES = st.lists(
    st.tuples(FILES, st.integers(0, 1200), st.integers(0, 3), st.binary(max_size=3)),
    min_size=1,
    max_size=6,
)


def reads_or_says_why(folder) -> None:
    said = "trace.csv"
    try:
        read_trace(folder)
    except TraceFormatError as error:
        said = str(error)
    assert re.match(r"(trace|tensor)\.csv", said)
    assert said.isprintable()


few = settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@few
@given(cells=CELLS)
def test_random_cells(good, cells):
    good = type(good)(good.path)
    for file, line, column, value in cells:
        rows = good.tables[file].rows
        row = rows[line % len(rows)]
        row[column % len(row)] = value
    reads_or_says_why(good.write())


@few
@given(changes=BYTES)
def test_random_bytes(good, changes):
    good.write()
    for file, start, length, put in changes:
        data = (good.path / file).read_bytes()
        start %= len(data)
        good.overwrite(file, data[:start] + put + data[start + length :])
    reads_or_says_why(good.path)


@settings(few, max_examples=60)
@given(cells=CELLS, case=st.integers(0, 4), gpus=st.integers(1, 4), resident=st.booleans())
def test_what_reads_can_be_simulated_or_says_why(good, cells, case, gpus, resident):
    good = type(good)(good.path)
    for file, line, column, value in cells:
        rows = good.tables[file].rows
        row = rows[max(1, line % len(rows))]
        row[column % len(row)] = value
    scenario = Scenario(trace_dir=str(good.write()), case=case, gpus=gpus, resident=resident)
    try:
        result = simulate(scenario)
    except TrioSimError:
        return
    assert [check.detail for check in result.checks if not check.passed] == []

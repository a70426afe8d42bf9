"""The odd traces of shared/traces/ODD_CSV.md, each with the behaviour that it asks for."""

from __future__ import annotations

import pytest

from triosim import Scenario, read_trace, simulate
from triosim.cli import main

# Folder: step time on one GPU in ms, and the warning that must be there.
RUNS = {
    "c00_good": (0.510, None),
    "c04_reordered_columns": (0.510, None),
    "c08_zero_time": (0.480, None),
    "c10_duplicate_operator_ids": (0.510, "trace.csv, lines 4 and 5: OperatorID 3 stands twice"),
    "c12_forward_only": (0.180, None),
    "c13_no_tpflag_column": (0.510, None),
    "c15_one_operator": (0.100, None),
    "c16_bom_crlf_unicode_no_final_newline": (0.510, None),
    "c18_scientific_numbers": (0.510, None),
    "c25_size_list_shorter_than_ids": (0.510, "trace.csv, line 2: 3 tensors in Operator_input"),
}
ERRORS = {
    "c01_empty_files": "trace.csv: the file is empty, it has not even a header",
    "c02_header_only": "trace.csv: it has a header and no operators",
    "c03_missing_column_nooverlap": "trace.csv, line 1: column Operator_cudatimenooverlap is",
    "c05_unknown_tensor_id": "trace.csv, line 7, column Operator_input, value '[11; 99]': tensor "
    "99 is not in tensor.csv",
    "c06_negative_time": "trace.csv, line 8, column Operator_cudatimenooverlap, value '-25': must",
    "c07_nan_time": "trace.csv, line 4, column Operator_cudatimenooverlap, value 'nan': must be",
    "c24_ragged_last_row": "trace.csv, line 10: 5 of 11 fields; each line must have as many",
}


@pytest.fixture
def odd(shared):
    return shared / "traces" / "odd_csv"


def alone(folder, **settings):
    return simulate(Scenario(trace_dir=str(folder), gpus=1, resident=True, **settings))


def test_every_odd_trace_is_here(odd):
    assert {folder.name for folder in odd.iterdir()} == RUNS.keys() | ERRORS.keys()


@pytest.mark.parametrize("name", RUNS)
def test_runs(odd, name):
    total_ms, warning = RUNS[name]
    result = alone(odd / name)
    assert result.total_ms == pytest.approx(total_ms, rel=1e-12)
    named = [w for w in result.warnings if "trace.csv" in w]
    assert len(named) == (warning is not None)
    assert all(w.startswith(warning) for w in named)


@pytest.mark.parametrize("name", ERRORS)
def test_errors(odd, name, capsys, tmp_path):
    written = tmp_path / "result.json"
    status = main(["-trace-dir", str(odd / name), "--json", str(written)])
    out, err = capsys.readouterr()
    assert (status, out, written.exists()) == (1, "", False)
    assert err.startswith(f"triosim: {ERRORS[name]}")
    assert err.count("\n") == 1
    assert err.endswith(".\n")


def test_the_base_of_the_tests_is_the_good_trace(odd, good):
    folder = good.write()
    for name in ("trace.csv", "tensor.csv"):
        assert (folder / name).read_text() == (odd / "c00_good" / name).read_text()


def test_gradients_of_the_good_trace_are_all_reduced_once(odd):
    result = simulate(Scenario(trace_dir=str(odd / "c00_good"), case=2, gpus=2, bucket_mb=1e-6))
    sent = result.timeline.query("phase == 'all-reduce'")
    assert sent["bytes"].tolist() == [10_240, 432]
    assert sent["waited_for"].str.endswith(("AddmmBackward0", "ConvolutionBackward0")).all()


def test_reordered_columns_are_found_by_name(odd):
    assert read_trace(odd / "c04_reordered_columns").operators == (
        read_trace(odd / "c00_good").operators
    )


def test_scientific_numbers_are_the_same_numbers(odd):
    read, good = (read_trace(odd / name) for name in ("c18_scientific_numbers", "c00_good"))
    assert read.operators == good.operators


def test_both_rows_of_a_repeated_id_count(odd):
    assert [op.id for op in read_trace(odd / "c10_duplicate_operator_ids").operators] == (
        [1, 2, 3, 3, 5, 6, 7, 8, 9]
    )


def test_forward_only_says_that_nothing_is_all_reduced(odd):
    result = simulate(Scenario(trace_dir=str(odd / "c12_forward_only"), case=1, gpus=4))
    assert result.communication_bytes == 0
    assert any("no gradients to all-reduce" in warning for warning in result.warnings)


def test_without_tpflag_only_tensor_parallel_stops(odd, capsys):
    folder = str(odd / "c13_no_tpflag_column")
    for case in ("0", "1", "2", "4"):
        assert main(["-trace-dir", folder, "-case", case, "-GPUnumber", "2", "--quiet"]) == 0
    assert main(["-trace-dir", folder, "-case", "3", "-GPUnumber", "2"]) == 1
    assert "tpflag" in capsys.readouterr().err


def test_more_stages_than_operators_is_an_error(odd, capsys):
    folder = str(odd / "c15_one_operator")
    assert main(["-trace-dir", folder, "-case", "4", "-GPUnumber", "1", "--quiet"]) == 0
    assert main(["-trace-dir", folder, "-case", "4", "-GPUnumber", "2"]) != 0
    assert capsys.readouterr().err.startswith("triosim: -GPUnumber 2: case 4 needs a forward")


def test_bom_crlf_unicode_and_a_missing_last_newline(odd):
    read = read_trace(odd / "c16_bom_crlf_unicode_no_final_newline")
    assert [op.id for op in read.operators] == list(range(1, 10))
    assert read.operators[1].name == "aten::relu_ – étape 1 前向"  # noqa: RUF001


def test_missing_sizes_come_from_tensor_csv(odd):
    read, good = (read_trace(odd / name) for name in ("c25_size_list_shorter_than_ids", "c00_good"))
    assert read.operators == good.operators

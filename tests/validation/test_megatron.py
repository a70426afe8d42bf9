"""Megatron-LM's runs: errors as asked for."""

from dataclasses import replace

import pytest

from triosim.validation import compare_rows, load_source, rows_of, summarise
from triosim.validation.tables import read_table


@pytest.mark.parametrize("name", ["selective-recompute", "zero-bubble"])
def test_errors_are_as_small_as_asked_for(name):
    """4 % and 2 % in bias, uncalibrated 15 %; Zero Bubble's memory 4 %."""
    source = load_source(name)
    rows = [row for row in rows_of(source) if row.counted]
    # What runs in a moment; `python -m triosim validate` runs all.
    if name == "selective-recompute":
        rows = [row for row in rows if row.size != "530B"]
    if name == "zero-bubble":
        short = [r for r in rows if r.scenario.global_batch < 100 * r.scenario.micro_batch_size]
        rows = short[::3]  # of every table
    found = summarise(compare_rows(rows)).set_index(["quantity", "stack"])
    for quantity, asked in source.targets.items():
        calibrated, generic = found.loc[quantity, "calibrated"], found.loc[quantity, "generic"]
        assert calibrated.mean_error < asked.calibrated / 100
        assert generic.mean_error < asked.generic / 100
        if quantity == "time":
            assert abs(calibrated.bias) < asked.bias / 100


def test_zero_bubble_and_selective_recompute_have_constants_of_their_own():
    """Fitted apart: one is Megatron-LM of 2022, the other a later one that was changed."""
    assert {row.scenario.stack for row in rows_of(load_source("selective-recompute"))} == {
        "megatron-2021"
    }
    assert {row.scenario.stack for row in rows_of(load_source("zero-bubble"))} == {"megatron-2023"}


def test_fields_that_a_source_corrects_hold_whatever_its_lines_say():
    source = load_source("selective-recompute")
    assert {line["recompute"] for line in read_table(source.table)} > {"none"}
    corrected = replace(source, corrected={"recompute": "none"})
    assert {row.scenario.recompute for row in rows_of(corrected)} == {"none"}

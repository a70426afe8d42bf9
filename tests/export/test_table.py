"""The timeline as CSV."""

from __future__ import annotations

import csv
import io

import pandas as pd
import pytest

from triosim import Scenario, simulate
from triosim.export.table import timeline_csv, to_csv

COLUMNS = "rank,stream,name,phase,start_ms,end_ms,bytes,waited_for,members"


def test_one_row_per_task_with_exact_numbers():
    result = simulate(Scenario(case=4, gpus=3, micro_batch_size=2))
    text = timeline_csv(result)
    assert text.splitlines()[0] == COLUMNS
    assert "\r" not in text
    read = list(csv.DictReader(io.StringIO(text)))
    for column, want in result.timeline.to_dict("list").items():
        assert [type(want[0])(row[column]) for row in read] == want


def test_a_part_of_the_timeline():
    result = simulate(Scenario(case=1, gpus=4))
    text = timeline_csv(result, result.expand([2, 3]))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["rank"] for row in rows} == {"2", "3"}
    assert {row["members"] for row in rows} == {"1"}
    assert len(rows) == 2 * len(result.timeline)


def test_no_rows():
    result = simulate(Scenario())
    assert timeline_csv(result, result.expand([])) == COLUMNS + "\n"


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@sum", "'@sum"),
        ("\tx", "'\tx"),
        ("\rx", "' x"),
        ("  =1", "'  =1"),
        ("a\r=1", "a =1"),
        ("aten::add_", "aten::add_"),
        ("a=1", "a=1"),
        ("", ""),
        ('a,"b"\nc', 'a,"b"\nc'),
    ],
)
def test_no_cell_is_a_formula(name, written):
    text = to_csv(pd.DataFrame({"name": [name], "start_ms": [-1.5]}))
    assert list(csv.reader(io.StringIO(text, newline=""))) == [
        ["name", "start_ms"],
        [written, "-1.5"],
    ]


def test_the_frame_is_left_as_it_was():
    frame = pd.DataFrame({"name": ["=1"], "n": [1]})
    to_csv(frame)
    assert frame["name"].tolist() == ["=1"]


def test_names_of_operators_are_made_safe(tmp_path, make_trace):
    from triosim import write_trace

    trace = make_trace([1.0], [1.0])
    object.__setattr__(trace.operators[0], "name", "=cmd()")
    write_trace(trace, tmp_path)
    result = simulate(Scenario(trace_dir=str(tmp_path), gpus=1))
    rows = list(csv.DictReader(io.StringIO(timeline_csv(result))))
    assert "'=cmd()" in {row["name"] for row in rows}
    assert "'=cmd()" in {row["waited_for"] for row in rows}

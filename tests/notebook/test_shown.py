"""Results as a notebook shows them: summary and figures of every kind, and no markup in names."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import IPython.display
import pandas as pd
import plotly.graph_objects as go
import pytest

import triosim as ts
from triosim import notebook
from triosim.errors import ConfigError
from triosim.trace import write_trace

ROOT = Path(__file__).resolve().parents[2]
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def result():
    return ts.simulate(ts.Scenario(case=2, gpus=8, jitter=0.05))


@pytest.fixture(scope="module")
def run():
    return ts.train(ts.TrainScenario(model="llama3-8b", layers=2, gpus=4, pp=2, micro_batch_size=1))


@pytest.fixture(scope="module")
def kinds(result, run):
    """One result of each kind."""
    train = ts.TrainScenario(model="llama3-8b", layers=2, gpus=4)
    return {
        "simulate": result,
        "train": run,
        "pipeline": ts.pipeline(stages=4, microbatches=8),
        "collective": ts.collective(ranks=16, topology="seminar-h100"),
        "one algorithm": ts.collective(algorithm="ring"),
        "compare": ts.compare(result, run),
        "compare three": ts.compare(run, run.scenario, train),
        "sweep": ts.sweep(ts.Scenario(), {"gpus": [1, 2]}),
        "sweep of two": ts.sweep(train, {"gpus": [4, 6], "recompute": ["none", "full"]}),
        "sweep of three": ts.sweep(
            ts.Scenario(), {"gpus": [2], "case": [1, 2], "bucket_mb": [1, 25]}
        ),
        "search": ts.search(replace(train, gpus=2, global_batch=2)),
        "explain": ts.explain(result),
    }


KINDS = (
    "simulate", "train", "pipeline", "collective", "one algorithm", "compare", "compare three",
    "sweep", "sweep of two", "sweep of three", "search", "explain",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_tables_and_figures(kinds, kind):
    shown = kinds[kind]
    assert shown.tables[0] == "summary"
    for name in shown.tables:
        table = shown.table(name)
        assert isinstance(table, pd.DataFrame)
        assert len(table.columns)
    for name in shown.figures:
        assert isinstance(shown.figure(name), go.Figure)
    assert shown.figure() == shown.figure(shown.figures[0])
    assert len(repr(shown)) < 400
    assert shown._repr_html_().count("<table") == 1


def test_the_tables_are_the_results_own_figures(result, run):
    value = result.table("summary").set_index("figure")["value"]
    assert value["step time"] == result.total_ms
    assert value["peak memory"] == result.peak_memory_bytes / 2**30
    assert result.table("breakdown")["ms"].sum() == pytest.approx(result.total_ms, rel=1e-12)
    assert result.table("breakdown")["share"].sum() == pytest.approx(1, rel=1e-12)
    assert result.table("ranks")["members"].sum() == 8
    assert run.table("memory")["gib"].sum() == pytest.approx(run.peak_memory_gib, rel=1e-12)
    assert run.table()["value"].iloc[1:3].tolist() == list(run.band)


def test_the_waterfall_sums_to_the_difference(kinds):
    found = kinds["compare three"]
    sums = found.table("waterfall").groupby("step")["ms"].sum()
    # B is A again, so that nothing differs.
    assert list(sums.index) == ["C"]
    assert sums["C"] == pytest.approx(found.results[2].total_ms - found.results[0].total_ms)
    assert found.figures == ("gantt", "waterfall B", "waterfall C", "memory")


def test_chosen_gpus(result, run):
    labels = result.figure("breakdown", ranks=[5, 2]).layout.yaxis.categoryarray
    assert labels == ("GPU 5", "GPU 2")
    assert run.figure("gantt", ranks=[3]) != run.figure("gantt")
    with pytest.raises(ConfigError, match="rank 8: ranks go from 0 to 7"):
        result.figure("gantt", ranks=[8])
    with pytest.raises(ConfigError, match="must name at least one GPU"):
        result.figure("gantt", ranks=[])


def test_names_that_there_are_not(result):
    with pytest.raises(ConfigError, match="figure gannt: must be one of gantt, breakdown"):
        result.figure("gannt")
    with pytest.raises(ConfigError, match="table sum: must be one of summary"):
        result.table("sum")


def test_a_figure_has_its_own_ground(result):
    """A notebook's theme is not known, so that nothing may lie dark on dark."""
    light, dark = result.figure(), result.figure(dark=True)
    assert light.layout.paper_bgcolor == "#FFFFFF"
    assert (dark.layout.paper_bgcolor, dark.layout.font.color) == ("#0E1117", "#FAFAFA")


def test_a_cell_shows_the_summary_and_two_figures(result, monkeypatch):
    shown = []
    monkeypatch.setattr(IPython.display, "display", shown.append)
    result._ipython_display_()
    assert [type(one).__name__ for one in shown] == ["HTML", "Figure", "Figure"]
    assert shown[1:] == [result.figure("gantt"), result.figure("breakdown")]


def test_a_cell_without_plotly_shows_the_summary(result, monkeypatch):
    shown = []
    monkeypatch.setattr(IPython.display, "display", shown.append)
    monkeypatch.setattr(notebook, "find_spec", lambda name: None)
    result._ipython_display_()
    assert [one.data for one in shown] == [
        result._repr_html_(), "<p>Figures need plotly: pip install plotly.</p>",
    ]  # fmt: skip


def test_the_summary_needs_neither_plotly_nor_ipython():
    code = (
        "import sys, triosim as ts; found = ts.pipeline(); found._repr_html_(); repr(found); "
        "print([m for m in ('plotly', 'IPython', 'ipywidgets') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert done.stdout.strip() == "[]"


def test_names_from_a_trace_are_no_markup(make_trace, tmp_path):
    """Of operators, of the folder and of what a saved result says."""
    trace = make_trace([10, 10], [10, 10], parameter_bytes=4 * 2**20, optimizer_us=5)
    named = replace(
        trace, operators=tuple(replace(op, name=f"{MARKUP}{op.id}") for op in trace.operators)
    )
    folder = tmp_path / MARKUP.replace("/", "")
    write_trace(named, folder)
    result = ts.simulate(ts.Scenario(trace_dir=folder, case=1, gpus=2))
    values = json.loads(result.to_json())
    values["communication"][0]["purpose"] = MARKUP
    values["warnings"] = [MARKUP]
    path = tmp_path / "result.json"
    path.write_text(json.dumps(values), encoding="utf-8")
    explained, saved = ts.explain(result), ts.read_result(path)
    pages = [one._repr_html_() for one in (result, explained, ts.compare(result, result), saved)]
    assert all("<img" not in page and "&lt;img" in page for page in pages)
    drawn = [one.figure(name) for one in (result, explained, saved) for name in one.figures]
    assert not [
        figure for figure in drawn if "<img" in json.dumps(figure.to_plotly_json(), default=str)
    ]

"""The page Validation: errors by hand, targets, what is absent, and the way to the page Train."""

from __future__ import annotations

import csv
import re
import shlex
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
import pytest
from streamlit.testing.v1 import AppTest

from dashboard import validation_run
from dashboard.chart_file import page_of
from dashboard.network_settings import SETTINGS as NETWORK
from dashboard.settings import SETTINGS as SIMULATE
from dashboard.traces_links import NAMES as TRACES
from dashboard.train_links import read_train
from dashboard.train_published import spelt_out
from dashboard.train_settings import SETTINGS as TRAIN
from dashboard.train_values import scenario_of
from dashboard.validation_compile import data_lines
from dashboard.validation_links import CHOICES, TABS, read_view
from dashboard.validation_open import OPEN, command_of, door_to
from dashboard.validation_table import table_of
from dashboard.validation_verdict import cards, verdicts
from tests.dashboard.reading import open_page, shown, table_with
from triosim.commands.train import _parser
from triosim.commands.train_flags import scenario_of as scenario_of_flags
from triosim.figures import Style
from triosim.network.topology.description import Description
from triosim.train import TrainScenario, make_plan, train
from triosim.validation import Target, load_source, rows_of
from triosim.validation.compare import with_errors
from triosim.validation.compile_question import compile_gains, published_gains
from triosim.validation.tables import DATA

Open = Callable[..., AppTest]


@pytest.fixture
def validation_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Open:
    """Opens the page at some address, with nothing predicted and no data sets beside."""
    monkeypatch.setenv("TRIOSIM_PUBLISHED", str(tmp_path))
    validation_run._board.clear()
    return partial(open_page, "pages/validation.py")


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Only some of TorchTitan's rows: 8B on 8 GPUs, and one that does not count."""
    numbers = [0, 1, 43]
    monkeypatch.setattr(
        validation_run,
        "rows_of",
        lambda source: tuple(row for row in rows_of(source) if row.number in numbers),
    )
    return numbers


def wholly_predicted(at: AppTest) -> AppTest:
    """The page once all runs are predicted; a browser would ask for it by itself."""
    end = time.monotonic() + 120
    while "met**" not in shown(at):
        assert time.monotonic() < end
        time.sleep(0.2)
        at.run()
    return at


def test_no_name_of_the_address_belongs_to_another_page_too() -> None:
    assert not CHOICES.keys() & {*SIMULATE, *NETWORK, *TRACES, *TRAIN, "v", "tab", "window"}


def test_a_source_is_compared_with_its_table(validation_page: Open) -> None:
    at = validation_page(v="1", source="torchgpipe")
    table = table_with(at, "run").set_index("row")
    with (DATA / "torchgpipe.csv").open(encoding="utf-8") as file:
        lines = {int(line["row"]): line for line in csv.DictReader(file)}
    assert set(table.index) == set(lines)
    for number, line in lines.items():
        published = float(line["global_batch"]) / float(line["samples_per_s"])
        row = table.loc[number]
        assert row["published (s)"] == pytest.approx(published)
        error = 100 * (row["predicted (s)"] / published - 1)
        assert row["predicted time error"] == pytest.approx(error)
    # On one GPU by hand: all but the last of the two micro-batches run forward, a third of the
    # work, again.
    alone = float(lines[1]["global_batch"]) / float(lines[1]["single_gpu_samples_per_s"])
    assert table.loc[1, "predicted (s)"] == pytest.approx(alone * (1 + 1 / 3 / 2))
    mean = table["predicted time error"].abs().mean()
    assert at.metric[0].value == f"{mean:.1f} %"


def test_everything_that_limits_a_source_is_said(validation_page: Open) -> None:
    text = shown(validation_page(v="1", source="torchgpipe"))
    source = load_source("torchgpipe")
    for words in ("far from equal", "Rows 5\\-9: with data loading", "BSD\\-3\\-Clause"):
        assert words.replace("\\-", "-") in text.replace("\\-", "-")
    assert text.count("\n- ") >= len(source.left_out) + len(source.assumptions) - 2


def test_runs_are_predicted_bit_by_bit_until_all_are(
    validation_page: Open, few_rows: list[int]
) -> None:
    at = wholly_predicted(validation_page(v="1"))
    table = table_with(at, "run").set_index("row")
    assert list(table.index) == few_rows
    rows = {row.number: row for row in rows_of(load_source("torchtitan"))}
    for number in few_rows:
        result = train(rows[number].scenario)
        error = 100 * (result.step_s / rows[number].published_s - 1)
        assert table.loc[number, "calibrated time error"] == pytest.approx(error)
        assert table.loc[number, "calibrated (GiB)"] == pytest.approx(result.peak_memory_gib)
    assert list(table["counts"]) == ["yes", "yes", "no"]
    counted = table.loc[[0, 1], "calibrated time error"].abs().mean()
    assert at.metric[0].value == f"{counted:.1f} %"
    assert len(at.metric) == 4
    assert re.search(r"of 2 runs within 10 %", shown(at))
    assert len(at.get("plotly_chart")) == 2


def frame_with(errors: list[float], **more: object) -> pd.DataFrame:
    count = len(errors)
    columns = {
        "source": ["x"] * count, "row": range(count), "run": ["a run"] * count,
        "status": ["kept"] * count, "note": [""] * count, "problem": [""] * count,
        "published_s": [10.0] * count, "calibrated_s": [10 * (1 + e) for e in errors],
    }  # fmt: skip
    return with_errors(pd.DataFrame({**columns, **more}))


@pytest.mark.parametrize(
    ("asked", "bias", "met", "bias_met"), [(8, 3, False, False), (12, 6, True, True)]
)
def test_a_target_is_met_or_not(asked: float, bias: float, met: bool, bias_met: bool) -> None:
    source = replace(
        load_source("torchtitan"), targets={"time": Target(calibrated=asked, bias=bias, generic=9)}
    )
    # By hand: |+5| and |-15| make 10 on the mean, and their bias is -5.
    (verdict,) = verdicts(source, frame_with([0.05, -0.15]))
    assert verdict.mean_error == pytest.approx(0.10)
    assert verdict.bias == pytest.approx(-0.05)
    assert (verdict.met, verdict.bias_met) == (met, bias_met)
    said = "met" if met else "not met"
    card = cards(source, frame_with([0.05, -0.15]), True)[0]
    assert card[1] == "10.0 %"
    assert card[2].count(f"**{said}**") == 2
    assert "met" not in cards(source, frame_with([0.05, -0.15]), False)[0][2]


def test_rows_that_do_not_count_are_in_the_table_and_not_in_the_mean() -> None:
    frame = frame_with([0.1, 0.5], status=["kept", "shown"], note=["", "second-hand"])
    (verdict,) = verdicts(load_source("torchtitan"), frame)
    assert verdict.mean_error == pytest.approx(0.1)
    table = table_of(frame)
    assert list(table["counts"]) == ["yes", "no"]
    assert list(table["note"]) == ["", "second-hand"]


def test_a_data_set_that_is_not_here_is_a_sentence(validation_page: Open) -> None:
    at = validation_page(v="1", source="vtrain-one-node")
    text = shown(at)
    assert "vtrain\\_ground\\_truth.csv is not part of this project and is not here" in text
    assert "Bang et al." in text
    assert not at.error


def test_all_sources_that_are_known_stand_in_one_table(validation_page: Open) -> None:
    at = validation_page(v="1", aspect="All sources")
    table = table_with(at, "mean error")
    assert list(table["source"]) == ["torchgpipe: step time", "TrioSim, Fig. 12: step time"]
    text = shown(at)
    assert "Not predicted yet, or not wholly: TorchTitan, Selective recompute, Zero Bubble" in text
    assert "SimuMax, B200 (simumax\\_b200.csv)" in text


def test_bubble_rates_are_all_there(validation_page: Open) -> None:
    at = validation_page(v="1", source="bubble-rates")
    assert at.metric[0].value == "48 of 48"
    table = table_with(at, "schedule")
    first = table[(table["micro-batches"] == 24) & (table["schedule"] == "1f1b")].iloc[0]
    assert first["published (%)"] == pytest.approx(24.31)  # Table 5 of the paper


def test_a_run_opens_on_the_page_train(validation_page: Open, few_rows: list[int]) -> None:
    at = validation_page(v="1")
    at.session_state[OPEN] = ("torchtitan", 1)
    at.run()
    assert "llama3-8b on 8 GPUs" in at.subheader[0].value
    assert "6,667 tokens/s per GPU" in shown(at)


def test_a_run_without_a_place_on_the_page_train_can_be_pinned(
    validation_page: Open, few_rows: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.validation_open.door_to", lambda scenario: None)
    at = wholly_predicted(validation_page(v="1"))
    at.session_state[OPEN] = ("torchtitan", 1)
    at.run()
    [button] = [one for one in at.button if one.label == "Pin"]
    button.click().run()
    row = next(r for r in rows_of(load_source("torchtitan")) if r.number == 1)
    assert at.session_state["pinned"].scenario == row.scenario
    assert "This result is pinned: llama3-8b on 8 GPUs" in shown(at)


@pytest.mark.parametrize("name", ["torchtitan", "selective-recompute", "zero-bubble"])
def test_a_door_is_the_row_itself(name: str) -> None:
    opened = 0
    for row in rows_of(load_source(name)):
        parameters = door_to(row.scenario)
        if parameters is None:
            continue
        link = read_train({key: [str(text)] for key, text in parameters.items()})
        there = spelt_out(make_plan(scenario_of(link.values)))
        assert there == spelt_out(make_plan(row.scenario))
        opened += 1
    assert opened > 0


def test_a_network_that_only_a_table_describes_opens_with_its_description() -> None:
    """As for the rows of vTrain, whose hosts have no name here."""
    settings = load_source("vtrain-one-node").scenario
    assert settings["machine"] == Description.from_file(Path(str(DATA / "a100-4x200.toml")))
    scenario = TrainScenario(**{**settings, "gpus": 8})
    parameters = door_to(scenario)
    assert parameters is not None
    read = read_train({name: [str(text)] for name, text in parameters.items()})
    assert scenario_of(read.values).machine == settings["machine"]


def test_a_run_without_a_place_on_the_page_train_is_a_command() -> None:
    machine = DATA / "a100-4x200.toml"
    scenario = TrainScenario(model="gpt2", gpu="a100-80gb", gpus=8, machine=str(machine))
    assert door_to(scenario) is None
    words = shlex.split(command_of(scenario))
    assert words[words.index("--machine") + 1] == "triosim/validation/data/a100-4x200.toml"
    again = scenario_of_flags(_parser().parse_args(words[words.index("train") + 1 :]))
    assert Path(again.machine or "").name == machine.name
    assert replace(again, machine=None) == replace(scenario, machine=None)


def test_a_run_without_a_stack_says_that_it_cannot_be_opened(validation_page: Open) -> None:
    at = validation_page(v="1", source="torchgpipe")
    at.session_state[OPEN] = ("torchgpipe", 4)
    at.run()
    assert "**Row 4** has no step to open" in shown(at)


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({"source": ["nonsense"]}, "source nonsense: must be one of torchtitan,"),
        ({"source": ["torchtitan", "torchgpipe"]}, "source torchtitan and torchgpipe: a setting"),
        ({"colour": ["1"]}, "colour 1: this page has no such setting."),
        ({"why_cpu-jitter": ["1"]}, "why_cpu-jitter 1: must be one of true, false."),
    ],
)
def test_what_an_address_says_wrongly_gets_a_sentence(
    raw: dict[str, list[str]], sentence: str
) -> None:
    link = read_view(raw)
    assert len(link.rejected) == 1
    assert link.rejected[0].startswith(sentence)


def test_a_bad_link_is_said_and_the_rest_counts(validation_page: Open) -> None:
    at = validation_page(v="1", nonsense="1", source="torchgpipe")
    assert "nonsense 1: this page has no such setting." in at.warning[0].value
    assert at.selectbox(key="source").value == "torchgpipe"


def test_the_published_seconds_are_those_of_the_question() -> None:
    # The seminar's K3: four published seconds saved, of which 0.163 on 8 GPUs is the odd one.
    published = {
        "published: repository": published_gains(),
        "published: paper, as quoted": published_gains(second_hand=True),
    }
    lines = data_lines(published)
    assert "0.386 s on 8 GPUs" in lines[0]
    assert "0.408 s on 128 GPUs" in lines[0]
    assert "+6.6 %" in lines[1]
    assert "+14.8 %" in lines[1]
    assert "between 0.375 and 0.408 s. The odd one is 0.163 s on 8 GPUs (the paper" in lines[2]


def test_a_switch_changes_both_gains_and_none_is_the_answer(validation_page: Open) -> None:
    at = validation_page(v="1", aspect=TABS[2])
    assert "None of the four is *the* answer" in shown(at)
    at.toggle(key="why_exposed-gather").set_value(True).run()
    table = table_with(at, "grows").set_index("")
    few, many = compile_gains({"exposed-gather": True})
    for label in ("your switches", "only exposed gather"):
        assert table.loc[label, "8: gain"] == pytest.approx(few.gain * 100)
        assert table.loc[label, "128: gain"] == pytest.approx(many.gain * 100)
        assert table.loc[label, "128: saved"] == pytest.approx(many.saved_s)
    off = compile_gains({})
    assert table.loc["no mechanism", "8: gain"] == pytest.approx(off[0].gain * 100)
    assert few.gain != off[0].gain


def test_a_picture_travels_with_all_that_draws_it() -> None:
    page = page_of(go.Figure(go.Scatter(x=[1, 2], y=[3, 4], name="two points")), Style())
    assert "two points" in page
    assert not re.search(r"<(script|link)[^>]*\b(src|href)=", page)

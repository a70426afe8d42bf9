"""The page Train: published values, addresses, sentences, and views against the engine."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit import config
from streamlit.testing.v1 import AppTest

from dashboard.network_settings import SETTINGS as NETWORK
from dashboard.settings import SETTINGS as SIMULATE
from dashboard.traces_links import NAMES as TRACES
from dashboard.train_export import train_command
from dashboard.train_links import link_to, read_train
from dashboard.train_mesh import link_of
from dashboard.train_published import PUBLISHED, preset, preset_names, published_for, spelt_out
from dashboard.train_run import check_size, compute
from dashboard.train_settings import FIELDS, SETTINGS, TABS, control_of, scenario_of, values_of
from triosim.commands.train import _parser, _scenario
from triosim.errors import ConfigError
from triosim.network.topology.machines import load_machine
from triosim.train import TrainScenario, make_plan, train

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "triosim" / "validation" / "data" / "torchtitan.csv"
Open = Callable[..., AppTest]


@pytest.fixture
def train_page() -> Open:
    """Opens the page Train at some address."""
    config.set_option("global.disableWidgetStateDuplicationWarning", True)

    def open_at(**parameters: str) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        for name, value in parameters.items():
            at.query_params[name] = value
        at.switch_page("pages/train.py")
        return at.run()

    return open_at


def shown(at: AppTest) -> str:
    assert not at.exception
    return "\n".join(element.value for element in (*at.markdown, *at.caption, *at.subheader))


def published(number: int) -> dict[str, str]:
    with TABLE.open(encoding="utf-8") as table:
        return next(line for line in csv.DictReader(table) if line["row"] == str(number))


def test_no_name_of_the_address_belongs_to_another_page_too() -> None:
    assert not SETTINGS.keys() & {*SIMULATE, *NETWORK, *TRACES, "v", "tab", "window"}


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_survives_controls_and_address(name: str) -> None:
    scenario = preset(name)
    link = read_train({key: [str(text)] for key, text in link_to(scenario).items()})
    assert link.rejected == []
    defaults = {key: setting.default for key, setting in SETTINGS.items() if key in FIELDS}
    assert scenario_of({**defaults, **link.values}) == scenario
    assert scenario_of(values_of(scenario)) == scenario


@pytest.mark.parametrize(("name", "number"), PUBLISHED.items())
def test_a_preset_is_the_published_configuration(name: str, number: int) -> None:
    line, plan = published(number), make_plan(preset(name))
    exact = spelt_out(plan)
    assert (exact.gpus, exact.seq_len) == (int(line["gpus"]), int(line["seq_len"]))
    assert exact.global_batch == int(line["global_batch"])
    assert exact.compile == (line["compile"] == "true")
    assert (exact.tp, exact.pp) == (int(line["tp"] or 1), int(line["pp"] or 1))
    found = published_for(plan)
    assert found is not None
    assert found.tokens_per_s_per_gpu == pytest.approx(float(line["tokens_per_s_per_gpu"]))


def test_published_values_stand_beside_while_the_settings_are_theirs(train_page: Open) -> None:
    at = train_page(v="1")
    text = shown(at)
    assert "**Published** by TorchTitan" in text
    assert "6,667 tokens/s per GPU" in text
    assert "77.0 GiB" in text
    ours = float(at.metric[1].value.replace(",", ""))
    error = re.search(r"6,667 tokens/s per GPU \(simulated \*\*([+\u2212].*?)\u00a0%", text)
    assert error is not None
    said = float(error[1].replace("\u2212", "-"))
    assert said == pytest.approx((ours / 6667 - 1) * 100, abs=0.06)
    at.number_input(key="micro").set_value(1).run()
    assert "No published run" in shown(at)


def test_a_preset_sets_every_control(train_page: Open) -> None:
    at = train_page(v="1", optimizer="sgd", tp="2")
    at.selectbox(key="train_preset").set_value("Llama 8B, 128 GPUs, eager").run()
    assert "5,605 tokens/s per GPU" in shown(at)
    assert "llama3-8b on 128 GPUs" in at.subheader[0].value
    assert at.selectbox(key="optimizer").value == "adamw"


def test_the_cards_are_the_engines(train_page: Open) -> None:
    at = train_page(v="1", model="gpt2", world="1", micro="4", seq="1024", stack="generic")
    scenario = TrainScenario(
        model="gpt2", gpu="h100-96gb", machine="seminar-h100", gpus=1, micro_batch_size=4,
        seq_len=1024, recompute="selective-op",
    )  # fmt: skip
    answer = compute(scenario)
    result = answer.result
    rate, mfu, memory = (at.metric[i].value for i in (1, 2, 3))
    assert rate == f"{result.tokens_per_s_per_gpu:,.0f}"
    assert mfu == f"{result.mfu * 100:.1f} %"
    assert memory == f"{result.peak_memory_gib:.1f} GiB"
    assert f"{96 - result.peak_memory_gib:.1f} GiB are free" in shown(at)
    assert answer.band.low_ms <= result.step_ms <= answer.band.high_ms


def test_what_does_not_fit_says_by_how_much_and_what_would(train_page: Open) -> None:
    at = train_page(v="1", accelerator="a100-40gb", machine="dgx-a100", look="Memory")
    text = shown(at)
    excess = float(at.metric[3].value.split()[0]) - 40
    assert f"**does not fit**, {excess:.1f} GiB too much" in text
    table = next(frame.value for frame in at.dataframe if "change" in frame.value)
    assert (table["peak (GiB)"] <= 40).all()
    assert len(table)
    assert table["change"].str.contains("Recompute full").any()
    full = train(
        TrainScenario(
            gpu="a100-40gb", machine="dgx-a100", stack="torchtitan-compile", micro_batch_size=1,
            global_batch=16, seq_len=8192, recompute="full",
        )
    )  # fmt: skip
    assert full.fits


def test_a_measurement_gets_its_signed_error(train_page: Open) -> None:
    at = train_page(v="1", measured="2000", model="gpt2", seq="1024")
    step_ms = at.metric[0].value
    assert step_ms.endswith("ms")
    ours = float(step_ms.split()[0])
    said = re.search(r"2,000 ms: simulated is \*\*\u2212(.*?)\u00a0%", shown(at))
    assert said is not None
    assert float(said[1]) == pytest.approx((1 - ours / 2000) * 100, abs=0.1)


@pytest.mark.parametrize("tab", TABS)
@pytest.mark.parametrize("layout", [{}, {"world": "16", "pp": "2", "tp": "2"}, {"world": "1"}])
def test_every_tab_opens(train_page: Open, tab: str, layout: dict[str, str]) -> None:
    at = train_page(v="1", look=tab, model="llama3.2-1b", **layout)
    assert not at.exception
    assert len(at.metric) >= 4


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"tp": "3"}, "tp 3: must divide the 8 GPUs; nearest: 2 or 4."),
        ({"shard": "5"}, "dp\\_shard 5: must divide the 8 GPUs"),
        ({"batch": "7"}, "Global batch 7: must be a multiple of 16"),
        ({"pp": "2", "pipeline": "interleaved", "chunks": "40"}, "Virtual stages per stage 40:"),
        ({"replicate": "8", "shard": "1", "zero": "3"}, "ZeRO stage 3: needs dp\\_shard"),
    ],
)
def test_a_plan_that_cannot_be_is_a_sentence_at_its_control(
    train_page: Open, parameters: dict[str, str], sentence: str
) -> None:
    at = train_page(v="1", **parameters)
    assert not at.exception
    assert not at.metric
    # Beside the control, and on top for where the sidebar is closed.
    assert [error.value.startswith(sentence) for error in at.sidebar.error] == [True]
    assert at.main.error[0].value.startswith(f"No result: {sentence}")


def test_every_field_of_the_page_is_one_of_the_scenario_and_has_a_control() -> None:
    known = TrainScenario.__dataclass_fields__
    assert set(FIELDS.values()) <= set(known)
    assert all(control_of(field) == name for name, field in FIELDS.items())
    assert control_of("microbatches") == "batch"
    assert control_of("grid") == ""


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({"tp": ["x"]}, "tp x: must be a whole number from 1 to 131,072."),
        ({"tp": ["2", "4"]}, "tp 2 and 4: a setting has one value."),
        ({"tp": ["0"]}, "tp 0: must be a whole number from 1 to 131,072."),
        ({"colour": ["1"]}, "colour 1: this page has no such setting."),
        ({"reshard": ["1"]}, "reshard 1: must be true or false."),
        ({"precision": ["int8"]}, "precision int8: must be one of fp32, tf32, bf16,"),
        ({"v": ["9"]}, "v 9: this page reads links of version 1,"),
        ({"measured": ["nan"]}, "measured nan: must be a number from"),
    ],
)
def test_what_an_address_says_wrongly_gets_a_sentence(
    raw: dict[str, list[str]], sentence: str
) -> None:
    link = read_train(raw)
    assert len(link.rejected) == 1
    assert link.rejected[0].startswith(sentence)
    assert link.values == {}


def test_a_bad_link_is_said_on_the_page_and_the_rest_counts(train_page: Open) -> None:
    at = train_page(v="1", nonsense="1", world="16")
    assert "nonsense 1: this page has no such setting." in at.warning[0].value
    assert "16 GPUs" in at.subheader[0].value


def test_the_command_is_the_scenario() -> None:
    for name in preset_names():
        words = shlex.split(train_command(preset(name)))[4:]
        assert _scenario(_parser().parse_args(words)) == preset(name)


def test_too_large_a_step_is_refused_before_it_runs() -> None:
    scenario = replace(preset("Llama 8B, 8 GPUs, compiled"), global_batch=16 * 10_000)
    with pytest.raises(ConfigError, match="10,000 micro-batches") as refused:
        check_size(make_plan(scenario))
    assert control_of(refused.value.field) == "batch"


def test_the_link_of_a_group_follows_from_its_hosts() -> None:
    machine = load_machine("seminar-h100")
    inside, across = np.arange(16).reshape(2, 8), np.arange(16).reshape(8, 2, order="F")
    assert link_of(inside, machine) == "inside a host, 450 GB/s per GPU"
    assert link_of(across, machine) == "between hosts (2), 50 GB/s per GPU"
    assert link_of(across, None) == "the links of the topology"


def test_a_pass_opens_to_its_kernels(train_page: Open) -> None:
    parameters = {"model": "llama3.2-1b", "world": "16", "pp": "2"}
    at = train_page(v="1", **parameters)
    link = read_train({name: [text] for name, text in parameters.items()})
    defaults = {name: setting.default for name, setting in SETTINGS.items() if name in FIELDS}
    result = train(scenario_of({**defaults, **link.values}))
    task = next(t for t in result.writer.made if len(set(result.inside(t)["unit"])) > 1)
    at.selectbox(key="train_task").set_value(task).run()
    assert at.selectbox(key="train_unit").value == "all layers"
    unit = at.selectbox(key="train_unit").options[1]
    at.selectbox(key="train_unit").set_value(unit).run()
    inside = result.inside(task)
    kernels = ((inside["unit"] == unit) & (inside["stream"] != "launch")).sum()
    assert f"{kernels:,} kernels and transfers on the GPU" in shown(at)

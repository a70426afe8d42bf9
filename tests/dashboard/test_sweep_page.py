"""The page Sweep and search: its figures against the engine's, its addresses and sentences."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.compare_links import VIEW as COMPARE
from dashboard.compare_open import door_to
from dashboard.examples import FIRST, RUNNING
from dashboard.network_links import SETTINGS as NETWORK
from dashboard.packed import pack
from dashboard.pinned import PINNED, Pinned
from dashboard.search_settings import MAX_LAYOUTS, question_of
from dashboard.settings import SETTINGS as SIMULATE
from dashboard.sweep_fields import fields_of, proposed
from dashboard.sweep_links import BOUND, OVER, VARY, link_to, read_sweep, title_of
from dashboard.sweep_open import ASKED
from dashboard.sweep_side import MAX_POINTS, link_from
from dashboard.sweep_values import values_in
from dashboard.train_settings import SETTINGS as TRAIN
from dashboard.validation_links import CHOICES as VALIDATION
from tests.dashboard.reading import open_page, settled, shown, table_with
from triosim import ConfigError, Scenario, simulate, train
from triosim.search import search
from triosim.sweep import METRICS, SweepSpec
from triosim.train import TrainScenario

Open = Callable[..., AppTest]
SMALL = TrainScenario(model="gpt2", layers=2, seq_len=512, stack="torchtitan-compile")


@pytest.fixture
def sweep_page() -> Open:
    return partial(open_page, "pages/sweep.py")


def test_no_name_of_the_address_belongs_to_another_page_too() -> None:
    others = {*SIMULATE, *NETWORK, *TRAIN, *VALIDATION, *COMPARE, "v", "tab", "window"}
    assert not {*BOUND, *VARY, *OVER, "base"} & others


@pytest.mark.parametrize("base", [RUNNING, FIRST])
def test_every_field_proposes_values_that_it_reads(base: TrainScenario) -> None:
    fields = fields_of(base)
    assert len(fields) > 25
    for field in fields.values():
        values = values_in(proposed(field, base), field, base)
        assert len(values) >= 2, field.name


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("gpus", "8, 16,8", (8, 16)),
        ("gpus", "8 to 64 x2", (8, 16, 32, 64)),
        ("gpus", "8..64 *2, 3", (8, 16, 32, 64, 3)),
        ("gpus", "1 to 4", (1, 2, 3, 4)),
        ("extra_ms_per_step", "0 to 0.3 step 0.1", (0, 0.1, 0.2, 0.3)),
        ("extra_ms_per_step", "1e1", (10,)),
        ("recompute", "none, full", ("none", "full")),
        ("reshard", "on, off", (True, False)),
        ("zero", "auto, 3", (None, 3)),
    ],
)
def test_values_are_read(name: str, text: str, values: tuple[object, ...]) -> None:
    assert values_in(text, fields_of(RUNNING)[name], RUNNING) == values


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("gpus", "", "type values"),
        ("gpus", "8, many", "gpus many: must read as in"),
        ("gpus", "0", "gpus 0: must be whole numbers from 1 to 131,072"),
        ("gpus", "1.5", "gpus 1.5: must be whole numbers"),
        ("gpus", "1 to 8 x1", "factor above 1"),
        ("gpus", "1 to 1000", "gpus 1,000 values: one field goes through at most 200 here"),
        ("recompute", "some", "recompute some: must be of none"),
    ],
)
def test_wrong_values_are_a_sentence(name: str, text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(sentence)):
        values_in(text, fields_of(RUNNING)[name], RUNNING)


def test_a_point_is_the_step_that_it_stands_for(sweep_page: Open) -> None:
    link = link_to(SMALL, {"tp": "1, 2, 3", "recompute": "none, full"})
    at = settled(sweep_page(**link, drawn="Table"))
    table = table_with(at, "Recompute")
    assert len(table) == 6
    for _, row in table.iterrows():
        tp, recompute = row["Tensor parallel (tp)"], row["Recompute"]
        if tp == 3:
            assert "must divide the 8 GPUs" in row["why"]
            assert pd.isna(row["Step time (ms)"])
            continue
        alone = train(replace(SMALL, tp=tp, recompute=recompute))
        assert row["Step time (ms)"] == alone.step_ms
        assert row[title_of(METRICS["peak_memory_gib"])] == alone.peak_memory_gib
    best = table.loc[table["Step time (ms)"].astype(float).idxmin()]
    text = shown(at)
    said = re.search(r"Least step time: \*\*([\d,.]+) ms\*\*", text)
    assert said is not None
    assert float(said[1].replace(",", "")) == pytest.approx(best["Step time (ms)"], rel=1e-3)
    assert "4 fit, 2 have no answer" in text


def test_what_changes_nothing_is_said(sweep_page: Open) -> None:
    """Without context parallelism, its kinds are one."""
    at = settled(sweep_page(**link_to(SMALL, {"gpus": "8, 16", "context": "ring, ulysses"})))
    text = shown(at)
    assert "4 fit" in text
    assert "Context parallelism: this changes nothing in these steps." in text
    assert text.count("changes nothing") == 1


def test_a_recorded_step_has_fields_of_its_own(sweep_page: Open) -> None:
    link = link_to(FIRST, {"ptp_bandwidth_gb_per_s": "10 to 40 x2"})
    at = settled(sweep_page(**link, drawn="Table"))
    table = table_with(at, "GPU to GPU bandwidth (GB/s)")
    for _, row in table.iterrows():
        bandwidth = row["GPU to GPU bandwidth (GB/s)"]
        alone = simulate(replace(FIRST, ptp_bandwidth_gb_per_s=bandwidth))
        assert row["Step time (ms)"] == alone.total_ms
    assert "Sweep over GPU to GPU bandwidth" in shown(at)
    assert title_of(METRICS["mfu"]) not in at.selectbox(key="metric").options


def test_every_tab_opens_and_says_what_is_left_out(sweep_page: Open) -> None:
    link = link_to(SMALL, {"tp": "1, 3", "pp": "1, 2"})
    for tab, charts in (("Picture", 1), ("Memory against speed", 1), ("Table", 0), ("Left out", 0)):
        at = settled(sweep_page(**link, drawn=tab))
        assert len(at.get("plotly_chart")) == charts
    left = table_with(at, "why")
    assert list(left["Tensor parallel (tp)"]) == ["3", "3"]
    assert left["why"].str.contains("must divide the 8 GPUs").all()


def test_the_address_is_the_sweep(sweep_page: Open) -> None:
    at = sweep_page(**link_to(SMALL, {"tp": "1, 2"}))
    assert at.query_params["vary"] == "tp"
    at.text_input[0].set_value("1, 2, 4").run()
    assert at.query_params["over"] == "1, 2, 4"
    at.selectbox(key="sweep_vary_1").set_value("pp").run()
    assert at.query_params["vary2"] == "pp"
    assert at.query_params["base"] == pack([SMALL])
    assert "Sweep over Tensor parallel and Pipeline stages" in shown(at)


def test_a_first_visit_has_something_to_see(sweep_page: Open) -> None:
    text = shown(sweep_page())
    assert "Sweep over GPUs and Micro\\-batch" in text.replace("Micro-batch", "Micro\\-batch")
    assert "16 steps (4 \N{MULTIPLICATION SIGN} 4) to simulate" in text


@pytest.mark.parametrize(
    ("over", "sentence"),
    [
        ("1, x", "Tensor parallel x: must read as in"),
        ("0", "Tensor parallel 0: must be whole numbers from 1 to"),
        (" ", "Tensor parallel (empty): type values"),
    ],
)
def test_wrong_values_are_said_beside_their_field(
    sweep_page: Open, over: str, sentence: str
) -> None:
    at = sweep_page(**link_to(SMALL, {"tp": "1"}))
    at.text_input[0].set_value(over).run()
    assert [error.value.startswith(sentence) for error in at.sidebar.error] == [True]
    assert at.main.error[0].value.startswith(f"No sweep: {sentence}")


def test_too_many_points_are_refused_and_many_wait_for_a_word(sweep_page: Open) -> None:
    at = sweep_page(**link_to(SMALL, {"tp": "1 to 200", "pp": "1 to 20"}))
    assert "4,000 steps (200" in at.sidebar.error[0].value
    assert f"stops at {MAX_POINTS:,}" in at.sidebar.error[0].value
    at = sweep_page(**link_to(SMALL, {"tp": "1 to 200"}))
    assert "200 steps to simulate. More than 100" in shown(at)
    assert "Run the sweep" in [button.label for button in at.button]


def test_a_broken_link_and_an_unknown_field_are_said(sweep_page: Open) -> None:
    at = sweep_page(v="1", base="nonsense")
    assert "This link cannot be used" in at.error[0].value
    at.button[0].click().run()
    assert "Sweep over" in shown(at)
    at = sweep_page(v="1", wrong="1")
    assert "wrong 1: this page has no such setting." in at.warning[0].value


@pytest.mark.parametrize(
    ("link", "sentences", "left"),
    [
        ({"vary": "speed", "over": "1"}, ["vary speed: must be one of", "over 1: needs vary"],
         {}),
        ({"vary": "tp", "over": "1, 2", "vary2": "tp"}, ["vary2 tp: is what vary goes through alr"],
         {"vary": "tp", "over": "1, 2"}),
        ({"over2": "1, 2"}, ["over2 1, 2: needs vary2: what has these values."], {}),
        ({"vary": "recompute", "over": "none, half, full"}, ["over half: must be of none, "],
         {"vary": "recompute", "over": "none, full"}),
        ({"base": pack([FIRST]), "vary": "tp"}, ["vary tp: must be one of gpus, batch_size_sim"],
         {"base": pack([FIRST])}),
        ({"find_recompute": "some, full", "find_gpus": "0"},
         ["find_gpus 0: must be", "find_recompute some: must be of none"],
         {"find_recompute": "full"}),
        ({"part": "Swept"}, ["part Swept: must be one of Sweep, Search"], {}),
    ],
)  # fmt: skip
def test_what_a_link_says_wrongly_is_said_and_the_rest_used(
    link: dict[str, str], sentences: list[str], left: dict[str, str]
) -> None:
    read = read_sweep({"v": ["1"], **{name: [text] for name, text in link.items()}})
    assert len(read.rejected) == len(sentences)
    for said, sentence in zip(sorted(read.rejected), sorted(sentences), strict=True):
        assert said.startswith(sentence)
    assert read.parameters == {"v": "1", **left}


def test_a_wrong_part_of_a_link_is_said_on_the_page(sweep_page: Open) -> None:
    at = sweep_page(v="1", vary="speed", over="1, 2", base=pack([SMALL]))
    assert "vary speed: must be one of gpus" in at.warning[0].value
    assert at.query_params["base"] == pack([SMALL])
    at = sweep_page(v="1", base=pack([FIRST, RUNNING]))
    assert "base 2 steps: a sweep begins with one" in at.error[0].value


@pytest.mark.parametrize("base", [RUNNING, SMALL, FIRST])
def test_the_link_of_a_step_is_a_sweep_around_it(base: TrainScenario) -> None:
    link = link_from(base)
    read = read_sweep({name: [str(text)] for name, text in link.items()})
    assert not read.rejected
    known = fields_of(base)
    fields = [known[str(link[name])] for name in VARY]
    assert len(fields) == 2
    for field, over in zip(fields, OVER, strict=True):
        assert len(values_in(str(link[over]), field, base)) > 1
    assert link.get("base") == (None if base == RUNNING else pack([base]))


DRAWN = {"kind": "torus", "shape": [2, 4], "link": {"gb_per_s": 10, "latency_us": 1}}


@pytest.mark.parametrize(
    ("base", "first"),
    [
        ({"case": 2}, ["gpus", "ptp_bandwidth_gb_per_s"]),
        ({"case": 2, "topology": "dgx-a100"}, ["gpus", "batch_size_sim"]),
        ({"case": 4, "topology": "dgx-a100"}, ["gpus", "micro_batch_size"]),
        ({"case": 2, "interconnect": "optical"}, ["gpus", "optical_gb_per_s"]),
        # A grid of eight places has no other number of GPUs.
        ({"case": 2, "topology": DRAWN}, ["batch_size_sim", "bandwidth_gb_per_s"]),
    ],
)
def test_a_first_sweep_goes_through_what_changes_the_step(
    base: dict[str, Any], first: list[str]
) -> None:
    link = link_from(Scenario(**base))
    assert [link[name] for name in VARY] == first


@pytest.mark.parametrize("topology", ["dgx-a100", DRAWN])
def test_a_setting_that_does_not_matter_keeps_no_step_from_its_page(topology: Any) -> None:
    scenario = Scenario(case=2, topology=topology, ptp_bandwidth_gb_per_s=130, slow_every=5)
    door = door_to(scenario)
    assert door is not None
    page, _, parameters = door
    assert page == "pages/simulate.py"
    assert "ptp_bandwidth_gb_per_s" not in parameters
    assert door_to(replace(scenario, batch_size_sim=16)) != door


def test_another_base_drops_what_does_not_matter_for_it(sweep_page: Open) -> None:
    at = sweep_page(**link_from(FIRST))
    assert at.query_params["vary2"] == "ptp_bandwidth_gb_per_s"
    machine = Scenario(case=2, topology="dgx-a100")
    at.session_state[PINNED] = Pinned(scenario=machine, step_ms=1.0)
    at.run()
    next(button for button in at.button if button.label == "The pinned one").click().run()
    assert at.query_params["base"] == pack([machine])
    assert at.query_params.get("vary2") != "ptp_bandwidth_gb_per_s"


def test_a_sweep_begins_with_the_pinned_step(sweep_page: Open) -> None:
    at = sweep_page(v="1")
    at.session_state[PINNED] = Pinned(scenario=FIRST, step_ms=1.0)
    at.run()
    next(button for button in at.button if button.label == "The pinned one").click().run()
    assert "Base: transformer, distributed data parallel, 4 GPUs" in shown(at)
    assert at.query_params["base"] == pack([FIRST])


def test_a_point_opens_on_the_page_of_its_settings(sweep_page: Open) -> None:
    at = sweep_page(**link_to(SMALL, {"tp": "1, 2"}))
    at.session_state[ASKED] = replace(RUNNING, tp=2), None
    at.run()
    assert "llama3-8b on 8 GPUs" in at.subheader[0].value
    assert at.query_params["tp"] == "2"


def test_a_point_without_a_scenario_says_why(sweep_page: Open) -> None:
    at = sweep_page(**link_to(SMALL, {"tp": "1, 2"}))
    at.session_state[ASKED] = None, "tp 3: must divide the 8 GPUs."
    at.run()
    assert "This cannot be opened: tp 3: must divide the 8 GPUs" in shown(at)


FIND = {
    "part": "Search", "find_model": "gpt2", "find_gpus": "4", "find_batch": "8", "find_micro": "1",
    "find_recompute": "none", "find_schedules": "1f1b", "find_seq": "512",
}  # fmt: skip


def searched(at: AppTest) -> AppTest:
    next(button for button in at.button if button.label == "Search").click().run()
    return settled(at)


def test_a_search_is_the_engines(sweep_page: Open) -> None:
    at = searched(sweep_page(v="1", **FIND))
    base = TrainScenario(
        model="gpt2", gpus=4, gpu="h100-sxm", stack="torchtitan-compile", global_batch=8,
        seq_len=512,
    )  # fmt: skip
    found = search(
        base, micro_batch_sizes=(1,), recompute=("none",), schedules=("1f1b",), workers=1
    )
    figures = found.best.figures
    assert at.metric[2].value == f"{figures.tokens_per_s_per_gpu:,.0f}"
    table = table_with(at, "why")
    legal = [one for one in found.ranked if one.scenario is not None]
    exact = found.exact  # behind them, what was simulated depends on the number of workers
    assert list(table["why"])[:exact] == [one.reason for one in legal][:exact]
    assert list(table["place"]) == list(range(1, len(legal) + 1))
    assert f"{len(found.ranked)} layouts: **1** the fastest that fits" in shown(at)


def test_the_zero_stages_of_a_link_are_what_is_searched(sweep_page: Open) -> None:
    at = searched(sweep_page(v="1", **{**FIND, "find_gpus": "2"}, find_zero="3"))
    assert at.multiselect("find_zero").value == ["3"]
    table = table_with(at, "why")
    sharded = table["layout"].str.contains("shard")
    assert sharded.any()
    assert list(table["with"].str.contains("ZeRO-3")) == list(sharded)
    assert not table["with"].str.contains("ZeRO-[12]").any()
    at.multiselect("find_zero").set_value(["1", "2"]).run()
    assert at.query_params["find_zero"] == "1, 2"
    at.multiselect("find_zero").set_value([]).run()
    assert "ZeRO stages to try (empty): must be of 1, 2, 3" in at.sidebar.error[0].value


def test_limits_leave_layouts_out(sweep_page: Open) -> None:
    at = searched(sweep_page(v="1", **FIND, find_memory="0.2"))
    assert "No layout fits within these limits" in at.error[0].value
    assert table_with(at, "why")["why"].str.startswith("out of memory").all()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"find_days": "3"}, "Days at most 3: needs Tokens of the run (billion) as well."),
        ({"find_energy": "7"}, "Energy at most 7: needs Tokens of the run (billion) as well."),
        ({"find_cost": "3", "find_tokens": "1"}, "Cost of the run at most 3: needs Price"),
        ({"find_micro": "two"}, "Micro-batches to try two: must be whole numbers"),
    ],
)
def test_a_wrong_search_is_a_sentence_at_its_control(
    sweep_page: Open, given: dict[str, str], sentence: str
) -> None:
    at = sweep_page(v="1", **{**FIND, **given})
    assert [error.value[: len(sentence)] for error in at.sidebar.error] == [sentence]


def test_a_search_of_too_many_layouts_is_refused() -> None:
    with pytest.raises(ConfigError, match=f"stops at {MAX_LAYOUTS:,}"):
        question_of({"find_gpus": 1024, "find_model": "mixtral-8x7b"})


def test_a_number_that_is_refused_is_no_fault_of_a_link(sweep_page: Open) -> None:
    at = sweep_page(v="1", **FIND)
    at.number_input(key="find_gpus").set_value(0.0).run()
    assert "must be a whole number from 1" in str([error.value for error in at.error])
    assert "in this link" not in str([box.value for box in (*at.warning, *at.info)])


def test_a_spec_is_its_own_key() -> None:
    one, other = (SweepSpec.made(SMALL, {"tp": [1, 2]}) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)

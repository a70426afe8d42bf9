"""The page Train: its figures against the engine's, and its sentences."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.network_text import write_toml
from dashboard.settings import DESCRIBED
from dashboard.train_links import read_train
from dashboard.train_published import presets
from dashboard.train_run import compute
from dashboard.train_settings import FIELDS, SETTINGS, TABS
from dashboard.train_values import scenario_of
from triosim.network.topology.machines import load_machine
from triosim.train import TrainScenario, train

Open = Callable[..., AppTest]


def shown(at: AppTest) -> str:
    assert not at.exception
    return "\n".join(element.value for element in (*at.markdown, *at.caption, *at.subheader))


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
    name = next(
        label
        for label, run in presets().items()
        if (run.source.name, run.row.number) == ("torchtitan", 3)
    )
    at.selectbox(key="train_preset").set_value(name).run()
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
        (
            {"pp": "4", "pipeline": "interleaved", "batch": "20"},
            "Global batch 20: makes 5 micro-batches of 2 on each of 2 data-parallel ranks; "
            "interleaved on 4 stages needs a multiple of 4 (or fewer than that); 16 or 32 would do",
        ),
        ({"world": "24", "pp": "3", "pipeline": "dualpipe"}, "pp 3: dualpipe needs an even number"),
        ({"model": "deepseek-v3", "layers": "2"}, "Layers 2: must be at least 3, for the first 3"),
        (
            {"tp": "2", "async_tp": "true"},
            "Async TP on: overlaps the transfers of Sequence parallel, which is off.",
        ),
        ({"slow": "3=0.0001"}, "Slow GPUs 3=0.0001: must be a number from 0.001 to 1000"),
        ({"replicate": "8", "shard": "1", "zero": "3"}, "ZeRO stage 3: needs dp\\_shard"),
        ({"heads": "7"}, "Heads 7: must divide hidden"),
        ({"top_k": "2"}, "Experts per token 2: needs experts"),
        ({"origin": "sizes typed in", "layers": "2"}, "Hidden size (empty): a model of your own"),
        ({"origin": "a config.json"}, "Uploaded config.json (none): upload a config.json"),
        ({"origin": "a recorded step"}, "Recorded step (none): choose a recorded step"),
        (
            {"origin": "a recorded step", "recorded": "mlp"},
            "Recorded step mlp: its operators carry no module paths",
        ),
        (
            {"origin": "a recorded step", "recorded": "gpt2", "recompute": "none", "tp": "2"},
            "tp 2: a trace can be spread over dp and pp",
        ),
        (
            {"pipeline": "typed as a grid", "grid": "F0 X0"},
            "Grid X0: cell 2 of stage 0 must be F, B or W",
        ),
        ({"pipeline": "typed as a grid"}, "Grid (empty): must hold a row"),
        ({"pipeline": "typed as a grid", "grid": "F0 B0", "pp": "2"}, "Grid of 1 pp: must be of 2"),
        ({"slow": "9=0.5"}, "Slow GPUs 9: ranks go from 0 to 7"),
        ({"slow": "fast"}, "Slow GPUs fast: must be rank=speed"),
        ({"breaks": "nothing"}, "Graph breaks after modules nothing: must be modules of a layer"),
        ({"skew": "2"}, "Expert skew 2.0: must be at most ep"),
        ({"machine": "torus", "shape": "2x2"}, "Machine "),
        ({"machine": DESCRIBED, "described": "kind = 'star'"}, "Description of the network star: "),
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


def test_a_batch_that_nobody_set_is_said_by_its_label(train_page: Open) -> None:
    """Its control is folded away as long as it is empty, so that the sentence stands on top."""
    at = train_page(v="1", pp="4", pipeline="zb-h2")
    assert at.main.error[0].value.startswith(
        "No result: Global batch 16 (by default): makes 4 micro-batches of 2 on each of 2 "
        "data-parallel ranks; zb-h2 on 4 stages needs at least 2 x 4 - 1; 28 would do."
    )


def test_a_step_of_pictures_is_shown_in_samples(train_page: Open) -> None:
    at = train_page(v="1", origin="a recorded step", recorded="resnet50", recompute="none")
    assert not at.exception
    assert at.metric[1].label == "Samples/s per GPU"


def test_two_numbers_beside_each_other_have_a_sentence_each(train_page: Open) -> None:
    """GPT-3 has positions for 2,048 tokens; no micro-batch is empty."""
    at = train_page(model="gpt3-13b", seq="8192")
    at.number_input(key="micro").set_value(0.0).run()
    said = " ".join(error.value for error in at.sidebar.error) + shown(at)
    assert "Micro-batch 0: must be a whole number from 1" in said
    assert "Sequence 8192: gpt3-13b has positions for 2048 tokens" in said


def test_a_recording_has_no_utilisation(train_page: Open) -> None:
    at = train_page(v="1", origin="a recorded step", recorded="cpu-gpt2", recompute="none")
    assert not at.exception
    assert {metric.label: metric.value for metric in at.metric}["MFU"] == "not known"


def test_a_bad_link_is_said_on_the_page_and_the_rest_counts(train_page: Open) -> None:
    at = train_page(v="1", nonsense="1", world="16")
    assert "nonsense 1: this page has no such setting." in at.warning[0].value
    assert "16 GPUs" in at.subheader[0].value


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


def test_a_network_in_ones_own_words_is_the_one_of_that_name(train_page: Open) -> None:
    text = write_toml(load_machine("dgx-h100").description)
    mesh = {"model": "llama3.2-1b", "world": "16", "pp": "2"}
    described = train_page(v="1", machine=DESCRIBED, described=text, **mesh)
    named = train_page(v="1", machine="dgx-h100", **mesh)
    assert [card.value for card in described.metric] == [card.value for card in named.metric]
    assert described.session_state["train_address"]["described"] == text


def test_the_window_stays_for_the_way_back(train_page: Open) -> None:
    at = train_page(v="1", train_window=["20", "40"])
    assert at.slider(key="train_window").value == (20.0, 40.0)
    at.slider(key="train_window").set_value((30.0, 50.0)).run()
    assert at.session_state["train_address"]["train_window"] == ["30", "50"]

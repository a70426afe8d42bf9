"""The pictures of the labs on tensor parallelism, long context and training Llama."""

from __future__ import annotations

import json

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.lab import context, llama, tensor
from dashboard.lab.lab import Lab
from tests.dashboard.labs import charts, open_play
from tests.dashboard.reading import table_with


def opened(lab: Lab, number: int, **parameters: str) -> AppTest:
    """A question's Play; parameters without the question's name."""
    asked = lab.asked[number]
    named = {f"{asked.id.lower()}_{name}": value for name, value in parameters.items()}
    return open_play(lab, asked, **named)


@pytest.mark.parametrize("view", tensor.VIEWS)
def test_every_picture_of_tensor_parallelism_is_drawn(view: str) -> None:
    at = opened(tensor.LAB, 0, view=view)
    assert len(charts(at)) == 2
    assert not at.warning


def test_a_layer_is_drawn_three_ways() -> None:
    at = opened(tensor.LAB, 0)
    runs = table_with(at, "exposed")
    assert runs[""].tolist() == list(tensor.WAYS)
    figure = json.loads(charts(at)[1])
    assert {"forward", "backward", "all-reduce", "all-gather"} <= {
        t["name"] for t in figure["data"]
    }
    # 2 x 7/8 of the message of 2 x 8,192 x 4,096 elements in bf16, twice
    assert runs["a rank sends, forward"].tolist()[1:] == ["470 MB", "470 MB"]


def test_the_heads_are_those_of_the_question() -> None:
    """SEMINAR T3: 512 rows against 384."""
    at = opened(tensor.LAB, 2)
    values = [metric.value for metric in at.metric]
    assert values == ["2", "1", "2", "512"]
    assert at.metric[3].label == "Rows of Q, K, V"
    figure = json.loads(charts(at)[1])
    assert figure["data"][0]["text"][-1][:4] == [f"<b>kv{n}</b>" for n in (0, 0, 1, 1)]
    at = opened(tensor.LAB, 2, tp="8")
    assert [metric.value for metric in at.metric] == ["4", "1", "1", "768"]


def test_more_ranks_than_heads_allow_say_so() -> None:
    at = opened(tensor.LAB, 2, model="Llama 3.1 405B", tp="16")
    assert at.metric  # 128 heads and 8 KV heads on 16 ranks
    figure = json.loads(charts(at)[1])
    assert len(figure["data"][0]["x"]) == 16


@pytest.mark.parametrize("view", context.VIEWS)
def test_every_picture_of_long_context_is_drawn(view: str) -> None:
    at = opened(context.LAB, 1, view=view)
    assert len(charts(at)) > 1
    assert not at.warning


def test_bytes_cross_where_the_formula_says() -> None:
    """SEMINAR L1: 403 / 503 and 470 / 294 MB, crossover above 5."""
    at = opened(context.LAB, 0)
    figure = json.loads(charts(at)[1])
    sent = {trace["name"]: trace["y"] for trace in figure["data"]}
    assert sent["Ring, zig-zag"][1:3] == pytest.approx([402.65, 469.76], abs=0.1)
    assert sent["Ulysses"][1:3] == pytest.approx([503.3, 293.6], abs=0.1)
    assert figure["layout"]["shapes"][0]["x0"] == 5
    assert context.crossover("Llama 3 8B", 32) == 2
    assert context.crossover("Llama 3 70B", 8) == 9


def test_the_balance_is_that_of_the_question() -> None:
    """SEMINAR L2: the slowest rank has 1.875 times the mean work."""
    at = opened(context.LAB, 1)
    work = json.loads(charts(at)[1])["data"]
    assert [trace["name"] for trace in work] == ["contiguous", "zig-zag"]
    assert work[0]["y"][-1] == pytest.approx(1.875)
    assert work[1]["y"] == pytest.approx([1.0] * 8)


def test_sequence_parallel_prompts_are_faster_and_larger() -> None:
    """SEMINAR L3's splits; each of eight ranks keeps one of eight KV heads."""
    at = opened(context.LAB, 2, model="Llama 3 70B")
    prompts = table_with(at, "first token")
    assert prompts[""].tolist() == ["TP 8", "SP 2 \u00d7 TP 4", "SP 4 \u00d7 TP 2", "SP 8"]
    seconds = [float(text.split()[0]) for text in prompts["first token"]]
    assert seconds == sorted(seconds, reverse=True)
    weights = prompts["weights (GiB)"].tolist()
    assert weights[3] == pytest.approx(8 * weights[0], rel=0.01)
    assert prompts["fits"].tolist()[0::3] == ["yes", "no"]
    assert set(prompts["KV heads on a GPU"]) == {1}


@pytest.mark.parametrize("view", llama.VIEWS)
def test_every_picture_of_a_published_run_is_drawn(view: str) -> None:
    at = opened(llama.LAB, 1, view=view)
    assert not at.warning
    assert len(charts(at)) == {llama.MESH: 1, llama.ALL: 3}.get(view, 2)
    assert [metric.label for metric in at.metric][:2] == ["Step time", "Tokens/s per GPU"]


@pytest.mark.parametrize("name", llama.RUNS)
def test_names_of_runs_say_what_the_source_ran(name: str) -> None:
    scenario = llama.run_of(name).row.scenario
    size, gpus, *more = name.split(", ")
    assert scenario.model.endswith(size.lower())
    assert gpus == f"{scenario.gpus} GPUs"
    if size == "8B":
        assert ("compiled" in more) == scenario.compiled
        assert ("FP8" in more) == (scenario.precision == "fp8-tensorwise")
    if size == "70B":
        assert ("async TP" in more) == scenario.async_tp
    if size == "405B":
        assert more == [{"1f1b": "1F1B"}.get(scenario.schedule, scenario.schedule)]


def test_published_values_are_the_seminars() -> None:
    """SEMINAR A2 and A3: 6,667 tokens/s; 100 and 82.5 GiB, 128 and 72.7 GiB."""
    published = [
        llama.run_of(name)
        for name in (
            "8B, 8 GPUs, compiled", "405B, 512 GPUs, 1F1B", "405B, 512 GPUs, interleaved",
        )
    ]  # fmt: skip
    rates = [run.tokens_per_s_per_gpu for run in published]
    assert rates == pytest.approx([6667, 100, 128], rel=1e-3)
    assert [run.row.published_gib for run in published[1:]] == [82.5, 72.7]
    at = opened(llama.LAB, 1)
    assert any(caption.value.startswith("published 6,667") for caption in at.caption)


def test_the_mesh_names_the_links() -> None:
    """SEMINAR A1: tp stays in a host, dp and pp do not."""
    at = opened(llama.LAB, 0)
    axes = table_with(at, "crosses").set_index("axis")["crosses"]
    assert axes["tp"].startswith("inside a host")
    assert axes["dp_shard"].startswith("between hosts")
    assert axes["pp"].startswith("between hosts")
    at = opened(llama.LAB, 0, axis="cp")
    assert any(caption.value.startswith("There is no cp here") for caption in at.caption)


def test_the_mesh_is_that_of_the_questions_sliders() -> None:
    """dp 2 x tp 4 x pp 8: 64 GPUs; tp and dp together are a host; 256 / 2 sequences."""
    at = opened(llama.LAB, 0, dp="2", tp="4")
    values = {metric.label: metric.value for metric in at.metric}
    assert values["GPUs"] == "64"
    assert values["Hosts"] == "8"
    assert values["Sequences of a dp rank"] == "128"
    assert values["Axes inside a host"] == "dp_shard, tp"

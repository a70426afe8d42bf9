"""What the page Train trains: files, sizes, recorded steps; and views of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256

import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.reading import unfold
from triosim.figures.text import time_text
from triosim.hardware import load_gpu
from triosim.scenario import SAMPLE_TRACES
from triosim.schedules import make_schedule, read_grid
from triosim.train import TrainScenario, train
from triosim.workload import load_model

Open = Callable[..., AppTest]


def shown(at: AppTest) -> str:
    assert not at.exception
    return "\n".join(element.value for element in (*at.markdown, *at.caption, *at.subheader))


CONFIG = {
    "model_type": "llama", "num_hidden_layers": 3, "hidden_size": 256, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 512, "vocab_size": 1000,
    "max_position_embeddings": 512, "_name_or_path": "/home/somebody/secret/tiny",
}  # fmt: skip


def uploaded(at: AppTest, text: str) -> AppTest:
    at.get("file_uploader")[0].set_value(
        ("C:/Users/me/config.json", text.encode(), "application/json")
    )
    return at.run()


def test_an_uploaded_config_is_trained(train_page: Open) -> None:
    at = uploaded(train_page(v="1", origin="a config.json"), json.dumps(CONFIG))
    assert "tiny on 8 GPUs" in at.subheader[0].value
    assert "3 layers" in shown(at)
    # Embedding and head, layers of q, k, v, o and three products of the MLP, norms.
    layer = 2 * 256 * 256 + 2 * 256 * 128 + 3 * 256 * 512 + 2 * 256
    total = 2 * 1000 * 256 + 3 * layer + 256
    assert f"{total / 1e9:,.4g} B parameters" in shown(at)
    name = at.selectbox(key="config").value
    assert name == f"upload-{sha256(json.dumps(CONFIG).encode()).hexdigest()[:12]}"
    assert at.session_state["train_address"]["config"] == name
    unfold(at, "Change its sizes")
    at.number_input(key="layers").set_value(2).run()
    assert "2 layers" in shown(at)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nonsense", "config.json line 1: is no JSON"),
        ("[1]", "config.json list: must hold one JSON object."),
        ('{"model_type": "bert"}', "config.json, model\\_type bert: is not known"),
        (json.dumps({**CONFIG, "hidden_size": -1}), "config.json, hidden\\_size -1: must be"),
        (
            json.dumps({**CONFIG, "num_hidden_layers": 10**9}),
            "config.json, num\\_hidden\\_layers 1000000000: must be at most",
        ),
        ("[" * 100_000, "config.json (no JSON): cannot be read"),
    ],
)
def test_a_wrong_config_gets_a_sentence(train_page: Open, text: str, sentence: str) -> None:
    at = uploaded(train_page(v="1", origin="a config.json"), text)
    assert not at.exception
    assert at.sidebar.error[0].value.startswith(sentence)


def test_what_is_uploaded_leaves_no_path(train_page: Open) -> None:
    at = uploaded(train_page(v="1", origin="a config.json", look="Export"), json.dumps(CONFIG))
    said = "\n".join([shown(at), *(code.value for code in at.code)])
    assert "--config config.json" in said
    for trace in ("somebody", "Users", "triosim-uploads"):
        assert trace not in said
        assert trace not in str(at.session_state["train_address"])


def test_sizes_typed_in_begin_as_the_model_before(train_page: Open) -> None:
    at = train_page(v="1", model="llama3.2-1b")
    step = at.metric[0].value
    at.selectbox(key="origin").set_value("sizes typed in").run()
    model = load_model("llama3.2-1b")
    assert at.number_input(key="layers").value == model.layers
    assert at.number_input(key="kv_heads").value == model.kv_heads
    assert at.metric[0].value == step


def test_a_size_that_is_typed_stays_and_others_are_the_models(train_page: Open) -> None:
    at = train_page(v="1", model="llama3.2-1b", layers="4")
    step = at.metric[0].value
    at.selectbox(key="origin").set_value("sizes typed in").run()
    model = load_model("llama3.2-1b")
    assert at.number_input(key="layers").value == 4
    for name in ("hidden", "heads", "kv_heads", "ffn", "vocab"):
        assert at.number_input(key=name).value == getattr(model, name)
    assert at.metric[0].value == step


def test_a_recorded_step_takes_what_its_trace_says(train_page: Open) -> None:
    at = train_page(
        v="1", origin="a recorded step", recorded="gpt2", recompute="none", world="1", micro="8"
    )
    result = train(
        TrainScenario(
            trace_dir=str(SAMPLE_TRACES / "gpt2"), gpus=1, gpu="h100-96gb", micro_batch_size=8,
            machine="seminar-h100", stack="torchtitan-compile",
        )
    )  # fmt: skip
    assert at.metric[0].value == time_text(result.step_ms)
    assert "gpt2 on 1 GPU" in at.subheader[0].value


def test_a_grid_begins_as_1f1b_and_is_what_runs(train_page: Open) -> None:
    at = unfold(train_page(v="1", model="llama3.2-1b", pp="2", world="4"))
    step = at.metric[0].value
    at.selectbox(key="pipeline").set_value("typed as a grid").run()
    assert read_grid(at.text_area(key="grid").value).rows == make_schedule("1f1b", 2, 2, 1).rows
    assert at.metric[0].value == step
    at.text_area(key="grid").set_value("F0 B0 F1 B1\nF0 B0 F1 B1").run()
    assert not at.exception
    assert at.metric[0].value != step


def test_a_constant_typed_in_counts_and_is_marked(train_page: Open) -> None:
    at = train_page(v="1", model="llama3.2-1b", look="Checks and assumptions")
    before = at.metric[0].value
    unfold(at, "Constants of the software stack")
    at.number_input(key="stack_gemm").set_value(0.4).run()
    table = next(frame.value for frame in at.dataframe if "constant" in frame.value)
    row = table[table["constant"] == "gemm"].iloc[0]
    assert (row["value"], row["low"], row["high"]) == (0.4, 0.4, 0.4)
    assert row["source"] == "typed in on this page"
    assert at.metric[0].value != before


def test_a_prefill_says_time_to_first_token(train_page: Open) -> None:
    at = train_page(v="1", prefill="true", look="Whole run")
    assert at.metric[0].label == "Time to first token"
    assert "A prefill trains nothing" in at.info[0].value


def test_a_whole_run_is_tokens_over_tokens_per_second(train_page: Open) -> None:
    at = train_page(v="1", look="Whole run", tokens="1000", price="2")
    per_gpu = float(at.metric[1].value.replace(",", ""))
    hours = 1e12 / per_gpu / 3600  # of all GPUs together
    values = {metric.label: metric.value for metric in at.metric}
    assert float(values["GPU hours"].replace(",", "")) == pytest.approx(hours, rel=1e-4)
    assert float(values["Duration"].split()[0].replace(",", "")) == pytest.approx(
        hours / 8 / 24, rel=1e-3
    )
    assert float(values["Cost"].replace(",", "")) == pytest.approx(2 * hours, rel=1e-4)
    kwh = hours * load_gpu("h100-96gb").power_w / 1e3
    energy = values["Energy of the GPUs"]
    assert energy.endswith("MWh")
    assert float(energy.split()[0].replace(",", "")) == pytest.approx(kwh / 1e3, abs=0.051)

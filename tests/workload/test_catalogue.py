"""Every catalogue model has the parameters that its paper or card says."""

import csv

import pytest

from triosim.errors import ConfigError
from triosim.workload import (
    block_of,
    count_parameters,
    load_model,
    model_names,
    parts_of,
    published,
)
from triosim.workload.catalogue import read_models

# Parameters of the checkpoints' model cards.
CARDS = {
    "gpt2": 124_439_808,
    "gpt2-xl": 1_557_611_200,
    "llama2-7b": 6_738_415_616,
    "llama2-70b": 68_976_648_192,
    "llama3-8b": 8_030_261_248,
    "llama3-70b": 70_553_706_496,
    "llama3.1-405b": 405_853_388_800,
    "llama3.2-1b": 1_235_814_400,
    "llama3.2-3b": 3_212_749_824,
    "mistral-7b": 7_241_732_096,
    "mixtral-8x7b": 46_702_792_704,
    "qwen2-7b": 7_615_616_512,
    "qwen3-30b-a3b": 30_532_122_624,
    # The card's 671,026,419,200 with one bias per expert in the 58 routers, which is not trained.
    "deepseek-v3": 671_026_419_200 - 58 * 256,
}


@pytest.mark.parametrize(("name", "parameters"), CARDS.items())
def test_parameters_of_model_cards(name, parameters):
    assert count_parameters(load_model(name)).total == parameters


@pytest.mark.parametrize("name", model_names())
def test_every_model_has_the_published_size(name):
    source, total = published(name), count_parameters(load_model(name)).total
    assert source.parameters is not None or source.billions is not None
    if source.parameters is not None:
        assert total == source.parameters
    else:  # papers round, GPT-3's and Megatron's small sizes to two digits
        assert total == pytest.approx(source.billions * 1e9, rel=0.03)


# SC21, equation 2: P = 12 L h^2 (1 + 13/12h + (V + s)/12Lh); it leaves out the last norm.
@pytest.mark.parametrize("name", [n for n in model_names() if n.startswith(("megatron", "gpt"))])
def test_parameters_of_a_gpt(name):
    m = load_model(name)
    h, layers = m.hidden, m.layers
    expected = 12 * layers * h * h + 13 * layers * h + (m.vocab + m.seq_len) * h + 2 * h
    assert count_parameters(m).total == expected


@pytest.mark.parametrize(
    ("name", "active"), [("deepseek-v3", 37e9), ("mixtral-8x7b", 12.9e9), ("qwen3-30b-a3b", 3.3e9)]
)
def test_active_parameters_of_papers(name, active):
    assert count_parameters(load_model(name)).active == pytest.approx(active, rel=0.02)


@pytest.mark.parametrize("name", model_names())
def test_blocks_hold_the_parameters_of_the_closed_form(name):
    model = load_model(name)
    blocks = [block_of(model, part, batch=1, seq=16) for part in parts_of(model)]
    assert sum(block.parameter_count for block in blocks) == count_parameters(model).total


_IN_THE_CSV = {
    "Qwen3-235B-A22B": "qwen3-235b-a22b", "Qwen3-30B-A3B": "qwen3-30b-a3b",
    "DeepSeek-V3": "deepseek-v3", "Meta-Llama-3.1-405B": "llama3.1-405b",
    "Meta-Llama-3.1-70B": "llama3.1-70b", "Meta-Llama-3.1-8B": "llama3.1-8b",
    "Mixtral-8x22B-v0.1": "mixtral-8x22b", "Mixtral-8x7B-v0.1": "mixtral-8x7b",
    "llama2-7b": "llama2-7b", "llama2-13b": "llama2-13b", "llama2-70b": "llama2-70b",
    "llama3-70b": "llama3-70b", "gpt3-175b": "megatron-175b", "megatron-22b": "megatron-22b",
    "megatron-530b": "megatron-530b", "megatron-1t": "megatron-1t", "qwen3-32b": "qwen3-32b",
}  # fmt: skip


def test_the_architectures_that_others_wrote_down(shared):
    with (shared / "published" / "model_architectures.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["model"] in _IN_THE_CSV]
    assert len(rows) == len(_IN_THE_CSV)
    for row in rows:
        m = load_model(_IN_THE_CSV[row["model"]])
        ours = {
            "layers": m.layers, "hidden": m.hidden, "heads": m.heads, "kv_heads": m.groups,
            "head_dim": m.width, "ffn_hidden": m.ffn, "moe_ffn_hidden": m.expert_ffn,
            "experts": m.experts, "topk": m.top_k, "shared_experts": m.shared_experts,
            "first_dense_layers": m.dense_layers, "vocab": m.vocab,
        }  # fmt: skip
        for field, value in ours.items():
            if row[field]:
                assert int(row[field]) == value, (row["model"], field)
        assert (row["gated_ffn"] == "true") == m.gated


def test_names_and_aliases():
    assert load_model("Llama3.1-8B") is load_model("llama3-8b")
    with pytest.raises(ConfigError, match="model bert: no such model; known are gpt2, "):
        load_model("bert")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"source": ""}, "must say where"),
        ({"source": "x", "depth": 3}, "depth: is no field"),
        ({"source": "x"}, "missing"),
        ({"source": "x", "like": "nothing"}, "must be another entry"),
    ],
)
def test_damaged_entries(entry, message):
    with pytest.raises(ConfigError, match=message):
        read_models({"m": entry})


def test_an_entry_that_contradicts_its_published_size():
    entry = {
        "source": "x", "layers": 1, "hidden": 4, "heads": 1, "ffn": 4, "vocab": 8, "seq_len": 4,
        "parameters": 5,
    }  # fmt: skip
    with pytest.raises(ConfigError, match="parameters = 5: the description has"):
        read_models({"m": entry})

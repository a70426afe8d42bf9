"""Descriptions from config.json files."""

import json
from dataclasses import replace

import pytest

from triosim.errors import ConfigError
from triosim.workload import count_parameters, from_config, load_model

LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
    "vocab_size": 128256, "max_position_embeddings": 131072, "hidden_act": "silu",
    "tie_word_embeddings": False, "attention_bias": False,
}  # fmt: skip
MIXTRAL = {
    **LLAMA, "model_type": "mixtral", "vocab_size": 32000, "max_position_embeddings": 32768,
    "num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": None,
}  # fmt: skip
QWEN = {
    "model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
    "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
    "vocab_size": 152064, "max_position_embeddings": 131072, "use_sliding_window": False,
    "sliding_window": 131072,
}  # fmt: skip
GPT2 = {
    "model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
    "vocab_size": 50257, "activation_function": "gelu_new", "resid_pdrop": 0.1,
}  # fmt: skip
DEEPSEEK = {
    "model_type": "deepseek_v3", "hidden_size": 7168, "intermediate_size": 18432,
    "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128,
    "vocab_size": 129280, "max_position_embeddings": 163840, "n_routed_experts": 256,
    "num_experts_per_tok": 8, "n_shared_experts": 1, "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3, "q_lora_rank": 1536, "kv_lora_rank": 512,
    "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (LLAMA, "llama3-8b"),
        (MIXTRAL, "mixtral-8x7b"),
        (QWEN, "qwen2-7b"),
        (GPT2, "gpt2"),
        (DEEPSEEK, "deepseek-v3"),
    ],
)
def test_published_configs(config, name, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    found, known = from_config(path), load_model(name)
    assert count_parameters(found) == count_parameters(known)
    assert replace(found, name=name, kv_heads=known.kv_heads) == known


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "mamba"}, "model_type mamba: is not known; known are llama, mistral"),
        ({}, r"model_type \(missing\): is not known"),
        ({**LLAMA, "hidden_size": None}, r"hidden_size \(missing\): a config.json of llama must"),
        ({**LLAMA, "hidden_size": "big"}, "hidden_size big: must be a whole number"),
        ({**LLAMA, "num_key_value_heads": 5}, r"^num_key_value_heads 5: must divide heads \("),
        ({**LLAMA, "hidden_act": "xielu"}, "hidden_act xielu: must be gelu_new"),
        ({**LLAMA, "tie_word_embeddings": 1}, "tie_word_embeddings 1: must be true or false"),
    ],
)
def test_bad_configs(config, message):
    with pytest.raises(ConfigError, match=message):
        from_config(config)


@pytest.mark.parametrize(
    ("text", "message"), [("{", "is no JSON"), ("[1]", "must hold one JSON object")]
)
def test_bad_files(text, message, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        from_config(path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        from_config(tmp_path / "none.json")


_SMALL = {
    "vocab_size": 100, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
    "num_attention_heads": 4, "max_position_embeddings": 64,
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "extra"),
    [
        ("llama", {"num_key_value_heads": 2, "attention_bias": True, "mlp_bias": True}),
        ("mistral", {"num_key_value_heads": 2, "head_dim": 24}),
        ("mixtral", {"num_key_value_heads": 2, "num_local_experts": 4}),
        ("qwen2", {"num_key_value_heads": 2, "tie_word_embeddings": True}),
        ("qwen3", {"num_key_value_heads": 2, "head_dim": 24}),
        ("qwen3_moe", {"num_key_value_heads": 2, "num_experts": 8, "moe_intermediate_size": 32}),
        ("gpt_neox", {}),
        (
            "deepseek_v3",
            {
                "n_routed_experts": 8, "n_group": 2, "topk_group": 1, "num_experts_per_tok": 2,
                "moe_intermediate_size": 32, "first_k_dense_replace": 1, "q_lora_rank": 24,
                "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
                "v_head_dim": 16, "num_key_value_heads": 4,
            },
        ),
    ],
)  # fmt: skip
def test_parameters_of_the_real_modules(kind, extra):
    transformers = pytest.importorskip("transformers", reason="needs transformers")
    torch = pytest.importorskip("torch", reason="needs torch")
    config = transformers.AutoConfig.for_model(
        kind, **_SMALL, **extra, bos_token_id=0, eos_token_id=1, pad_token_id=0
    )
    with torch.device("meta"):
        module = transformers.AutoModelForCausalLM.from_config(config)
    module.tie_weights()
    expected = sum(p.numel() for p in module.parameters())
    assert count_parameters(from_config(config.to_dict())).total == expected

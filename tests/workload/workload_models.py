"""Small models of transformers, named for `tracer.derive`: KIND_ATTENTION, as in llama_sdpa.

Each is built twice: as the real module from its config, and by `from_config` from the same config.
"""

import torch
import transformers
from transformers.initialization import no_init_weights

BATCH = 2
_IDS = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 0}
_LLAMA = {
    "vocab_size": 1000, "hidden_size": 256, "intermediate_size": 640, "num_hidden_layers": 2,
    "num_attention_heads": 8, "max_position_embeddings": 512, **_IDS,
}  # fmt: skip
_GPT2 = {"vocab_size": 1000, "n_embd": 256, "n_layer": 2, "n_head": 8, "n_positions": 512, **_IDS}
_NO_DROPOUT = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
# model_type, settings, tokens in a sample
KINDS = {
    "llama": ("llama", {**_LLAMA, "num_key_value_heads": 2}, 128),
    "llama_long": ("llama", {**_LLAMA, "num_key_value_heads": 4}, 512),
    "llama_mha": ("llama", {**_LLAMA, "tie_word_embeddings": True, "num_hidden_layers": 3}, 96),
    "qwen2": ("qwen2", {**_LLAMA, "num_key_value_heads": 2}, 128),
    "qwen3": ("qwen3", {**_LLAMA, "num_key_value_heads": 2, "head_dim": 48}, 128),
    "gpt2": ("gpt2", _GPT2, 128),
    "gpt2_long": ("gpt2", {**_GPT2, "n_embd": 384, "n_layer": 3}, 512),
    "gpt2_without_dropout": ("gpt2", {**_GPT2, **_NO_DROPOUT}, 96),
}


def config_of(kind):
    model_type, settings, _ = KINDS[kind]
    return transformers.AutoConfig.for_model(model_type, **settings)


def _factory(kind, attention):
    def make(batch):
        config = config_of(kind)
        config.use_cache = False
        with no_init_weights():
            module = transformers.AutoModelForCausalLM.from_config(
                config, dtype=torch.get_default_dtype(), attn_implementation=attention
            )
        module.tie_weights()
        module.loss_type = "ForCausalLM"
        tokens = torch.randint(0, config.vocab_size, (batch, KINDS[kind][2]))
        return module, {"input_ids": tokens, "labels": tokens}, lambda output: output.loss

    return make


for _kind in KINDS:
    for _attention in ("sdpa", "eager"):
        globals()[f"{_kind}_{_attention}"] = _factory(_kind, _attention)

"""Module paths as `transformers` has them, by family."""

from __future__ import annotations

from dataclasses import dataclass

from triosim.workload.model import Transformer


@dataclass(frozen=True, kw_only=True, slots=True)
class Names:
    """`layer` has a place for the layer's number; the rest below `layer` is relative to it.

    `root` is the module around the layers; `conv`: weights stand transposed, as GPT-2's Conv1D.
    """

    root: str
    embedding: str
    positions: str
    layer: str
    first_norm: str
    attention: str
    qkv: str
    out: str
    second_norm: str
    mlp: str
    gate: str
    up: str
    down: str
    final_norm: str
    head: str
    conv: bool = False


_GPT2 = Names(
    root="transformer", embedding="transformer.wte", positions="transformer.wpe",
    layer="transformer.h.{}", first_norm="ln_1", attention="attn", qkv="c_attn", out="c_proj",
    second_norm="ln_2", mlp="mlp", gate="c_gate", up="c_fc", down="c_proj",
    final_norm="transformer.ln_f", head="lm_head", conv=True,
)  # fmt: skip
_NEOX = Names(
    root="gpt_neox", embedding="gpt_neox.embed_in", positions="gpt_neox.embed_positions",
    layer="gpt_neox.layers.{}", first_norm="input_layernorm", attention="attention",
    qkv="query_key_value", out="dense", second_norm="post_attention_layernorm", mlp="mlp",
    gate="dense_gate", up="dense_h_to_4h", down="dense_4h_to_h",
    final_norm="gpt_neox.final_layer_norm", head="lm_head",
)  # fmt: skip
_LLAMA = Names(
    root="model", embedding="model.embed_tokens", positions="model.embed_positions",
    layer="model.layers.{}", first_norm="input_layernorm", attention="self_attn", qkv="qkv_proj",
    out="o_proj", second_norm="post_attention_layernorm", mlp="mlp", gate="gate_proj",
    up="up_proj", down="down_proj", final_norm="model.norm", head="lm_head",
)  # fmt: skip


def names_of(model: Transformer) -> Names:
    """GPT-2's with learned positions, GPT-NeoX's with layer norms, else Llama's."""
    if model.positions == "learned":
        return _GPT2
    return _NEOX if model.norm == "layer" else _LLAMA

"""How many parameters a transformer has, part by part, in closed form."""

from __future__ import annotations

from dataclasses import dataclass

from triosim.workload.model import Transformer


@dataclass(frozen=True, kw_only=True, slots=True)
class ParameterCount:
    """Elements, not bytes. `attention`, `mlp` (dense), `moe` and `norms` are those of one layer.

    `active` is what one token passes: of the experts `top_k` and the shared ones.
    """

    embedding: int
    positions: int
    attention: int
    mlp: int
    moe: int
    norms: int
    final_norm: int
    head: int
    total: int
    active: int


def count_parameters(model: Transformer) -> ParameterCount:
    """The parameters of the whole model; a tied head has none of its own."""
    h = model.hidden
    embedding = model.vocab * h
    positions = model.seq_len * h if model.positions == "learned" else 0
    norm = h * (2 if model.norm == "layer" else 1)
    head = 0 if model.tied else embedding
    attention = _attention(model)
    mlp = _mlp(model, model.ffn)
    expert = _mlp(model, model.moe_ffn)
    router = h * model.experts
    moe = active_moe = 0
    if model.experts:
        moe = router + (model.experts + model.shared_experts) * expert
        active_moe = router + (model.top_k + model.shared_experts) * expert
    shared = embedding + positions + norm + head + model.layers * (attention + 2 * norm)
    dense = model.layers - model.moe_layers
    return ParameterCount(
        embedding=embedding,
        positions=positions,
        attention=attention,
        mlp=mlp,
        moe=moe,
        norms=2 * norm,
        final_norm=norm,
        head=head,
        total=shared + dense * mlp + model.moe_layers * moe,
        active=shared + dense * mlp + model.moe_layers * active_moe,
    )


def _attention(model: Transformer) -> int:
    """Projections, their biases and norms on queries and keys."""
    h, a = model.hidden, model.heads
    out = a * model.v_width * h + (h if model.out_bias else 0)
    if model.kv_lora is not None:
        kv = h * (model.kv_lora + model.rope_dim) + model.kv_lora
        kv += model.kv_lora * a * (model.width + model.v_width)
        q = h * a * model.qk_width
        if model.q_lora is not None:
            q = h * model.q_lora + model.q_lora + model.q_lora * a * model.qk_width
        return q + kv + out
    width = (a + 2 * model.groups) * model.width
    norms = 2 * model.width if model.qk_norm else 0
    return width * (h + (1 if model.qkv_bias else 0)) + norms + out


def _mlp(model: Transformer, ffn: int) -> int:
    up = 2 if model.gated else 1
    biases = up * ffn + model.hidden if model.mlp_bias else 0
    return (up + 1) * model.hidden * ffn + biases

"""Floating-point operations of a step in closed form: what MFU and HFU divide by time.

A weight that multiplies a token costs 2 operations forward and 4 backward; attention costs two
products of every pair of query and key forward and four backward, of which a causal mask needs
half. Whether that half is counted is a switch: papers mostly count the whole (`causal_half` False).
"""

from __future__ import annotations

from triosim.errors import ConfigError
from triosim.workload.attention import attended_pairs
from triosim.workload.model import Transformer
from triosim.workload.parameters import count_parameters


def model_flops_per_token(model: Transformer, seq: int, *, causal_half: bool = False) -> float:
    """Forward and backward of one token in a sequence of `seq`, without recomputation.

    6 (P - embeddings) + 6 L a (qk + v) pairs / s, with P the parameters that a token passes
    (of experts the chosen and the shared) and qk, v the widths of a head; for plain attention the
    second term is 12 L a d s. Llama-3-8B at 8,192: 57.9 GFLOP. Embedding tables multiply nothing
    and are left out; a tied head multiplies and is counted.
    """
    count = count_parameters(model)
    weights = count.active - count.embedding - count.positions
    if model.tied:
        weights += count.embedding
    pairs = attended_pairs(seq, seq, half=causal_half, window=model.sliding_window)
    widths = model.heads * (model.qk_width + model.v_width)
    return 6.0 * weights + 6.0 * model.layers * widths * pairs / seq


def hardware_flops_per_token(
    model: Transformer, seq: int, recompute: str = "none", *, causal_half: bool = False
) -> float:
    """With what is computed again: "none", "attention" (its core) or "full".

    Full recomputation is every layer's forward; the head is never computed again.
    """
    base = model_flops_per_token(model, seq, causal_half=causal_half)
    pairs = attended_pairs(seq, seq, half=causal_half, window=model.sliding_window)
    widths = model.heads * (model.qk_width + model.v_width)
    core = 2.0 * model.layers * widths * pairs / seq
    if recompute == "none":
        return base
    if recompute == "attention":
        return base + core
    if recompute != "full":
        raise ConfigError("recompute", recompute, "must be none, attention or full")
    return base + (base - 6.0 * model.vocab * model.hidden) / 3.0


def gpt_step_flops(
    *, batch: int, seq: int, layers: int, hidden: int, vocab: int, recompute: bool = False
) -> float:
    """One step of a GPT: 72 B s L h^2 (1 + s/6h + V/12Lh), with full recomputation 96 and V/16Lh.

    Narayanan et al., SC21 (arXiv 2104.04473); Korthikanti et al., arXiv 2205.05198.
    """
    forms, share = (96, 16) if recompute else (72, 12)
    inner = 1 + seq / (6 * hidden) + vocab / (share * layers * hidden)
    return forms * batch * seq * layers * hidden**2 * inner

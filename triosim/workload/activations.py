"""What a layer keeps for backward, in closed form, by software stack.

`megatron`: Korthikanti et al., arXiv 2205.05198, for a GPT in half precision (FFN 4h, plain
attention, dropout, unfused scores). `flash`: what the operators of the fused implementation keep,
written out; with a factor for what a stack's allocator and copies add, it is the form that was
fitted to published peaks (FIDELITY section 3: factors 0.85 to 0.89 on 14h in place of 8h). Both
leave out the statistics of norms, which `Block.saved_bytes` counts: below 0.1 %.
"""

from __future__ import annotations

from triosim.errors import ConfigError
from triosim.workload.layout import WHOLE, Layout
from triosim.workload.model import Transformer

RECOMPUTE = ("none", "selective", "full")


def megatron_layer_bytes(
    *,
    seq: int,
    batch: int,
    hidden: int,
    heads: int,
    tp: int = 1,
    sequence_parallel: bool = False,
    recompute: str = "none",
) -> float:
    """Bytes one layer keeps on one rank; "selective" computes the core of attention again.

    With K = 5as/h: none sbh (10 + 24/t + K/t), with sequence parallelism sbh/t (34 + K);
    selective the same without K; full 2sbh, the layer's input, whole on every rank.
    """
    if recompute not in RECOMPUTE:
        raise ConfigError("recompute", recompute, f"must be {', '.join(RECOMPUTE)}")
    size = float(seq * batch * hidden)
    if recompute == "full":
        return 2 * size
    scores = 5 * heads * seq / hidden if recompute == "none" else 0.0
    whole = 10 / tp if sequence_parallel else 10
    return size * (whole + (24 + scores) / tp)


def flash_layer_bytes(
    model: Transformer, *, batch: int, seq: int, layout: Layout = WHOLE, element_bytes: int = 2
) -> float:
    """Bytes one dense layer keeps on one rank under flash attention and fused kernels.

    Per token and element: the inputs of both norms and both branches 4h; queries, keys, values and
    their result (2a + 2kv) d / t; of the MLP three widths f / t gated, else two. Dropout adds a
    byte of mask for each of 2h. sp divides 4h and the masks.
    """
    tokens = batch * seq / layout.cp
    tp, sp = layout.tp, layout.tp if layout.sequence_parallel else 1
    between = 4 * model.hidden / sp
    if sp > 1 and layout.keep_gathered:
        between = 2 * model.hidden / sp + 2 * model.hidden
    heads = model.heads / tp * (model.qk_width + model.v_width)
    keys = layout.kv_heads(model) * (model.qk_width + model.v_width)
    mlp = (3 if model.gated else 2) * model.ffn / tp
    masks = 2 * model.hidden / sp if model.dropout else 0.0
    return tokens * (element_bytes * (between + heads + keys + mlp) + masks)

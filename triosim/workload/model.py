"""A transformer as numbers: what its configuration says and no weights.

Decoders of the GPT-2, GPT-NeoX and Llama families, with grouped queries, latent attention
(DeepSeek-V2 and V3), mixtures of experts and a sliding window. Left out: encoders, cross attention,
layers that differ otherwise than dense and mixture, and DeepSeek's multi-token prediction.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from triosim.errors import ConfigError

POSITIONS = ("learned", "rotary")
NORMS = ("layer", "rms")
ACTIVATIONS = ("gelu_new", "gelu", "relu", "silu")
MAX_LAYERS = 10_000  # each has a name and a place: more would not fit in memory
_COUNTS = ("layers", "hidden", "heads", "ffn", "vocab", "seq_len")
_OPTIONAL = (
    "kv_heads",
    "head_dim",
    "sliding_window",
    "expert_ffn",
    "kv_lora",
    "q_lora",
    "v_head_dim",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Transformer:
    """A decoder-only transformer.

    `ffn` is the width inside the MLP, `gated` whether it has a third matrix (SwiGLU). `tied`: the
    head multiplies by the embedding's table. `seq_len` is the longest sequence it is made for.
    `head_dim` and `kv_heads` are hidden / heads and heads where None. `parallel`: attention and MLP
    read the same input (GPT-NeoX). With `experts`, all but the first `dense_layers` layers have
    that many MLPs of width `expert_ffn`, of which a token passes `top_k`, and `shared_experts`
    more that every token passes. With `kv_lora` keys and values come from a latent of that width
    and queries from one of `q_lora` (None: directly); `rope_dim` of each head's `head_dim` +
    `rope_dim` are rotated and values are `v_head_dim` wide (None: `head_dim`).
    """

    name: str
    layers: int
    hidden: int
    heads: int
    ffn: int
    vocab: int
    seq_len: int
    kv_heads: int | None = None
    head_dim: int | None = None
    gated: bool = True
    activation: str = "silu"
    tied: bool = False
    positions: str = "rotary"
    norm: str = "rms"
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    parallel: bool = False
    dropout: bool = False
    sliding_window: int | None = None
    experts: int = 0
    top_k: int = 0
    shared_experts: int = 0
    expert_ffn: int | None = None
    dense_layers: int = 0
    q_lora: int | None = None
    kv_lora: int | None = None
    rope_dim: int = 0
    v_head_dim: int | None = None

    def __post_init__(self) -> None:
        for name in _COUNTS:
            _whole(name, getattr(self, name), 1)
        if self.layers > MAX_LAYERS:
            raise ConfigError("layers", self.layers, f"must be at most {MAX_LAYERS:,}")
        for name in _OPTIONAL:
            if getattr(self, name) is not None:
                _whole(name, getattr(self, name), 1)
        for name, legal in (
            ("positions", POSITIONS),
            ("norm", NORMS),
            ("activation", ACTIVATIONS),
        ):
            if getattr(self, name) not in legal:
                raise ConfigError(name, getattr(self, name), f"must be {' or '.join(legal)}")
        if self.head_dim is None and self.hidden % self.heads:
            raise ConfigError(
                "heads", self.heads, f"must divide hidden ({self.hidden}), or head_dim be given"
            )
        if self.heads % self.groups:
            raise ConfigError("kv_heads", self.groups, f"must divide heads ({self.heads})")
        self._check_experts()

    def _check_experts(self) -> None:
        for name in ("experts", "top_k", "shared_experts", "dense_layers", "rope_dim"):
            _whole(name, getattr(self, name), 0)
        if self.experts and not 1 <= self.top_k <= self.experts:
            raise ConfigError("top_k", self.top_k, f"must be 1 to experts ({self.experts})")
        if not self.experts and (self.top_k or self.shared_experts):
            name = "top_k" if self.top_k else "shared_experts"
            raise ConfigError(name, getattr(self, name), "needs experts, of which there are none")
        if self.dense_layers > self.layers:
            problem = (
                f"must be at least {self.dense_layers:,}, for the first {self.dense_layers:,} "
                "layers of this model are dense"
            )
            raise ConfigError("layers", self.layers, problem)
        self._check_latent()

    def _check_latent(self) -> None:
        if self.kv_lora is not None and not self.rope_dim:
            raise ConfigError("rope_dim", 0, "must be at least 1 with kv_lora")
        for name in ("q_lora", "rope_dim", "v_head_dim"):
            if self.kv_lora is None and getattr(self, name):
                raise ConfigError(name, getattr(self, name), "needs kv_lora")

    @property
    def groups(self) -> int:
        """Heads of keys and values."""
        return self.heads if self.kv_heads is None else self.kv_heads

    @property
    def width(self) -> int:
        """The size of one head without its rotated extra part."""
        return self.hidden // self.heads if self.head_dim is None else self.head_dim

    @property
    def qk_width(self) -> int:
        """The size of one head in the product of queries and keys."""
        return self.width + (self.rope_dim if self.kv_lora is not None else 0)

    @property
    def v_width(self) -> int:
        """The size of one head of values."""
        return self.width if self.v_head_dim is None else self.v_head_dim

    @property
    def moe_ffn(self) -> int:
        """The width of one expert."""
        return self.ffn if self.expert_ffn is None else self.expert_ffn

    @property
    def moe_layers(self) -> int:
        return self.layers - self.dense_layers if self.experts else 0

    @property
    def fused_qkv(self) -> bool:
        """One product makes queries, keys and values, as in GPT-2 and GPT-NeoX."""
        return self.norm == "layer" and self.kv_lora is None


def _whole(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(name, value, f"must be a whole number from {least}")


FIELDS = tuple(field.name for field in fields(Transformer))

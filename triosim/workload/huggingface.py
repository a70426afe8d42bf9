"""A transformer from a Hugging Face config.json."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from triosim.errors import ConfigError
from triosim.workload.model import ACTIVATIONS, Transformer

# What a file calls the parts of a model that can be wrong beside each other.
_KEYS: Mapping[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer"),
    "hidden": ("hidden_size", "n_embd"),
    "heads": ("num_attention_heads", "n_head"),
    "kv_heads": ("num_key_value_heads",),
    "head_dim": ("qk_nope_head_dim",),
    "ffn": ("intermediate_size", "n_inner"),
    "vocab": ("vocab_size",),
    "seq_len": ("max_position_embeddings", "n_positions"),
    "experts": ("num_experts", "n_routed_experts", "num_local_experts"),
    "top_k": ("num_experts_per_tok",),
    "expert_ffn": ("moe_intermediate_size",),
    "dense_layers": ("first_k_dense_replace",),
    "kv_lora": ("kv_lora_rank",),
    "q_lora": ("q_lora_rank",),
    "rope_dim": ("qk_rope_head_dim",),
}
_ACTIVATIONS = {"gelu_pytorch_tanh": "gelu_new", "gelu_fast": "gelu_new", "swish": "silu"}


def from_config(config: str | Path | Mapping[str, Any]) -> Transformer:
    """The model that a config.json, or what was read from one, describes.

    Knows `model_type` llama, mistral, mixtral, qwen2, qwen3, qwen3_moe, gpt2, gpt_neox,
    deepseek_v2 and deepseek_v3. Raises `ConfigError` for another one, for a missing key and for a
    file that is no JSON object; on field "config" where that is a path, else on the key.
    """
    if isinstance(config, Mapping):
        return _model(config)
    values = _read(Path(config))
    try:
        return _model(values)
    except ConfigError as error:
        raise ConfigError("config", config, str(error).removesuffix(".")) from None


def _model(values: Mapping[str, Any]) -> Transformer:
    kind = str(values.get("model_type", "(missing)"))
    if kind not in _FAMILIES:
        raise ConfigError("model_type", kind, f"is not known; known are {', '.join(_FAMILIES)}")
    try:
        return _FAMILIES[kind](_Config(values))
    except ConfigError as error:
        keys = (key for key in _KEYS.get(error.field, ()) if key in values)
        field = next(keys, error.field)
        raise ConfigError(field, error.value, error.rule, error.near) from None


def _read(path: Path) -> Mapping[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError("config", path, f"cannot be read ({error})") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError("config", path, f"is no JSON ({error})") from None
    if not isinstance(values, dict):
        raise ConfigError("config", path, "must hold one JSON object")
    return values


class _Config:
    """Checked access to a config's keys."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def number(self, key: str, other: str = "") -> int:
        """A required number; `other` is the key's name in newer files."""
        key = other if key not in self._values and other in self._values else key
        value = self._values.get(key)
        if value is None:
            kind = self._values.get("model_type")
            raise ConfigError(key, "(missing)", f"a config.json of {kind} must have it")
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ConfigError(key, value, "must be a whole number from 0")
        return value

    def optional(self, key: str) -> int | None:
        return None if self._values.get(key) is None else self.number(key)

    def flag(self, key: str, default: bool = False) -> bool:
        value = self._values.get(key, default)
        if not isinstance(value, bool):
            raise ConfigError(key, value, "must be true or false")
        return value

    def positive(self, key: str) -> bool:
        """Whether a probability is given and above 0."""
        value = self._values.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise ConfigError(key, value, "must be a number")
        return bool(value)

    def activation(self, key: str, default: str) -> str:
        name = str(self._values.get(key, default))
        name = _ACTIVATIONS.get(name, name)
        if name not in ACTIVATIONS:
            raise ConfigError(key, name, f"must be {', '.join(ACTIVATIONS)}")
        return name

    @property
    def name(self) -> str:
        name = str(self._values.get("_name_or_path") or self._values.get("model_type"))
        return name.rstrip("/").rpartition("/")[2]


def _llama_like(c: _Config) -> dict[str, Any]:
    """What Llama and its descendants share."""
    return {
        "name": c.name,
        "layers": c.number("num_hidden_layers"),
        "hidden": c.number("hidden_size"),
        "heads": c.number("num_attention_heads"),
        "kv_heads": c.optional("num_key_value_heads"),
        "head_dim": c.optional("head_dim"),
        "ffn": c.number("intermediate_size"),
        "vocab": c.number("vocab_size"),
        "seq_len": c.number("max_position_embeddings"),
        "tied": c.flag("tie_word_embeddings"),
        "activation": c.activation("hidden_act", "silu"),
    }


def _llama(c: _Config) -> Transformer:
    bias = c.flag("attention_bias")
    values = _llama_like(c)
    return Transformer(**values, qkv_bias=bias, out_bias=bias, mlp_bias=c.flag("mlp_bias"))


def _mistral(c: _Config) -> Transformer:
    return Transformer(**_llama_like(c), sliding_window=c.optional("sliding_window"))


def _mixtral(c: _Config) -> Transformer:
    return Transformer(
        **_llama_like(c),
        sliding_window=c.optional("sliding_window"),
        experts=c.number("num_local_experts"),
        top_k=c.number("num_experts_per_tok"),
    )


def _qwen2(c: _Config) -> Transformer:
    window = c.optional("sliding_window") if c.flag("use_sliding_window") else None
    return Transformer(**_llama_like(c), qkv_bias=True, sliding_window=window)


def _qwen3(c: _Config) -> Transformer:
    window = c.optional("sliding_window") if c.flag("use_sliding_window") else None
    bias = c.flag("attention_bias")
    return Transformer(
        **_llama_like(c), qkv_bias=bias, out_bias=bias, qk_norm=True, sliding_window=window
    )


def _qwen3_moe(c: _Config) -> Transformer:
    bias = c.flag("attention_bias")
    return Transformer(
        **_llama_like(c),
        qkv_bias=bias,
        out_bias=bias,
        qk_norm=True,
        experts=c.number("num_experts", "num_local_experts"),
        top_k=c.number("num_experts_per_tok"),
        expert_ffn=c.number("moe_intermediate_size"),
    )


def _gpt2(c: _Config) -> Transformer:
    hidden = c.number("n_embd")
    return Transformer(
        name=c.name,
        layers=c.number("n_layer"),
        hidden=hidden,
        heads=c.number("n_head"),
        ffn=c.optional("n_inner") or 4 * hidden,
        vocab=c.number("vocab_size"),
        seq_len=c.number("n_positions"),
        gated=False,
        activation=c.activation("activation_function", "gelu_new"),
        tied=c.flag("tie_word_embeddings", True),
        positions="learned",
        norm="layer",
        qkv_bias=True,
        out_bias=True,
        mlp_bias=True,
        dropout=c.positive("resid_pdrop"),
    )


def _gpt_neox(c: _Config) -> Transformer:
    bias = c.flag("attention_bias", True)
    return Transformer(
        name=c.name,
        layers=c.number("num_hidden_layers"),
        hidden=c.number("hidden_size"),
        heads=c.number("num_attention_heads"),
        ffn=c.number("intermediate_size"),
        vocab=c.number("vocab_size"),
        seq_len=c.number("max_position_embeddings"),
        gated=False,
        activation=c.activation("hidden_act", "gelu"),
        tied=c.flag("tie_word_embeddings"),
        norm="layer",
        qkv_bias=bias,
        out_bias=bias,
        mlp_bias=True,
        parallel=c.flag("use_parallel_residual", True),
    )


def _deepseek(c: _Config) -> Transformer:
    """DeepSeek-V2 and V3: latent attention, shared experts, the first layers dense."""
    values = _llama_like(c)
    return Transformer(
        **{**values, "kv_heads": None, "head_dim": c.number("qk_nope_head_dim")},
        experts=c.number("n_routed_experts", "num_local_experts"),
        top_k=c.number("num_experts_per_tok"),
        shared_experts=c.number("n_shared_experts"),
        expert_ffn=c.number("moe_intermediate_size"),
        dense_layers=c.number("first_k_dense_replace"),
        q_lora=c.optional("q_lora_rank"),
        kv_lora=c.number("kv_lora_rank"),
        rope_dim=c.number("qk_rope_head_dim"),
        v_head_dim=c.number("v_head_dim"),
    )


_FAMILIES: Mapping[str, Callable[[_Config], Transformer]] = {
    "llama": _llama,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
    "gpt2": _gpt2,
    "gpt_neox": _gpt_neox,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek,
}

"""Architectures of transformers, built from their config classes: random weights, no network.

architectures.toml names the published configurations; any other `model_type` of transformers is
built with the defaults of its config class.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib.resources import files
from typing import Any

import torch
from torch import Tensor
from torch._guards import detect_fake_mode

from tracer.models.job import Job
from triosim.errors import ConfigError

SEQ_LEN = 512
_HEADS = {
    "causal": "AutoModelForCausalLM",
    "masked": "AutoModelForMaskedLM",
    "image": "AutoModelForImageClassification",
}


@lru_cache(maxsize=1)
def architectures() -> Mapping[str, Mapping[str, Any]]:
    """Published configurations by name: model_type, head, settings and source."""
    text = (files("tracer.models") / "architectures.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def build(name: str, batch_size: int, seq_len: int | None) -> Job:
    """The named architecture with random tokens (or images) and labels."""
    transformers = _transformers(name)
    known = architectures().get(name, {})
    try:
        config = transformers.AutoConfig.for_model(
            known.get("model_type", name), **known.get("settings", {})
        )
    except ValueError:
        names = ", ".join(architectures())
        raise ConfigError(
            "model", name, f"is no architecture of transformers; known are {names}"
        ) from None
    config.use_cache = False
    head = known.get("head") or _head(transformers, config, name)
    length = None if head == "image" else _length(config, seq_len, name)
    with _without_weights(transformers):
        module = getattr(transformers, _HEADS[head]).from_config(
            config, dtype=torch.get_default_dtype()
        )
    module.tie_weights()  # skipped where initialisation is
    if head == "causal" and not getattr(module, "loss_type", None):
        module.loss_type = "ForCausalLM"  # transformers' own default, without its warning
    return Job(
        name=name,
        module=module,
        inputs=_inputs(config, batch_size, length),
        targets=None,
        loss=_loss_of,
        batch_size=batch_size,
        seq_len=length,
    )


def _transformers(name: str) -> Any:
    try:
        import transformers
    except ImportError:
        raise ConfigError(
            "model", name, 'needs transformers, which is not installed: pip install "transformers"'
        ) from None
    return transformers


def _head(transformers: Any, config: Any, name: str) -> str:
    for head, auto in _HEADS.items():
        if type(config) in getattr(transformers, auto)._model_mapping:
            return head
    raise ConfigError(
        "model", name, "has no head for language modelling or image classification in transformers"
    )


@contextmanager
def _without_weights(transformers: Any) -> Iterator[None]:
    """Skip initialisation where tensors are fake: it only costs time there."""
    if detect_fake_mode() is None:
        yield
        return
    from transformers.initialization import no_init_weights

    with no_init_weights():
        yield


@contextmanager
def one_sequence_per_sample() -> Iterator[None]:
    """Answer for fake tensors what transformers looks up in real ones.

    Without an attention mask it checks by value that no sample packs several sequences, and only
    then takes kernels without a mask. The check's operators run, and the answer is no.
    """
    masking = sys.modules.get("transformers.masking_utils")
    check = getattr(masking, "find_packed_sequence_indices", None)
    if check is None:
        yield
        return

    def find(position_ids: Tensor) -> None:
        (check(position_ids)[:, -1] == 0).all()

    masking.find_packed_sequence_indices = find  # type: ignore[union-attr]
    try:
        yield
    finally:
        masking.find_packed_sequence_indices = check  # type: ignore[union-attr]


def _length(config: Any, seq_len: int | None, name: str) -> int:
    limit = getattr(config, "max_position_embeddings", None)
    length = seq_len or min(SEQ_LEN, limit or SEQ_LEN)
    if limit is not None and length > limit:
        raise ConfigError("seq_len", length, f"{name} has positions for {limit} tokens")
    return length


def _inputs(config: Any, batch_size: int, length: int | None) -> dict[str, Tensor]:
    """Tokens, of which each is to be predicted; without a length images with a class each."""
    if length is not None:
        tokens = torch.randint(0, config.vocab_size, (batch_size, length))
        return {"input_ids": tokens, "labels": tokens}
    size = getattr(config, "image_size", 224)
    pixels = torch.randn(batch_size, getattr(config, "num_channels", 3), size, size)
    return {"pixel_values": pixels, "labels": torch.randint(0, config.num_labels, (batch_size,))}


def _loss_of(output: Any, _: Tensor | None) -> Tensor:
    loss = output.loss
    assert isinstance(loss, Tensor)
    return loss

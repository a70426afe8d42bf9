"""From a model's name to a job.

    torchvision:resnet50     a classifier of torchvision, on ImageNet-sized images
    transformers:gpt2        an architecture of transformers, built from its config class
    my.package:factory       the user's own
    resnet50, gpt2           the same without the library, looked up in both

Nothing is downloaded: weights are random. Building inside a FakeTensorMode gives fake tensors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch._guards import detect_fake_mode

from tracer.models import language, own, vision
from tracer.models.job import Job, torch_dtype
from triosim.errors import ConfigError


def build_job(
    name: str, batch_size: int, *, dtype: str = "fp32", seq_len: int | None = None
) -> Job:
    """The named model with one batch of random samples.

    Raises `ConfigError` on field "model" where the name is unknown or a package is missing.
    """
    if batch_size < 1:
        raise ConfigError("batch", batch_size, "must be a whole number from 1")
    if seq_len is not None and seq_len < 1:
        raise ConfigError("seq_len", seq_len, "must be a whole number from 1")
    library, _, rest = name.rpartition(":")
    library = library or _library_of(name)
    with default_dtype(torch_dtype(dtype)), _without_initialisation():
        if library == "torchvision":
            job = vision.build(rest, batch_size)
        elif library == "transformers":
            job = language.build(rest, batch_size, seq_len)
        else:
            job = own.build(library, rest, batch_size)
    job.module.train()
    return job


def _library_of(name: str) -> str:
    if name in language.architectures():
        return "transformers"
    if vision.is_missing():
        raise ConfigError(
            "model", name,
            "is not among the architectures of transformers known by a short name "
            f"({', '.join(language.architectures())}), and torchvision, which may have it, "
            "is not installed",
        )  # fmt: skip
    return "torchvision"


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """New floating-point tensors get this type; a later `.to` would fail under fake tensors."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def _without_initialisation() -> Iterator[None]:
    """Skip torch.nn.init where tensors are fake: they have no values, and some of it asks for them.

    transformers brings its own copy of the same; `language` switches that off.
    """
    if detect_fake_mode() is None:
        yield
        return
    init = torch.nn.init
    originals = {name: f for name, f in vars(init).items() if re.fullmatch(r"[a-z]\w*_", name)}
    for name in originals:
        setattr(init, name, lambda tensor, *_, **__: tensor)
    try:
        yield
    finally:
        for name, function in originals.items():
            setattr(init, name, function)


def file_name(name: str) -> str:
    """The model's name as part of a file name: torchvision:vgg13 becomes vgg13."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name.rpartition(":")[2]) or "model"

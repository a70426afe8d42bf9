"""Collect a named model: build it, move it to the device, record a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from typing import Any

import torch

from tracer.collect.record import ITERATIONS, Recording, record
from tracer.models import Job, build_job, make_optimizer, train_step
from tracer.models.vision import image_batches
from triosim.errors import ConfigError

DEVICES = ("cuda", "cpu")
BATCHES = 4  # of --data, used in turn


def collect(
    model: str,
    *,
    batch_size: int,
    iters: int = ITERATIONS,
    device: str | None = None,
    dtype: str = "fp32",
    optimizer: str = "adam",
    data: str | None = None,
    seq_len: int | None = None,
    output: str | Path = "data",
    progress: bool = True,
) -> Recording:
    """Train `model` for `iters` steps on random samples, or on the images of `data`.

    `device`: what is there where None; "cuda" is also what PyTorch calls a ROCm device. "tf32" as
    `dtype` is float32 with TF32 matrix products.
    """
    place = _device(device)
    torch.set_float32_matmul_precision("high" if dtype == "tf32" else "highest")
    job = build_job(model, batch_size, dtype=dtype, seq_len=seq_len).to(place)
    facts: dict[str, Any] = {
        "model": model,
        "dtype": dtype,
        "optimizer": optimizer,
    }
    if job.seq_len is not None:
        facts["seq_len"] = job.seq_len
    return record(
        _stepper(job, optimizer, data, place),
        batch_size=batch_size,
        name=model,
        output=output,
        iters=iters,
        device=place.type,
        progress=progress,
        module=job.module,
        **facts,
    )


def _device(name: str | None) -> torch.device:
    available = torch.cuda.is_available()
    if name is None:
        return torch.device("cuda" if available else "cpu")
    if name not in DEVICES:
        raise ConfigError("device", name, f"must be {' or '.join(DEVICES)}")
    if name == "cuda" and not available:
        raise ConfigError("device", name, "PyTorch finds no GPU here; cpu works everywhere")
    return torch.device(name)


def _stepper(
    job: Job, optimizer_name: str, data: str | None, device: torch.device
) -> Callable[[], None]:
    optimizer = make_optimizer(optimizer_name, job.module)
    if data is None:
        return lambda: train_step(job, optimizer)
    if not (isinstance(job.inputs, tuple) and job.targets is not None):
        raise ConfigError("data", data, f"holds images, and {job.name} does not take images")
    dtype = next(job.module.parameters()).dtype
    # Read before the steps: reading files is no part of a step on a GPU.
    jobs = cycle(
        [
            replace(job, inputs=(images.to(device, dtype),), targets=labels.to(device))
            for images, labels in image_batches(data, job.batch_size, BATCHES)
        ]
    )
    return lambda: train_step(next(jobs), optimizer)

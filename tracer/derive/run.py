"""Derive a trace: the whole path from a model's name to operators with times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedOperatorException,
)

from tracer.derive import attention as kernels
from tracer.derive.assemble import assemble
from tracer.derive.record import Recorder
from tracer.models import Job, build_job, file_name, make_optimizer
from tracer.models.language import one_sequence_per_sample
from triosim.errors import ConfigError
from triosim.hardware import load_gpu
from triosim.trace import Tensor, Trace

# What torch raises where a result or its shape depends on values, which fake tensors have not.
_NEEDS_VALUES = (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedOperatorException,
)

_RECURRENT = frozenset({"aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu"})


def derive(
    model: str,
    *,
    gpu: str,
    batch_size: int,
    dtype: str = "fp32",
    seq_len: int | None = None,
    optimizer: str = "adam",
    attention: str = "flash",
) -> Trace:
    """The trace of one training step of `model` on `gpu`, which need not exist here.

    `dtype` is that of weights and samples; "tf32" is float32 with TF32 matrix products. Takes no
    memory for tensors and a second or two. Raises `ConfigError` for what cannot be derived.
    """
    if attention not in kernels.KINDS:
        raise ConfigError("attention", attention, f"must be {' or '.join(kernels.KINDS)}")
    device = load_gpu(gpu)
    with FakeTensorMode(allow_non_fake_inputs=True):
        try:
            job = build_job(model, batch_size, dtype=dtype, seq_len=seq_len)
            recorder = Recorder(job.module, attention, tf32_matmul=dtype == "tf32")
            gradients = _run_step(job, recorder, optimizer)
        except _NEEDS_VALUES as error:
            reason = str(error).strip().splitlines()[0]
            problem = f"needs the values of its tensors, which a derived trace has not ({reason})"
            raise ConfigError("model", model, problem) from None
    options = {"dtype": dtype, "optimizer": optimizer, "attention": attention}
    return Trace(
        name=file_name(model),
        operators=assemble(recorder.calls, gradients, device),
        batch_size=batch_size,
        meta={"source": "derived", "model": model, "gpu": device.name, **options, **_facts(job)}
        | {"notes": _notes(recorder)},
    )


def _facts(job: Job) -> dict[str, Any]:
    length = {} if job.seq_len is None else {"seq_len": job.seq_len}
    parameters = sum(p.numel() for p in job.module.parameters())
    return {**length, "parameters": parameters, "torch": str(torch.__version__)}


def _run_step(job: Job, recorder: Recorder, optimizer_name: str) -> dict[int, Tensor]:
    """Record forward, backward and optimizer step; the gradients by storage."""
    optimizer = make_optimizer(optimizer_name, job.module)
    _make_state(job, optimizer)
    with one_sequence_per_sample(), _without_mkldnn(), recorder.recording():
        loss = job.compute_loss()
        loss.backward()  # type: ignore[no-untyped-call]
        found = [p.grad for p in job.module.parameters() if p.grad is not None]
        gradients = [recorder.table.name(gradient, "grad_output") for gradient in found]
        recorder.optimizing = True
        optimizer.step()
    return {gradient.storage: gradient for gradient in gradients}


@contextmanager
def _without_mkldnn() -> Iterator[None]:
    """It has recurrent layers of its own, which no GPU has."""
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(before)


def _make_state(job: Job, optimizer: torch.optim.Optimizer) -> None:
    """Let the optimizer allocate its state, which in a step from the middle of training it has."""
    for parameter in job.module.parameters():
        if parameter.requires_grad:
            parameter.grad = torch.empty_like(parameter)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def _notes(recorder: Recorder) -> list[str]:
    notes = ["Times are a roofline's; no GPU has run this step."]
    if recorder.dropped_attention_dropout:
        notes.append(
            "Attention runs without its dropout: a flash kernel draws the random numbers again in "
            f"backward and keeps {kernels.SEED_BYTES} bytes of seed per layer instead of a mask."
        )
    if any(call.name in _RECURRENT for call in recorder.calls):
        notes.append("Recurrent layers run step by step, without the fused kernels of cuDNN.")
    return notes

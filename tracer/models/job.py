"""A model, a batch and a loss: everything a training step needs besides an optimizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from triosim.errors import ConfigError

DTYPES = {
    "fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16,
}  # fmt: skip
OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "sgd": lambda parameters, **kw: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, **kw),
    "adam": lambda parameters, **kw: torch.optim.Adam(parameters, lr=1e-4, **kw),
    "adamw": lambda parameters, **kw: torch.optim.AdamW(parameters, lr=1e-4, **kw),
}


@dataclass(frozen=True, kw_only=True)
class Job:
    """A module in training mode with one batch.

    `inputs` are positional or named arguments; `loss` makes a scalar of the module's output and
    `targets`.
    """

    name: str
    module: nn.Module
    inputs: tuple[Any, ...] | Mapping[str, Any]
    targets: Tensor | None
    loss: Callable[[Any, Tensor | None], Tensor]
    batch_size: int
    seq_len: int | None = None

    def compute_loss(self) -> Tensor:
        if isinstance(self.inputs, Mapping):
            return self.loss(self.module(**self.inputs), self.targets)
        return self.loss(self.module(*self.inputs), self.targets)

    def to(self, device: torch.device) -> Job:
        """The same job on a device."""
        targets = None if self.targets is None else self.targets.to(device)
        inputs = _moved(self.inputs, device)
        return replace(self, module=self.module.to(device), inputs=inputs, targets=targets)


def _moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, Mapping):
        return {key: _moved(item, device) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return tuple(_moved(item, device) for item in value)
    return value


def make_optimizer(name: str, module: nn.Module) -> torch.optim.Optimizer:
    """SGD with momentum 0.9, Adam or AdamW over what the module trains.

    Always the foreach form, which is PyTorch's default on a GPU and not on a CPU.
    """
    if name not in OPTIMIZERS:
        raise ConfigError("optimizer", name, f"must be {', '.join(OPTIMIZERS)}")
    parameters = [p for p in module.parameters() if p.requires_grad]
    if not parameters:
        raise ConfigError("model", type(module).__name__, "has no parameter to train")
    return OPTIMIZERS[name](parameters, foreach=True)


def train_step(job: Job, optimizer: torch.optim.Optimizer) -> None:
    """One step as a training loop writes it."""
    optimizer.zero_grad()
    job.compute_loss().backward()  # type: ignore[no-untyped-call]
    optimizer.step()


def torch_dtype(name: str) -> torch.dtype:
    if name not in DTYPES:
        raise ConfigError("dtype", name, f"must be {', '.join(DTYPES)}")
    return DTYPES[name]

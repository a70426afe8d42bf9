"""A user's own model: any importable function that returns a module.

The factory is called with the batch size where it takes an argument, and returns

    module                        fed with ImageNet-sized images and labels, cross-entropy loss
    (module, inputs)              a tuple or a mapping of arguments for one batch
    (module, inputs, loss)        loss(output) gives a scalar

Without a loss, an output that has one (`output.loss`), a scalar, or the mean of the output is used.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from tracer.models.job import Job
from tracer.models.vision import image_job
from triosim.errors import ConfigError


def build(module_path: str, factory: str, batch_size: int) -> Job:
    """The job that `module_path:factory` makes; modules of the current folder can be imported."""
    name = f"{module_path}:{factory}"
    make = _find(module_path, factory, name)
    made = make(batch_size) if _takes_an_argument(make) else make()
    if isinstance(made, nn.Module):
        return image_job(name, made, batch_size)
    if not (isinstance(made, tuple) and len(made) in (2, 3) and isinstance(made[0], nn.Module)):
        raise ConfigError(
            "model", name,
            "must return a module, (module, inputs) or (module, inputs, loss), "
            f"not {type(made).__name__}",
        )  # fmt: skip
    module, inputs = made[:2]
    loss = made[2] if len(made) == 3 else _own_loss
    if not isinstance(inputs, (tuple, Mapping)):
        inputs = (inputs,)
    return Job(
        name=name,
        module=module,
        inputs=inputs,
        targets=None,
        loss=lambda output, _: loss(output),
        batch_size=batch_size,
    )


def _find(module_path: str, factory: str, name: str) -> Callable[..., Any]:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module_path), factory, None)
    except ImportError as error:
        raise ConfigError("model", name, f"cannot be imported ({error})") from None
    if not callable(found):
        raise ConfigError("model", name, f"{module_path} has no function {factory}")
    return found  # type: ignore[no-any-return]


def _takes_an_argument(make: Callable[..., Any]) -> bool:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(make).parameters.values()
    return any(p.kind in kinds and p.default is p.empty for p in parameters)


def _own_loss(output: Any) -> Tensor:
    loss = getattr(output, "loss", None)
    if isinstance(loss, Tensor):
        return loss
    if not isinstance(output, Tensor):
        raise ConfigError(
            "model", type(output).__name__,
            "the module's output is no tensor and has no loss; let the factory return a loss too",
        )  # fmt: skip
    return output if output.ndim == 0 else output.float().mean()

"""Tensors of a fake run as a trace names them: an id for each view, a number for each memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from triosim.trace import Tensor


class TensorTable:
    """Hands out ids in the order of first sight.

    Two looks at the same elements of the same memory are one tensor. Every storage is kept alive,
    so that no address comes back with another meaning; fake storages take no memory.
    """

    def __init__(self) -> None:
        self._storages: dict[int, tuple[int, torch.UntypedStorage]] = {}
        self._ids: dict[tuple[object, ...], int] = {}
        self._named: dict[int, Tensor] = {}
        self._trained: set[int] = set()
        self._next = 4  # like an execution trace, whose process, thread and step come first

    def see(self, tensor: torch.Tensor, kind: str) -> Tensor:
        """The tensor as the trace describes it."""
        storage = self.storage(tensor)
        shape = tuple(tensor.shape)
        named = self._named.get(storage)
        if named is not None and (storage in self._trained or named.numel == tensor.numel()):
            return named
        return self._describe(tensor, storage, shape, kind)

    def name(self, tensor: torch.Tensor, kind: str) -> Tensor:
        """Make this the one description of its memory: parameters, buffers and gradients.

        A part of a parameter or a broadcast of it is the parameter: only so does a trace show that
        forward reads what the optimizer trains.
        """
        storage = self.storage(tensor)
        if isinstance(tensor, nn.Parameter):
            self._trained.add(storage)
        described = self._describe(tensor, storage, tuple(tensor.shape), kind)
        return self._named.setdefault(storage, described)

    def storage(self, tensor: torch.Tensor) -> int:
        storage = tensor.untyped_storage()
        address: int = storage._cdata
        if address not in self._storages:
            self._storages[address] = (self._number(), storage)
        return self._storages[address][0]

    def is_named(self, tensor: torch.Tensor) -> bool:
        return self.storage(tensor) in self._named

    def _describe(
        self, tensor: torch.Tensor, storage: int, shape: tuple[int, ...], kind: str
    ) -> Tensor:
        place = (storage, tensor.storage_offset(), shape, tensor.stride(), tensor.dtype)
        if place not in self._ids:
            self._ids[place] = self._number()
        return Tensor(
            id=self._ids[place],
            storage=storage,
            shape=shape,
            numel=tensor.numel(),
            element_bytes=tensor.element_size(),
            kind=kind,
        )

    def _number(self) -> int:
        self._next += 1
        return self._next - 1


def name_module_tensors(table: TensorTable, module: nn.Module) -> None:
    """Parameters are weights or biases, whatever argument of whatever operator they become."""
    for path, parameter in module.named_parameters():
        table.name(parameter, "bias" if path.rpartition(".")[2].startswith("bias") else "weight")
    for path, buffer in module.named_buffers():
        table.name(buffer, path.rpartition(".")[2])


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor with elements in an argument or a result."""
    if isinstance(value, torch.Tensor):
        if value.numel():
            yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors_in(item)


def arguments(
    func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[torch.Argument, Any]]:
    """The arguments of a call with what the schema says of them."""
    positional = iter(args)
    for argument in func._schema.arguments:
        if argument.name in kwargs:
            yield argument, kwargs[argument.name]
        elif not argument.kwarg_only:
            value = next(positional, None)
            if value is not None:
                yield argument, value

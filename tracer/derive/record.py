"""Watch one training step: the operators that autograd sees, and the kernels under each.

Two dispatch modes. The outer one stands above autograd and sees what a profiler shows as the
outermost operator (aten::linear); the inner one stands below and sees what runs (aten::addmm).
Backward has no outer operator: kernels are grouped by the autograd node that runs them, as a
profiler groups them under `autograd::engine::evaluate_function`. A node belongs to the forward
operator during which its sequence number was given out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch._dispatch.python import enable_python_dispatcher, no_python_dispatcher
from torch._subclasses.schema_check_mode import SchemaCheckMode
from torch.utils._python_dispatch import TorchDispatchMode

from tracer.derive import attention, cost
from tracer.derive.tensors import TensorTable, arguments, name_module_tensors, tensors_in
from triosim.hardware import Work
from triosim.trace import Tensor

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class Kernel:
    """One operator below autograd: what it costs, reads and writes."""

    name: str
    work: Work
    reads: tuple[Tensor, ...]
    writes: tuple[Tensor, ...]


@dataclass(slots=True)
class Call:
    """One operator of the trace to be. `sequence` are autograd's numbers given out during it."""

    name: str
    phase: str
    module: str = ""
    sequence: range = range(0)
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    kernels: list[Kernel] = field(default_factory=list)
    saved_bytes: int = 0
    node: Any = None


class Recorder:
    """Collects the calls of one step; `recording` is the context in which the step runs."""

    def __init__(self, module: nn.Module, attention_kind: str, tf32_matmul: bool) -> None:
        self.calls: list[Call] = []
        self.table = TensorTable()
        self.optimizing = False
        self.dropped_attention_dropout = False
        self.attention_kind = attention_kind
        self._tf32_matmul = tf32_matmul
        self._module = module
        self._open: Call | None = None
        self._path: list[str] = []
        self._saved: set[int] = set()
        name_module_tensors(self.table, module)

    @contextmanager
    def recording(self) -> Iterator[None]:
        hooks = torch.autograd.graph.saved_tensors_hooks(self._save, lambda tensor: tensor)
        with ExitStack() as stack:
            stack.enter_context(self._module_paths())
            stack.enter_context(hooks)
            stack.enter_context(enable_python_dispatcher())
            stack.enter_context(_Outer(self))
            stack.enter_context(_Inner(self))
            yield

    @contextmanager
    def _module_paths(self) -> Iterator[None]:
        paths = {module: path for path, module in self._module.named_modules()}

        def enter(module: nn.Module, _: Any) -> None:
            self._path.append(paths.get(module, self._path[-1] if self._path else ""))

        def leave(module: nn.Module, _: Any, __: Any) -> None:
            self._path.pop()

        handles = (
            nn.modules.module.register_module_forward_pre_hook(enter),
            nn.modules.module.register_module_forward_hook(leave, always_call=True),
        )
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def run_outer(
        self, func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run an operator as the caller meant it, and record it unless backward runs it."""
        if torch._C._current_autograd_node() is not None or self._open is not None:
            return func(*args, **kwargs)
        call = Call(
            name=func._schema.name,
            phase="optimizer" if self.optimizing else "forward",
            module=self._path[-1] if self._path and not self.optimizing else "",
        )
        first = _sequence_number()
        call.inputs = _described(self.table, func, args, kwargs)
        self.calls.append(call)
        self._open = call
        try:
            result = self._run(func, args, kwargs)
        finally:
            self._open = None
        call.sequence = range(first, _sequence_number())
        call.outputs = tuple(self.table.see(t, "output") for t in tensors_in(result))
        return result

    def _run(
        self, func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Take the path of a GPU where the CPU's differs."""
        if func is aten.dropout.default and args[2] and 0 < args[1] < 1:
            return aten.native_dropout(*args)[0]
        if func is aten.scaled_dot_product_attention.default:
            result, dropped = attention.run_attention(func, args, kwargs, self.attention_kind)
            if dropped:
                self.dropped_attention_dropout = True
                assert self._open is not None
                self._open.saved_bytes += attention.SEED_BYTES
            return result
        return func(*args, **kwargs)

    def add_kernel(
        self, func: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any
    ) -> None:
        """Put what just ran under the operator or the autograd node that ran it."""
        if not cost.runs_kernel(func) or (self.optimizing and _is_counter(args)):
            return
        node: Any = torch._C._current_autograd_node()
        call = self._open if node is None else self._backward_call(node)
        if call is None:
            return
        work = cost.work_of(func, args, kwargs, out, tf32_matmul=self._tf32_matmul)
        changed = [
            t
            for argument, value in arguments(func, args, kwargs)
            if argument.alias_info is not None and argument.alias_info.is_write
            for t in tensors_in(value)
        ]
        call.kernels.append(
            Kernel(
                name=func._schema.name,
                work=work,
                reads=_described(self.table, func, args, kwargs),
                writes=tuple(self.table.see(t, "output") for t in (*changed, *tensors_in(out))),
            )
        )

    def _backward_call(self, node: Any) -> Call:
        last = self.calls[-1] if self.calls else None
        if last is not None and last.node is node:
            return last
        name = f"autograd::engine::evaluate_function: {node.name()}"
        number = node._sequence_nr()
        call = Call(name=name, phase="backward", sequence=range(number, number + 1), node=node)
        self.calls.append(call)
        return call

    def _save(self, tensor: torch.Tensor) -> torch.Tensor:
        """Count memory that backward keeps alive, once, and not what lives anyway."""
        storage = self.table.storage(tensor)
        calls = [self._open] if self._open is not None else self.calls[-1:]
        if storage not in self._saved and not self.table.is_named(tensor) and calls:
            self._saved.add(storage)
            calls[0].saved_bytes += tensor.untyped_storage().nbytes()
        return tensor


class _Outer(SchemaCheckMode):  # type: ignore[no-untyped-call]
    """Above autograd. Torch admits three classes there; the checks of this one are replaced."""

    def __init__(self, recorder: Recorder) -> None:
        key = torch._C.DispatchKey.PreDispatch
        TorchDispatchMode.__init__(self, _dispatch_key=key)  # type: ignore[no-untyped-call]
        self._recorder = recorder

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        # Composite operators then fall apart as they do on a GPU, in C++ and not in Python.
        with no_python_dispatcher():
            return self._recorder.run_outer(func, args, kwargs or {})


class _Inner(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Below autograd, above the fake tensors."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._recorder = recorder

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        self._recorder.add_kernel(func, args, kwargs or {}, result)
        return result


def _described(
    table: TensorTable,
    func: torch._ops.OpOverload,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[Tensor, ...]:
    """Tensor arguments under their names in the schema."""
    return tuple(
        table.see(tensor, _kind(argument.name))
        for argument, value in arguments(func, args, kwargs)
        for tensor in tensors_in(value)
    )


def _kind(name: str) -> str:
    if name == "self":
        return "input"
    return "grad_output" if name.startswith("grad") else name


def _sequence_number() -> int:
    """The number that autograd gives to the next node."""
    return int(torch._C._autograd._get_sequence_nr())


def _is_counter(args: tuple[Any, ...]) -> bool:
    """Optimizers count steps in scalars that live on the CPU."""
    return all(tensor.ndim == 0 for tensor in tensors_in(args))

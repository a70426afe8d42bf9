"""Say in a recording which module runs: a range of the profiler around each forward pass.

In compiled code no hook runs: what torch.compile made of a module has that module's path as a
whole, and what module.compile() made of it in place has the path of the module around it.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.profiler import record_function

from tracer.convert.kineto import MODULE_RANGE


class _Open(threading.local):
    """The modules that run on a thread, outermost first, each with its range."""

    def __init__(self) -> None:
        self.stack: list[tuple[nn.Module, AbstractContextManager[Any]]] = []


@contextmanager
def module_ranges(module: nn.Module | None = None) -> Iterator[None]:
    """While open, each forward pass of a module runs in a range MODULE_RANGE + its path.

    Paths are those of `module.named_modules()`. A module that `module` does not hold, or any where
    that is None, has its path in the one that was called from outside all modules; that one has
    the path "" and no range.
    """
    paths: dict[nn.Module, str] = {}
    opened = _Open()

    def learn(root: nn.Module) -> None:
        for path, part in root.named_modules():
            paths.setdefault(part, path)

    def enter(called: nn.Module, _: Any) -> None:
        if torch.compiler.is_compiling():
            return
        if called not in paths and not opened.stack:
            learn(called)
        path = paths.get(called, "")
        entered = record_function(f"{MODULE_RANGE}{path}") if path else nullcontext()
        entered.__enter__()
        opened.stack.append((called, entered))

    def leave(called: nn.Module, _: Any, __: Any) -> None:
        # Where a compiled graph breaks, a module may be left in Python that was entered compiled.
        if not torch.compiler.is_compiling() and opened.stack and opened.stack[-1][0] is called:
            opened.stack.pop()[1].__exit__(None, None, None)

    if module is not None:
        learn(module)
    handles = (
        nn.modules.module.register_module_forward_pre_hook(enter),
        nn.modules.module.register_module_forward_hook(leave, always_call=True),
    )
    try:
        with warnings.catch_warnings():
            # That hooks fire for the compiled module too is what is wanted.
            warnings.filterwarnings("ignore", r"Using `torch\.compile\(module\)`")
            yield
    finally:
        for handle in handles:
            handle.remove()

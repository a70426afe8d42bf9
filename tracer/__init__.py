"""Traces of PyTorch training steps: collecting, converting, and deriving them without a GPU.

`tracer.record` and `tracer.derive.derive` need torch; importing `tracer` does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracer.collect import Recording, record

__all__ = ["Recording", "record"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from tracer import collect

        return getattr(collect, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""A trace without a GPU: run the real step on fake tensors and ask the roofline for times."""

from tracer.derive.run import derive

__all__ = ["derive"]

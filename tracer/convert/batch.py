"""The batch size, read off the data that the first layer takes."""

from __future__ import annotations

from collections.abc import Sequence

from triosim.trace import Operator, Tensor

LAYERS = (
    "aten::embedding",
    "aten::conv",
    "aten::linear",
    "aten::addmm",
    "aten::matmul",
    "aten::mm",
)
_WEIGHTS = ("weight", "bias", "running_")


def find_batch_size(operators: Sequence[Operator], accumulations: int) -> tuple[int | None, str]:
    """The size and what shows it; (None, "") where no shape is known.

    The first layer's first input that is neither a parameter nor named like one; its first
    dimension counts samples. Without a layer, the first forward operator with a shape. A step
    of several backward passes takes as many such batches; `accumulations` is how often a gradient
    was accumulated in the step, which each pass does once per parameter.
    """
    size, source = _first_data(operators)
    passes = _passes(operators, accumulations)
    if size is None or passes == 1:
        return size, source
    return size * passes, f"{size} in {source}, times {passes} backward passes"


def _passes(operators: Sequence[Operator], accumulations: int) -> int:
    read = {t.id for op in operators if op.phase == "forward" for t in op.inputs}
    written = {t.id for op in operators if op.phase == "forward" for t in op.outputs}
    updated = {t.id for op in operators if op.phase == "optimizer" for t in op.inputs}
    parameters = len((read & updated) - written)
    if not parameters or accumulations % parameters:
        return 1
    return max(1, accumulations // parameters)


def _first_data(operators: Sequence[Operator]) -> tuple[int | None, str]:
    trained = {t.id for op in operators if op.phase == "optimizer" for t in op.inputs}
    forward = [op for op in operators if op.phase == "forward"]
    layers = [op for op in forward if op.name.startswith(LAYERS)]
    for op in (*layers, *forward):
        for tensor in _data_first(op):
            if tensor.shape and tensor.shape[0] > 0 and tensor.id not in trained:
                return tensor.shape[0], op.name
    return None, ""


def _data_first(op: Operator) -> list[Tensor]:
    data = [t for t in op.inputs if not t.kind.startswith(_WEIGHTS)]
    # embedding(weight, indices), where the arguments have no names
    reverse = op.name.startswith("aten::embedding")
    return data[::-1] if reverse else data

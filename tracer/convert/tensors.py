"""The tensors among an operator's arguments, as the execution trace writes them.

A tensor is [id, storage, offset, elements, bytes per element] and, since schema 1.0.1, its device.
Lists of tensors nest; the type text says where the tensors are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

MAX_INTEGER = 2**63 - 1
MAX_DEPTH = 32
# What a type is called in the rest of the project, and its bytes.
DTYPES = {
    "float": ("fp32", 4), "double": ("fp64", 8), "c10::Half": ("fp16", 2),
    "c10::BFloat16": ("bf16", 2), "long int": ("int64", 8), "long": ("int64", 8),
    "int": ("int32", 4), "short int": ("int16", 2), "short": ("int16", 2),
    "signed char": ("int8", 1), "unsigned char": ("uint8", 1), "bool": ("bool", 1),
    "c10::complex<float>": ("complex64", 8), "c10::complex<double>": ("complex128", 16),
}  # fmt: skip
FLOATS = ("fp64", "fp32", "fp16", "bf16", "fp8")


@dataclass(frozen=True, slots=True)
class TensorRef:
    """A tensor where an operator names it; `argument` is the position among the arguments."""

    id: int
    storage: int
    numel: int
    element_bytes: int
    shape: tuple[int, ...]
    dtype: str
    device: str
    argument: int


def dtype_of(text: str) -> tuple[str, int]:
    """Name and bytes of a C++ type; ("", 4) where it is not known."""
    if text in DTYPES:
        return DTYPES[text]
    return ("fp8", 1) if "Float8" in text else ("", 4)


def read_tensors(
    values: object, shapes: object, types: object, repairs: Counter[str]
) -> tuple[TensorRef, ...]:
    """The tensors of one argument list; the three lists are read up to the shortest."""
    if not (isinstance(values, list) and isinstance(shapes, list) and isinstance(types, list)):
        repairs["argument lists that are no lists were ignored"] += 1
        return ()
    if not len(values) == len(shapes) == len(types):
        repairs["argument lists of unequal lengths were read up to the shortest"] += 1
    found: list[TensorRef] = []
    for i, (value, shape, kind) in enumerate(zip(values, shapes, types, strict=False)):
        if isinstance(kind, str) and "Tensor(" in kind:
            for item, dims, item_kind in _leaves(value, shape, kind, 0):
                tensor = _tensor(item, dims, item_kind, i, repairs)
                if tensor is not None:
                    found.append(tensor)
    return tuple(found)


def _leaves(
    value: object, shape: object, kind: str, depth: int
) -> Iterator[tuple[object, object, str]]:
    if kind.startswith("Tensor("):
        yield value, shape, kind
    elif isinstance(value, list) and depth < MAX_DEPTH:
        shapes: Sequence[object] = shape if isinstance(shape, list) else []
        kinds = _parts(kind)
        for i, item in enumerate(value):
            # Lists longer than 100 have fewer types than values in some versions.
            part = kinds[i] if i < len(kinds) else (kinds[-1] if kinds else "")
            yield from _leaves(item, shapes[i] if i < len(shapes) else [], part, depth + 1)


@lru_cache(maxsize=4096)
def _parts(kind: str) -> tuple[str, ...]:
    """The types inside GenericList[...] or Tuple[...]."""
    inner = kind[kind.find("[") + 1 : kind.rfind("]")] if "[" in kind else ""
    parts: list[str] = []
    depth = start = 0
    for i, character in enumerate(inner):
        depth += (character in "[(<") - (character in "])>")
        if character == "," and depth == 0:
            parts.append(inner[start:i].strip())
            start = i + 1
    parts.append(inner[start:].strip())
    return tuple(part for part in parts if part)


def _tensor(
    value: object, shape: object, kind: str, argument: int, repairs: Counter[str]
) -> TensorRef | None:
    """None for an absent tensor, and for one without memory of its own (sparse)."""
    if "nullptr" in kind:
        return None
    if not isinstance(value, list) or len(value) not in (5, 6):
        repairs["tensors that are not five or six values were ignored"] += 1
        return None
    numbers = value[:5]
    if not all(type(n) is int for n in numbers):
        repairs["tensors with values that are no whole numbers were ignored"] += 1
        return None
    number, storage, _, numel, size = numbers
    if not (0 <= numel <= MAX_INTEGER and 0 <= number <= MAX_INTEGER):
        repairs["tensors with an impossible number of elements were ignored"] += 1
        return None
    if storage <= 0 or size <= 0 or storage > MAX_INTEGER or size > 64:
        return None
    device = value[5] if len(value) == 6 and isinstance(value[5], str) else ""
    return TensorRef(
        id=number,
        storage=storage,
        numel=numel,
        element_bytes=size,
        shape=dims_of(shape),
        dtype=dtype_of(kind[len("Tensor(") : kind.rfind(")")])[0],
        device=device,
        argument=argument,
    )


def dims_of(shape: object) -> tuple[int, ...]:
    """A shape; () where it is none."""
    if not isinstance(shape, list):
        return ()
    if not all(type(n) is int and 0 <= n <= MAX_INTEGER for n in shape):
        return ()
    return tuple(shape)

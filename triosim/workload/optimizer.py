"""The optimizer's kernels over some parameters: PyTorch's foreach form, or one fused kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from triosim.errors import ConfigError
from triosim.hardware import Work

# The lists that each operator reads, by what they are ("p" parameters, "g" gradients, "m" and "v"
# state, "t" a temporary); an operator without "_" at the end writes a new list, the temporary.
_ADAM = (
    ("_foreach_lerp_", "mg"), ("_foreach_mul_", "v"), ("_foreach_addcmul_", "vgg"),
    ("_foreach_sqrt", "v"), ("_foreach_div_", "t"), ("_foreach_add_", "t"),
    ("_foreach_addcdiv_", "pmt"),
)  # fmt: skip
FOREACH: Mapping[str, tuple[tuple[str, str], ...]] = {
    "adam": _ADAM,
    "adamw": (("_foreach_mul_", "p"), *_ADAM),
    "sgd": (("_foreach_mul_", "m"), ("_foreach_add_", "mg"), ("_foreach_add_", "pm")),
}
MASTER_BYTES = 4
_STATES = {"adam": 2, "adamw": 2, "sgd": 1}
# torch/aten/src/ATen/native/cuda/MultiTensorApply.cuh: tensors per launch by number of lists,
# elements per block, blocks per launch.
_TENSORS_PER_LAUNCH = {1: 110, 2: 64, 3: 48, 4: 36}
_CHUNK, _BLOCKS_PER_LAUNCH = 65536, 320


@dataclass(frozen=True, kw_only=True, slots=True)
class OptimizerStep:
    """One operator over all parameters: the lists it reads, and its work."""

    name: str
    lists: str
    work: Work


def optimizer_steps(
    sizes: Sequence[int],
    optimizer: str,
    *,
    dtype: str = "bf16",
    element_bytes: int = 2,
    gradient_bytes: int | None = None,
    state_bytes: int | None = None,
    master: bool = False,
    fused: bool = False,
) -> tuple[OptimizerStep, ...]:
    """What an optimizer runs over parameters of `sizes` elements.

    Bytes per element of parameters, gradients and state (the last two by default as the first);
    `master`: a float32 copy is updated and the parameters are written from it. A fused kernel reads
    and writes everything once: with bf16 parameters and gradients, float32 state and a master copy
    2 + 2 + 3 x 8 bytes a parameter. The foreach form writes the parameters in a step of its own.
    """
    if optimizer not in FOREACH:
        raise ConfigError("optimizer", optimizer, f"must be {', '.join(FOREACH)}")
    gradient = element_bytes if gradient_bytes is None else gradient_bytes
    state = element_bytes if state_bytes is None else state_bytes
    count = sum(sizes)
    if fused:
        own = element_bytes + 2 * MASTER_BYTES if master else 2 * element_bytes
        moved = own + gradient + 2 * state * _STATES[optimizer]
        lists = {"adam": "pgmv", "adamw": "pgmv", "sgd": "pgm"}[optimizer]
        work = _work(sizes, count * moved, len(lists), dtype)
        return (OptimizerStep(name=f"_fused_{optimizer}_", lists=lists, work=work),)
    whole = MASTER_BYTES if master else element_bytes
    width = {"p": whole, "g": gradient, "m": state, "v": state, "t": state}
    steps = [
        OptimizerStep(
            name=name,
            lists=lists,
            work=_work(sizes, count * sum(width[x] for x in (*lists, lists[0])), len(lists), dtype),
        )
        for name, lists in FOREACH[optimizer]
    ]
    if master:
        work = _work(sizes, count * (MASTER_BYTES + element_bytes), 2, dtype)
        steps.append(OptimizerStep(name="_foreach_copy_", lists="pp", work=work))
    return tuple(steps)


def _work(sizes: Sequence[int], moved: int, lists: int, dtype: str) -> Work:
    """Launches are limited in tensors and in blocks of elements."""
    tensors = len(sizes) / _TENSORS_PER_LAUNCH[lists]
    blocks = sum(ceil(size / _CHUNK) for size in sizes) / _BLOCKS_PER_LAUNCH
    return Work(
        kind="optimizer",
        flops=sum(sizes),
        bytes=moved,
        dtype="fp32" if dtype == "tf32" else dtype,
        kernels=ceil(max(tensors, blocks)),
    )

"""A training step under every way of recomputing: what workers run for the lab's pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from triosim.errors import ConfigError
from triosim.train import Plan, TrainResult, TrainScenario, make_plan
from triosim.train.ran import Run
from triosim.train.recompute import Kept
from triosim.train.step import StepWriter
from triosim.train.train import run_plan

GB = 1e9
GIB = 2**30
MICROBATCHES = 4
GPT, LLAMA = "GPT 22B, A100", "Llama 3 8B, H100"
# Attention that writes its scores to memory, and fused attention that does not.
MODELS: Mapping[str, Mapping[str, Any]] = {
    GPT: {
        "model": "megatron-22b", "gpu": "a100-80gb", "machine": "dgx-a100",
        "stack": "megatron-2021", "precision": "fp16",
    },
    LLAMA: {
        "model": "llama3-8b", "gpu": "h100-sxm", "machine": "dgx-h100",
        "stack": "torchtitan-compile",
    },
}  # fmt: skip
EVERY = "every N-th layer"
LAYER = "layer"  # what is in none of a layer's modules
# Names on the page, as `TrainScenario.recompute` has them.
MODES: Mapping[str, str] = {
    "nothing": "none",
    "selective: attention": "attention",
    "selective: some products": "selective-op",
    EVERY: "selective-layer",
    "full": "full",
}
NOTHING = next(iter(MODES))
QUADRUPLED = 3.5  # times more on twice the sequence: it grows with s squared


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """A model, how it is divided, and what of a layer runs again."""

    model: str
    mode: str
    seq: int
    batch: int
    tp: int
    shards: int
    period: int = 2
    sequence_parallel: bool = False

    @property
    def recompute(self) -> str:
        """As `TrainScenario` has it."""
        if self.mode not in MODES:
            raise ConfigError("mode", self.mode, f"must be one of {', '.join(MODES)}")
        return f"selective-layer:{self.period}" if self.mode == EVERY else MODES[self.mode]


def recompute_step(setup: Setup) -> TrainResult:
    """Four micro-batches; FSDP for Llama, and optimizer state divided (ZeRO-1) for GPT.

    Raises `ConfigError` or `Infeasible`.
    """
    return run_plan(_plan(setup))


def _plan(setup: Setup) -> Plan:
    zero = (1 if setup.model == GPT else 3) if setup.shards > 1 else None
    plan = make_plan(
        TrainScenario(
            **MODELS[setup.model], gpus=setup.shards * setup.tp, tp=setup.tp, zero=zero,
            sequence_parallel=setup.sequence_parallel, dp_shard=setup.shards,
            micro_batch_size=setup.batch, recompute=setup.recompute,
            global_batch=MICROBATCHES * setup.shards * setup.batch,
        )
    )  # fmt: skip
    # The model as if it had learned as many positions as are asked for.
    model = replace(plan.model, seq_len=max(plan.model.seq_len, setup.seq))
    return replace(plan, model=model, seq=setup.seq)


def layer_gib(result: TrainResult) -> list[float]:
    """What each layer keeps of a micro-batch for its backward."""
    blocks = result.writer.blocks
    units = [unit for units in result.plan.virtual_stages for unit in units]
    return [blocks.memory(unit).kept / GIB for unit in units if unit.layer >= 0]


@dataclass(frozen=True, kw_only=True, slots=True)
class Item:
    """What a module of a layer keeps; `squared`: it grows with the square of the sequence."""

    name: str
    gb: float
    squared: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerBytes:
    """One layer: bytes kept in each mode, of a GPU, and what they are where nothing runs again."""

    by_mode: Mapping[str, float]
    items: tuple[Item, ...]


def layer_bytes(setup: Setup) -> LayerBytes:
    """The layer at hand under every mode; of every N-th layer one that runs again is full."""
    by_mode = {mode: _kept(replace(setup, mode=mode)).bytes / GB for mode in MODES if mode != EVERY}
    nothing = replace(setup, mode=NOTHING)
    runs = [
        _kept_by_module(_kept(replace(nothing, seq=seq)).run) for seq in (setup.seq, 2 * setup.seq)
    ]
    items = tuple(
        Item(name=name, gb=size / GB, squared=runs[1].get(name, 0) > QUADRUPLED * size)
        for name, size in runs[0].items()
        if size
    )
    return LayerBytes(by_mode=by_mode, items=tuple(sorted(items, key=lambda item: -item.gb)))


def _kept(setup: Setup) -> Kept:
    """The first layer; nothing needs to be executed for it."""
    return StepWriter(_plan(setup), fold=True).blocks.kept("dense", 0)


def _kept_by_module(run: Run) -> dict[str, int]:
    """Bytes that backward keeps, by what made them or took them in first."""
    found: dict[str, int] = {}
    if run.compiled:
        read = {storage for ran in run.backward for storage in ran.reads}
        for ran in run.forward:
            size = sum(s.bytes for s in set(ran.writes) & read if s not in run.elsewhere)
            name = _module(ran.op.module)
            found[name] = found.get(name, 0) + size
        return {**found, "input of the layer": run.saved_bytes - sum(found.values())}
    for op in run.block.forward:
        module = _module(op.module)
        name = _operator(op.name) if module in ("attn", "mlp", LAYER) else module
        found[name] = found.get(name, 0) + op.saved_bytes
    return found


def _module(path: str) -> str:
    return path.partition("{}.")[2] or LAYER


def _operator(name: str) -> str:
    plain = name.removeprefix("aten::").replace("_", " ")
    return {"matmul": "attention's products", "addmm": "linear layers"}.get(plain, plain)


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """A step: memory of a GPU, its throughput, and whether it fits."""

    mode: str
    batch: int
    shards: int
    peak_gib: float
    tokens_per_s: float
    fits: bool


def points(setup: Setup, batches: Sequence[int], shards: Sequence[int]) -> list[Point]:
    """Every mode at every size of micro-batch and every number of shards."""
    found = []
    for mode in MODES:
        for batch in batches:
            for count in shards:
                asked = replace(setup, mode=mode, batch=batch, shards=count)
                found.append(_point(asked, recompute_step(asked)))
    return found


def _point(setup: Setup, result: TrainResult) -> Point:
    return Point(
        mode=setup.mode,
        batch=setup.batch,
        shards=setup.shards,
        peak_gib=result.peak_memory_gib,
        tokens_per_s=result.tokens_per_s_per_gpu,
        fits=result.fits,
    )

"""A step of Llama 3 8B under FSDP on hosts of the lab's own: what workers run for its pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from triosim.collective import collective
from triosim.lab.networks import hosts
from triosim.network.topology.describe import topology_of
from triosim.train import TrainResult, TrainScenario, make_plan
from triosim.train.train import run_plan

GIB = 2**30
GB = 1e9
MODEL = "llama3-8b"
UNITS = 34  # layers, embedding, and the end of the model
PER_HOST = 8
GATHER = "all-gather"
STATE = ("parameters", "gradients", "optimizer")
Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """`prefetch` units are gathered ahead; FSDP1 has its rate limiter instead, or nothing."""

    shard: int
    replicate: int = 1
    fsdp: int = 2
    reshard: bool = True
    prefetch: int = 1
    limiter: bool = True
    seq_len: int = 8192
    gb_per_s: float = 450.0
    nic_gb_per_s: float = 50.0

    @property
    def gpus(self) -> int:
        return self.shard * self.replicate

    @property
    def ahead(self) -> int | None:
        """Units gathered ahead; without a limiter the CPU asks for all of them at once."""
        if self.fsdp == 2:
            return self.prefetch
        return None if self.limiter else 2 * UNITS

    @property
    def name(self) -> str:
        if self.fsdp == 2:
            return f"FSDP2, {self.prefetch} ahead"
        return "FSDP1, rate limiter" if self.limiter else "FSDP1, no limiter"


def fsdp_step(setup: Setup) -> TrainResult:
    """One sequence on each GPU, selective recomputation, compiled, NICs as fast as asked for.

    Raises `ConfigError` or `Infeasible`.
    """
    scenario = TrainScenario(
        model=MODEL, gpu="h100-96gb", machine="seminar-h100", stack="torchtitan-compile",
        gpus=setup.gpus, dp_shard=setup.shard, dp_replicate=setup.replicate, fsdp=setup.fsdp,
        reshard=setup.reshard, prefetch=setup.ahead, seq_len=setup.seq_len,
        recompute="selective-op", zero=3 if setup.shard > 1 else None,
    )  # fmt: skip
    network = hosts(PER_HOST, setup.gb_per_s, setup.nic_gb_per_s)
    plan = make_plan(scenario)
    return run_plan(replace(plan, topology=topology_of(network, setup.gpus)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Exposed:
    """A stretch of the step in which the GPU only waits for a transfer, milliseconds."""

    start_ms: float
    end_ms: float
    kind: str


def exposed(result: TrainResult) -> list[Exposed]:
    """Where the compute stream waits for transfers, in order, each with the transfer's kind."""
    program = result.tasks.program
    return [
        Exposed(
            start_ms=gap.start_s * 1e3,
            end_ms=gap.end_s * 1e3,
            kind=program.phase[gap.cause] if gap.cause >= 0 else "transfer",
        )
        for gap in result.breakdowns[0].gaps
        if gap.kind == "exposed_communication"
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Gathered:
    """Whole parameters on a GPU over a step, without the buffers that they arrive in."""

    name: str
    time_ms: tuple[float, ...]
    gib: tuple[float, ...]
    peak_gib: float
    step_ms: float


def gathered(setups: Sequence[Setup]) -> list[Gathered]:
    """One curve for each setup."""
    return [_gathered(setup, fsdp_step(setup)) for setup in setups]


def _gathered(setup: Setup, result: TrainResult) -> Gathered:
    curve = result.fullest
    level = np.asarray(curve.bytes_by_category["gathered"]) / GIB
    changes = np.flatnonzero(np.diff(level, prepend=-1.0))
    return Gathered(
        name=setup.name,
        time_ms=tuple((curve.time_s[changes] * 1e3).tolist()),
        gib=tuple(level[changes].tolist()),
        peak_gib=float(level.max()),
        step_ms=result.step_ms,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Split:
    """All GPUs as `replicate` copies of `shard` parts: bytes of a GPU, and its step."""

    shard: int
    replicate: int
    state_gib: Mapping[str, float]
    sent_gb: Mapping[str, float]
    peak_gib: float
    fits: bool
    step_ms: float
    exposed_ms: float


def splits(setup: Setup, shards: Sequence[int]) -> list[Split]:
    """The same GPUs with more or fewer parts of a copy."""
    return [
        split_of(fsdp_step(replace(setup, shard=shard, replicate=setup.gpus // shard)))
        for shard in shards
    ]


def split_of(result: TrainResult) -> Split:
    """What a GPU holds at most of each part of the state, and sends by kind of transfer."""
    held, sizes = result.fullest.bytes_by_category, result.plan.sizes
    sent: dict[str, float] = {}
    for row in result.communication:
        if row.purpose in ("parameters", "gradients"):
            size = row.bytes / result.scenario.gpus / GB
            sent[row.kind] = sent.get(row.kind, 0.0) + size
    return Split(
        shard=sizes["dp_shard"],
        replicate=sizes["dp_replicate"],
        state_gib={name: float(held[name].max()) / GIB for name in STATE},
        sent_gb=sent,
        peak_gib=result.peak_memory_gib,
        fits=result.fits,
        step_ms=result.step_ms,
        exposed_ms=result.breakdown["exposed_communication"],
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Piece:
    """Elements of one parameter on one rank; `name` is "" for padding."""

    rank: int
    name: str
    elements: int


# A linear layer with a bias, and one of few rows: uneven on most numbers of ranks.
TOY: Shapes = {"weight 1": (5, 4), "bias 1": (5,), "weight 2": (3, 5), "bias 2": (3,)}


def layer_shapes() -> Shapes:
    """The parameters of one layer of the model, by name."""
    blocks = run_plan(make_plan(TrainScenario(model=MODEL, gpus=1, seq_len=1024))).writer.blocks
    values = blocks.block("dense").parameters
    return {v.path.partition("{}.")[2].removesuffix(".weight"): v.shape for v in values}


def flat_pieces(shapes: Shapes, ranks: int) -> list[Piece]:
    """FSDP1: parameters end to end, padded to a multiple of the ranks, cut into equal parts."""
    sizes = {name: prod(shape) for name, shape in shapes.items()}
    each = -(-sum(sizes.values()) // ranks)
    sizes[""] = each * ranks - sum(sizes.values())
    pieces, begin = [], 0
    for name, size in sizes.items():
        end = begin + size
        for rank in range(begin // each, min(-(-end // each), ranks)):
            inside = min(end, (rank + 1) * each) - max(begin, rank * each)
            if inside > 0:
                pieces.append(Piece(rank=rank, name=name, elements=inside))
        begin = end
    return pieces


def row_pieces(shapes: Shapes, ranks: int) -> list[Piece]:
    """FSDP2: of each parameter ceil(rows / ranks) rows on a rank, padded to as many."""
    pieces = []
    for rank in range(ranks):
        padding = 0
        for name, shape in shapes.items():
            rows, row = -(-shape[0] // ranks), prod(shape[1:])
            own = max(0, min(rows, shape[0] - rank * rows))
            padding += (rows - own) * row
            if own:
                pieces.append(Piece(rank=rank, name=name, elements=own * row))
        if padding:
            pieces.append(Piece(rank=rank, name="", elements=padding))
    return pieces


def gather_times(
    *, block_m: float, hosts_: int, per_host: int, gb_per_s: float, nic_gb_per_s: float
) -> dict[str, float]:
    """Milliseconds of one block's all-gather, by how it goes between hosts."""
    ways = {
        "a NIC for each GPU": ("hierarchical-pipelined", False),
        "one NIC for the host": ("hierarchical-pipelined", True),
        "flat ring, NIC for each GPU": ("ring", False),
    }
    return {
        name: collective(
            GATHER,
            size_bytes=2e6 * block_m,
            ranks=hosts_ * per_host,
            algorithm=algorithm,
            topology=hosts(per_host, gb_per_s, nic_gb_per_s, shared_nic=shared),
        ).time_ms
        for name, (algorithm, shared) in ways.items()
    }

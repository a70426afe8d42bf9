"""Every layout of a model on so many GPUs, and the choices that each one leaves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from triosim.errors import ConfigError
from triosim.network.topology.base import LinkSpec
from triosim.network.topology.describe import topology_of
from triosim.train import TrainScenario
from triosim.train.scenario import MAX_GPUS, whole

AXES = ("dp_replicate", "dp_shard", "cp", "tp", "pp", "ep")
DEFAULT_TOKENS = 2**22  # of a step, where no global batch is given: Llama 3's 4 Mi tokens
MICRO_BATCHES = (1, 2, 4, 8)
RECOMPUTE = ("none", "selective-op", "full")
SCHEDULES = ("1f1b", "interleaved")
ZERO = (1, 2, 3)


@dataclass(frozen=True, kw_only=True)
class Space:
    """What is searched: all sizes of the mesh's axes, and for each layout these choices.

    `base` gives everything else; its axes, micro-batch, recompute, schedule and ZeRO stage do not
    count. `zero` are the stages where something is sharded over dp_shard. With tensor parallelism,
    sequence and loss parallelism are on. `chunks` is for schedules that cut a
    stage. `most_cp` bounds context parallelism, which long sequences alone need.
    """

    base: TrainScenario
    micro_batch_sizes: Sequence[int] = MICRO_BATCHES
    recompute: Sequence[str] = RECOMPUTE
    schedules: Sequence[str] = SCHEDULES
    zero: Sequence[int] = ZERO
    chunks: int = 2
    most_cp: int | None = None

    def __post_init__(self) -> None:
        base: object = self.base
        if not isinstance(base, TrainScenario):
            raise ConfigError("scenario", type(base).__name__, "search needs a TrainScenario")
        if self.base.trace_dir is not None:
            raise ConfigError("trace_dir", self.base.trace_dir, "search needs a model by numbers")
        for name in ("micro_batch_sizes", "recompute", "schedules", "zero"):
            values = getattr(self, name)
            if isinstance(values, (str, int)) or not values:
                raise ConfigError(name, values, "must be a list of at least one value")
            object.__setattr__(self, name, tuple(dict.fromkeys(values)))
        for size in self.micro_batch_sizes:
            _check(self.base, "micro_batch_sizes", "micro_batch_size", size)
        for mode in self.recompute:
            _check(self.base, "recompute", "recompute", mode)
        for schedule in self.schedules:
            _check(self.base, "schedules", "schedule", schedule)
        _check(self.base, "chunks", "chunks", self.chunks)
        for stage in self.zero:
            whole("zero", stage, 1, 3)
        # Of plans that are alike otherwise, the least sharded one comes first: see `run.Hunt`.
        object.__setattr__(self, "zero", tuple(sorted(self.zero)))
        if self.most_cp is not None:
            object.__setattr__(self, "most_cp", whole("most_cp", self.most_cp, 1, MAX_GPUS))
        if self.base.machine is not None:
            _check_machine(self.base)
        if self.base.global_batch is None:
            sequences = max(1, DEFAULT_TOKENS // self.base.sequence)
            object.__setattr__(self, "base", replace(self.base, global_batch=sequences))

    @property
    def global_batch(self) -> int:
        """Sequences of a step, the same for every layout."""
        assert self.base.global_batch is not None
        return self.base.global_batch

    def layouts(self) -> Iterator[dict[str, int]]:
        """All sizes of the axes that multiply to the number of GPUs."""
        gpus = self.base.gpus
        experts = self.base.transformer().experts
        for tp in divisors(gpus):
            for pp in divisors(gpus // tp):
                for cp in divisors(gpus // tp // pp):
                    if self.most_cp is not None and cp > self.most_cp:
                        continue
                    rest = gpus // tp // pp // cp
                    for shard in divisors(rest):
                        sizes = {"dp_replicate": rest // shard, "dp_shard": shard}
                        sizes |= {"cp": cp, "tp": tp, "pp": pp}
                        for ep in divisors(shard * cp) if experts else [1]:
                            yield {**sizes, "ep": ep}

    def choices(self, sizes: Mapping[str, int]) -> Iterator[TrainScenario]:
        """The legal scenarios of a layout; raises `ConfigError` where none is."""
        problem: ConfigError | None = None
        found = False
        for micro in self.micro_batch_sizes:
            for recompute in self.recompute:
                for schedule in self.schedules if sizes["pp"] > 1 else self.schedules[:1]:
                    for zero in self.zero if sizes["dp_shard"] > 1 else [None]:
                        try:
                            yield self._made(sizes, micro, recompute, schedule, zero)
                            found = True
                        except ConfigError as error:
                            problem = problem or error
        if not found and problem is not None:
            raise problem

    def _made(
        self,
        sizes: Mapping[str, int],
        micro: int,
        recompute: str,
        schedule: str,
        zero: int | None,
    ) -> TrainScenario:
        ranks = sizes["dp_replicate"] * sizes["dp_shard"]
        if self.global_batch % (micro * ranks):
            problem = (
                f"is no multiple of {micro * ranks:,} (micro-batches of {micro:,} on {ranks:,} "
                "data-parallel ranks)"
            )
            raise ConfigError("global_batch", self.global_batch, problem)
        cut = schedule in ("interleaved", "looped-bfs") and sizes["pp"] > 1
        return replace(
            self.base,
            **sizes,  # type: ignore[arg-type]
            zero=zero,
            grid=None,
            micro_batch_size=micro,
            recompute=recompute,
            schedule=schedule,
            chunks=self.chunks if cut else 1,
            sequence_parallel=sizes["tp"] > 1,
            loss_parallel=sizes["tp"] > 1,
            async_tp=self.base.async_tp and sizes["tp"] > 1,
        )


def divisors(number: int) -> Sequence[int]:
    """In order."""
    small = [k for k in range(1, int(number**0.5) + 1) if number % k == 0]
    return small + [number // k for k in reversed(small) if k * k != number]


def _check(base: TrainScenario, name: str, field: str, value: object) -> None:
    """Whether a value of a list is legal in a scenario, said with the name of the list."""
    try:
        replace(base, **{field: value})  # type: ignore[arg-type]
    except ConfigError as error:
        raise ConfigError(name, value, error.problem) from None


def _check_machine(base: TrainScenario) -> None:
    assert base.machine is not None
    try:
        topology_of(base.machine, base.gpus, LinkSpec(bytes_per_s=1.0))
    except ConfigError as error:
        field = "machine" if error.field == "topology" else error.field
        raise ConfigError(field, error.value, error.problem) from None

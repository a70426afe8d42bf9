"""What a simulation found, and the views on it that front ends show.

Times in `Result` are milliseconds and sizes bytes, as in the JSON file. Everything is read off the
timeline when asked for.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Self, overload

import numpy as np
import pandas as pd

from triosim.analysis.breakdown import CLASSES, Breakdown, break_down
from triosim.analysis.checks import Check
from triosim.analysis.communication import Communication, summarise_communication
from triosim.analysis.memory import MemoryCurve, memory_curves
from triosim.engine.program import RankClass
from triosim.engine.timeline import Timeline
from triosim.errors import ConfigError
from triosim.jitter import StepTimes
from triosim.legal import SCHEMA_VERSION
from triosim.network.cluster import Carried
from triosim.scenario import Scenario
from triosim.shown import Shown
from triosim.trace import PROVENANCES

MAX_LISTED_RANKS = 64
TIMELINE_COLUMNS = (
    "rank",
    "stream",
    "name",
    "phase",
    "start_ms",
    "end_ms",
    "bytes",
    "waited_for",
    "members",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Used:
    """An algorithm and a protocol (None: ideal links) that carried so many transfers."""

    operation: str
    algorithm: str
    protocol: str | None
    transfers: int


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Result(Shown):
    """One simulated step. `total_ms` is the maximum over ranks; the classes are means over them.

    Equality is identity: a scenario names a trace by its folder, whose files may change.
    """

    scenario: Scenario
    tasks: Timeline
    single_gpu_s: float | None
    samples: int
    step_times: StepTimes | None = None
    warnings: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    schema_version: int = SCHEMA_VERSION

    def noting(self, *, checks: Sequence[Check], warnings: Sequence[str]) -> Self:
        """The same result with its checks and more warnings; what is worked out already stays."""
        noted = replace(self, checks=tuple(checks), warnings=(*self.warnings, *warnings))
        derived = self.__dict__.keys() - self.__dataclass_fields__.keys()
        noted.__dict__.update({name: self.__dict__[name] for name in derived})
        return noted

    @property
    def classes(self) -> Sequence[RankClass]:
        """Ranks with identical timelines."""
        return self.tasks.program.classes

    @property
    def total_ms(self) -> float:
        return self.tasks.total_s * 1e3

    @cached_property
    def breakdowns(self) -> list[Breakdown]:
        """One per rank class."""
        return [break_down(self.tasks, c) for c in range(len(self.classes))]

    def _mean_ms(self, name: str) -> float:
        total = sum(
            len(c.members) * b.classes_s[name]
            for c, b in zip(self.classes, self.breakdowns, strict=True)
        )
        return total / self.scenario.gpus * 1e3

    @cached_property
    def breakdown(self) -> dict[str, float]:
        """Milliseconds of each class, means over ranks; they sum to the step."""
        return {name: self._mean_ms(name) for name in CLASSES}

    @cached_property
    def breakdown_splits(self) -> dict[str, dict[str, float]]:
        """Compute by phase and exposed communication by kind, milliseconds, means over ranks."""
        splits: dict[str, dict[str, float]] = {"compute": {}, "exposed_communication": {}}
        for c, b in zip(self.classes, self.breakdowns, strict=True):
            weight = len(c.members) / self.scenario.gpus * 1e3
            parts = [("compute", phase, s) for phase, s in b.compute_s.items()]
            parts += [("exposed_communication", " ".join(k), s) for k, s in b.exposed_s.items()]
            for name, key, seconds in parts:
                splits[name][key] = splits[name].get(key, 0.0) + weight * seconds
        return splits

    @property
    def compute_ms(self) -> float:
        return self._mean_ms("compute")

    @property
    def launch_wait_ms(self) -> float:
        return self._mean_ms("launch_wait")

    @property
    def exposed_communication_ms(self) -> float:
        return self._mean_ms("exposed_communication")

    @property
    def bubble_ms(self) -> float:
        return self._mean_ms("bubble")

    @property
    def imbalance_ms(self) -> float:
        return self._mean_ms("imbalance")

    @property
    def idle_ms(self) -> float:
        return self._mean_ms("idle")

    @property
    def busiest_compute_ms(self) -> float:
        """Compute of the rank that computes most."""
        return max(b.classes_s["compute"] for b in self.breakdowns) * 1e3

    @property
    def speedup(self) -> float | None:
        """Cases 0 to 2: gpus x T1 / T (each GPU does a whole batch); 3 and 4: T1 / T.

        T1 is the same scenario on one GPU; None where that does not fit in memory or nothing takes
        any time.
        """
        if self.single_gpu_s is None or self.total_ms == 0:
            return None
        work = self.scenario.gpus if self.scenario.case <= 2 else 1
        return work * self.single_gpu_s / self.tasks.total_s

    @property
    def samples_per_s(self) -> float | None:
        return self.samples / self.tasks.total_s if self.total_ms else None

    @cached_property
    def _sent(self) -> list[tuple[float, float]]:
        """Per class, what one rank sends to other GPUs and fetches from remote memory."""
        program = self.tasks.program
        sent = np.array(program.sent_bytes)
        fetched = np.where(self.tasks.phase == "fetch", program.bytes, 0.0)
        each = (self.tasks.tasks(c) for c in range(len(self.classes)))
        return [(float(sent[own].sum()), float(fetched[own].sum())) for own in each]

    @property
    def provenance(self) -> dict[str, float]:
        """Shares of all ranks' computing time: measured, scaled from measured, from a roofline."""
        seconds = self.tasks.program.provenance_s
        total = sum(seconds.values())
        return {kind: seconds.get(kind, 0.0) / total if total else 0.0 for kind in PROVENANCES}

    @property
    def communication_bytes(self) -> float:
        """Sent from GPU to GPU, summed over ranks."""
        return sum(len(c.members) * s[0] for c, s in zip(self.classes, self._sent, strict=True))

    @property
    def fetched_bytes(self) -> float:
        """Fetched from remote memory, summed over ranks."""
        return sum(len(c.members) * s[1] for c, s in zip(self.classes, self._sent, strict=True))

    @cached_property
    def memory(self) -> list[MemoryCurve]:
        """One curve per rank class."""
        return memory_curves(self.tasks)

    @property
    def peak_memory_bytes(self) -> int:
        return max(curve.peak_bytes for curve in self.memory)

    @property
    def capacity_bytes(self) -> int:
        return int(2**self.scenario.capacity_log2)

    @cached_property
    def communication(self) -> list[Communication]:
        return summarise_communication(self.tasks, self.breakdowns)

    @property
    def per_rank(self) -> PerRank:
        return PerRank(self)

    @cached_property
    def algorithms(self) -> list[Used]:
        """What carried the transfers between GPUs on a topology; empty without one."""
        counts = Counter(
            (load.operation, load.algorithm, load.protocol)
            for load in self.tasks.program.loads
            if isinstance(load, Carried)
        )
        return [
            Used(operation=operation, algorithm=algorithm, protocol=protocol, transfers=count)
            for (operation, algorithm, protocol), count in counts.items()
        ]

    def class_of(self, rank: int) -> int:
        """The class that a rank belongs to."""
        if rank not in range(self.scenario.gpus):
            raise ConfigError("rank", rank, f"ranks go from 0 to {self.scenario.gpus - 1}")
        return self._class_by_rank[rank] if len(self.classes) > 1 else 0

    @cached_property
    def _class_by_rank(self) -> dict[int, int]:
        return {rank: c for c, group in enumerate(self.classes) for rank in group.members}

    def class_entry(self, c: int) -> dict[str, Any]:
        """The figures of one rank of a class."""
        breakdown, curve = self.breakdowns[c], self.memory[c]
        sent, fetched = self._sent[c]
        compute_ms = breakdown.classes_s["compute"] * 1e3
        return {
            "total_ms": self.total_ms,
            **{f"{name}_ms": breakdown.classes_s[name] * 1e3 for name in CLASSES},
            "busiest_compute_ms": compute_ms,
            **{f"{phase}_ms": s * 1e3 for phase, s in breakdown.compute_s.items()},
            "speedup": self.speedup,
            "samples_per_s": self.samples_per_s,
            "communication_bytes": sent,
            "fetched_bytes": fetched,
            "peak_memory_bytes": curve.peak_bytes,
        }

    @property
    def timeline(self) -> pd.DataFrame:
        """One representative per class; `members` says how many ranks it stands for.

        `bytes` is the message: the array of a collective, not what its algorithm sends.
        """
        return self.expand([c.rank for c in self.classes])

    def expand(self, ranks: Iterable[int]) -> pd.DataFrame:
        """The timeline of chosen ranks, one row per task and rank."""
        frames = []
        chosen = list(ranks)
        representatives = [c.rank for c in self.classes]
        for rank in chosen:
            c = self.class_of(rank)
            frame = self._class_frame(c).copy()
            frame.insert(0, "rank", rank)
            frame["members"] = len(self.classes[c].members) if chosen == representatives else 1
            frames.append(frame)
        if not frames:
            return pd.DataFrame(columns=list(TIMELINE_COLUMNS))
        return pd.concat(frames, ignore_index=True)[list(TIMELINE_COLUMNS)]

    @cached_property
    def _frames(self) -> dict[int, pd.DataFrame]:
        return {}

    def _class_frame(self, c: int) -> pd.DataFrame:
        if c not in self._frames:
            self._frames[c] = self._build_frame(c)
        return self._frames[c]

    def _build_frame(self, c: int) -> pd.DataFrame:
        program, tasks = self.tasks.program, self.tasks.tasks(c)
        tasks = tasks[np.lexsort((tasks, self.tasks.start_s[tasks]))]
        chosen = tasks.tolist()
        critical = self.tasks.critical
        return pd.DataFrame(
            {
                "stream": [program.streams[program.stream[t]].name for t in chosen],
                "name": [program.name[t] for t in chosen],
                "phase": [program.phase[t] for t in chosen],
                "start_ms": self.tasks.start_s[tasks] * 1e3,
                "end_ms": self.tasks.end_s[tasks] * 1e3,
                "bytes": [program.bytes[t] for t in chosen],
                "waited_for": [
                    program.name[critical[t]] if critical[t] >= 0 else "" for t in chosen
                ],
            }
        )

    def inside(self, task: int) -> pd.DataFrame:
        """What a composite task of `tasks` is made of; a step from a trace has none."""
        return pd.DataFrame(columns=["unit", "stream", "name", "phase", "start_ms", "end_ms"])

    def to_dict(self) -> dict[str, Any]:
        """Everything of `--json`: plain values; above 64 GPUs one entry per class of ranks."""
        names = ("total_ms", *(f"{name}_ms" for name in CLASSES), "busiest_compute_ms", "speedup")
        names += ("samples_per_s", "communication_bytes", "fetched_bytes", "peak_memory_bytes")
        return {
            "schema_version": self.schema_version,
            **{name: getattr(self, name) for name in names},
            "provenance": self.provenance,
            "step_times": None if self.step_times is None else asdict(self.step_times),
            "network": {
                "topology": self.scenario.topology_name,
                "algorithms": [asdict(used) for used in self.algorithms],
            },
            "communication": [row.to_dict() for row in self.communication],
            "per_rank": self._listed_ranks(),
            "checks": [{"id": c.id, "passed": c.passed, "detail": c.detail} for c in self.checks],
            "warnings": list(self.warnings),
            "assumptions": list(self.assumptions),
            "scenario": self.scenario.to_dict(),
        }

    def _listed_ranks(self) -> list[dict[str, Any]]:
        if self.scenario.gpus <= MAX_LISTED_RANKS:
            return list(self.per_rank)
        return [
            {"rank": rc.rank, "members": len(rc.members), **self.class_entry(c)}
            for c, rc in enumerate(self.classes)
        ]

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is derived, so that a result travels light between processes."""
        fields: Mapping[str, object] = self.__dataclass_fields__
        return {name: value for name, value in self.__dict__.items() if name in fields}


class PerRank(Sequence[dict[str, Any]]):
    """The figures of every rank, computed when read."""

    def __init__(self, result: Result) -> None:
        self._result = result
        self._entries: dict[int, dict[str, Any]] = {}

    def __len__(self) -> int:
        return self._result.scenario.gpus

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        rank = index + len(self) if index < 0 else index
        if not 0 <= rank < len(self):
            raise IndexError(f"rank {index} of {len(self)}")
        c = self._result.class_of(rank)
        if c not in self._entries:
            self._entries[c] = self._result.class_entry(c)
        return {"rank": rank, **self._entries[c]}

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[rank] for rank in range(len(self)))

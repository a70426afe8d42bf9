"""What to simulate: everything that determines a result, validated.

A scenario is frozen and hashable; the same object is the cache key, the saved file and the link.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from triosim.errors import ConfigError, counted
from triosim.hardware import load_gpu
from triosim.legal import (
    SCHEMA_VERSION,
    as_whole,
    number,
    rank_speeds,
    read_json,
    saved_fields,
)
from triosim.network.collectives.choose import ALGORITHMS
from triosim.network.optical import mesh_factorisations
from triosim.network.topology.describe import Description, describe, is_file_name, is_generic

MAX_GPUS = 2**20
MAX_BATCH = 2**30
SAMPLE_TRACES = Path(__file__).resolve().parent.parent / "sample_trace"
DEFAULT_TRACE = "transformer"

CASES: Mapping[int, str] = {
    0: "training, each GPU alone",
    1: "standard data parallel",
    2: "distributed data parallel",
    3: "tensor parallel",
    4: "pipeline parallel",
}
CHOICES: Mapping[str, tuple[str, ...]] = {
    "ptp_convention": ("algbw", "link"),
    "interconnect": ("electrical", "optical"),
    "schedule": ("gpipe", "1f1b"),
    "stage_cut": ("time", "count"),
}
# Lowest and highest legal value; None is legal where the default is None.
WHOLE_NUMBERS: Mapping[str, tuple[int, int]] = {
    "case": (0, 4),
    "gpus": (1, MAX_GPUS),
    "batch_size": (1, MAX_BATCH),
    "batch_size_sim": (1, MAX_BATCH),
    "micro_batch_size": (1, MAX_BATCH),
    "accumulate": (1, 4096),
    "mesh_rows": (1, MAX_GPUS),
    "mesh_cols": (1, MAX_GPUS),
    "capacity_log2": (10, 60),
    "wavelengths": (1, 4096),
    "slow_every": (1, 1000),
    "seed": (0, 2**32 - 1),
}
NUMBERS: Mapping[str, tuple[float, float]] = {
    "bandwidth_gb_per_s": (1e-6, 1e9),
    "ptp_bandwidth_gb_per_s": (1e-6, 1e9),
    "latency_us": (0, 1e9),
    "optical_gb_per_s": (1e-6, 1e9),
    "hop_latency_ns": (0, 1e12),
    "circuit_setup_ms": (0, 1e6),
    "circuit_teardown_ms": (0, 1e6),
    "bucket_mb": (1e-6, 1e6),
    "jitter": (0, 1),
}
OVERLAP_SLOWDOWN = (0.0, 10.0)
SWITCHES = ("resident", "fold", "protocol")
NOT_NONE = ("case", "gpus", "accumulate", "capacity_log2", "slow_every", "seed")


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One training step on some hardware in one of TrioSim's parallel layouts.

    "gb" is 10^9 bytes; `bucket_mb` counts 2^20 bytes, as PyTorch does. None means: the trace's own
    batch for `batch_size`, `batch_size` for `batch_size_sim`, that for `micro_batch_size`, one row
    of all GPUs for the mesh, the trace's times as they are for `gpu` and what the trace says for
    `trace_gpu` (both names of `triosim.hardware`). `rank_speed` maps a rank to its speed (0.5: half
    speed) and is kept as sorted pairs; those ranks are slow in one step out of `slow_every`.

    `topology` is a name or file of `triosim.network.topology`, or a description; None is TrioSim's
    ring (a chain in case 4). `algorithm` of the all-reduces: None is the ring without a topology
    and the cheapest with one. `protocol` adds the calibrated costs of a machine's links.
    `dead_links` are connections such as "3-4", or "3-4=0.5" for one that has half of its bandwidth
    left. `overlap_slowdown` 0.2: computing takes 1.2 times as long while GPUs communicate; None is
    the measured default on a machine and 0 elsewhere. `jitter` is the standard deviation of a GPU's
    computing time from step to step as a share of it, drawn with `seed`. `wavelengths` None: any
    number of circuits over a mesh link.

    Raises `ConfigError` naming the field, its value and what would be legal.
    """

    trace_dir: str = str(SAMPLE_TRACES / DEFAULT_TRACE)
    case: int = 0
    gpus: int = 8
    batch_size: int | None = None
    batch_size_sim: int | None = None
    micro_batch_size: int | None = None
    accumulate: int = 1
    bandwidth_gb_per_s: float = 696
    ptp_bandwidth_gb_per_s: float = 65
    ptp_convention: str = "algbw"
    latency_us: float = 0
    interconnect: str = "electrical"
    mesh_rows: int | None = None
    mesh_cols: int | None = None
    optical_gb_per_s: float = 64
    hop_latency_ns: float = 20
    circuit_setup_ms: float = 0
    circuit_teardown_ms: float = 0
    wavelengths: int | None = None
    topology: str | Description | None = None
    algorithm: str | None = None
    protocol: bool = True
    dead_links: tuple[str, ...] = ()
    overlap_slowdown: float | None = None
    capacity_log2: int = 40
    resident: bool = False
    bucket_mb: float = 25
    schedule: str = "gpipe"
    stage_cut: str = "time"
    rank_speed: Mapping[int, float] | tuple[tuple[int, float], ...] | None = None
    slow_every: int = 1
    jitter: float = 0
    seed: int = 0
    fold: bool = True
    gpu: str | None = None
    trace_gpu: str | None = None

    def __post_init__(self) -> None:
        self._set("trace_dir", _folder("trace_dir", self.trace_dir))
        for name, (low, high) in WHOLE_NUMBERS.items():
            self._set(name, _whole(name, getattr(self, name), low, high))
        for name, (least, most) in NUMBERS.items():
            self._set(name, number(name, getattr(self, name), least, most))
        for name, choices in CHOICES.items():
            value = getattr(self, name)
            if value not in choices:
                raise ConfigError(name, value, f"must be {' or '.join(choices)}")
        for name in SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(name, getattr(self, name), "must be true or false")
        self._set("rank_speed", rank_speeds(self.rank_speed, self.gpus))
        for name in ("gpu", "trace_gpu"):
            self._set(name, _gpu(name, getattr(self, name)))
        self._check_batches()
        self._check_network()
        if self.interconnect == "optical":
            self._check_mesh()

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_batches(self) -> None:
        batch = self.batch_size_sim or self.batch_size
        micro = self.micro_batch_size
        if batch is not None and micro is not None and micro > batch:
            raise ConfigError(
                "micro_batch_size", micro, f"must be at most the simulated batch, {batch}"
            )

    def _check_network(self) -> None:
        if self.topology is not None:
            if not isinstance(self.topology, str):
                self._set("topology", describe(self.topology, self.gpus))
            else:
                # Names in one spelling, so that equal scenarios are equal; a file's is its own.
                name = self.topology.strip()
                kept = is_file_name(name) or name.startswith("{")
                self._set("topology", name if kept else name.casefold())
                describe(self.topology, self.gpus)
        if self.algorithm is not None:
            known = ("auto", *(n for n, k in ALGORITHMS.items() if "all-reduce" in k.operations))
            if self.algorithm not in known:
                raise ConfigError("algorithm", self.algorithm, f"must be {', '.join(known)}")
        if self.overlap_slowdown is not None:
            value = number("overlap_slowdown", self.overlap_slowdown, *OVERLAP_SLOWDOWN)
            self._set("overlap_slowdown", value)
        self._set("dead_links", _faults(self.dead_links))

    def _check_mesh(self) -> None:
        rows, cols = self.mesh
        if rows * cols != self.gpus:
            legal = ", ".join(f"{r} x {c}" for r, c in mesh_factorisations(self.gpus)[:40])
            name = "mesh_rows" if self.mesh_rows is not None else "mesh_cols"
            raise ConfigError(
                name,
                getattr(self, name),
                f"a mesh of {counted(rows, 'row')} and {counted(cols, 'column')} does not hold "
                f"{counted(self.gpus, 'GPU')}; legal: {legal}",
            )

    @property
    def mesh(self) -> tuple[int, int]:
        """Rows and columns; what is not given follows from the other and the GPU count."""
        rows, cols = self.mesh_rows, self.mesh_cols
        if rows is None and cols is None:
            return 1, self.gpus
        if rows is None:
            assert cols is not None
            return max(1, self.gpus // cols), cols
        return rows, cols if cols is not None else max(1, self.gpus // rows)

    @property
    def speeds(self) -> dict[int, float]:
        """Ranks that are not at full speed."""
        return dict(self.rank_speed or ())

    def on_one_gpu(self) -> Scenario:
        """The reference of the speed-up: the same step on one GPU at full speed."""
        alone = replace(self, mesh_rows=None, mesh_cols=None, rank_speed=None, gpus=1, jitter=0)
        return replace(alone, topology=None, algorithm=None, dead_links=(), slow_every=1, seed=0)

    @property
    def on_topology(self) -> bool:
        """Whether GPUs are joined by a topology instead of TrioSim's ring, chain or circuits."""
        if self.interconnect == "optical" or self.case == 0:
            return False
        # A pipeline has no all-reduces, so that an algorithm says nothing about its links.
        other = self.algorithm not in (None, "ring") and self.case != 4
        return self.topology is not None or other or bool(self.dead_links)

    @property
    def topology_name(self) -> str | None:
        """What a person calls the topology; None without one."""
        if self.topology is None or isinstance(self.topology, str):
            return self.topology
        return f"a described network ({self.topology.kind})"

    @property
    def generic_topology(self) -> bool:
        """Whether the topology is made of the scenario's own bandwidth and latency."""
        return isinstance(self.topology, str) and is_generic(self.topology)

    @property
    def faults(self) -> dict[str, float]:
        """Connections that are not whole, and the share of their bandwidth that is left."""
        return dict(_fault(text) for text in self.dead_links)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, with the version of their meaning."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.rank_speed is not None:
            values["rank_speed"] = {str(rank): speed for rank, speed in self.speeds.items()}
        values["dead_links"] = list(self.dead_links)
        if isinstance(self.topology, Description):
            values["topology"] = self.topology.to_dict()
        return {"schema_version": SCHEMA_VERSION, **values}

    @classmethod
    def from_dict(cls, values: object) -> Scenario:
        """The inverse of `to_dict`; absent fields take their defaults."""
        return cls(**checked_fields(values))

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2) + "\n"


def checked_fields(values: object) -> dict[str, Any]:
    """The fields of a saved scenario by name, the version checked and taken off."""
    return saved_fields(values, [field.name for field in fields(Scenario)])


def read_scenario(path: str | Path) -> dict[str, Any]:
    """The fields that a saved scenario file sets."""
    return checked_fields(read_json("scenario", path))


def _folder(name: str, value: object) -> str:
    text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise ConfigError(name, repr(value), "must be the path of a folder")
    return text


def _whole(name: str, value: object, low: int, high: int) -> int | None:
    if value is None and name not in NOT_NONE:
        return None
    found = as_whole(value)
    if found is None or not low <= found <= high:
        if name == "case" and found == 5:
            raise ConfigError(
                name, value, "case 5 (Hop, backup workers) is not offered; use 0 to 4"
            )
        raise ConfigError(name, value, f"must be a whole number from {low} to {high}")
    return found


def _gpu(name: str, value: str | None) -> str | None:
    """The catalogue's own name for a GPU, so that aliases make equal scenarios."""
    try:
        return None if value is None else load_gpu(value).name
    except ConfigError as error:
        raise ConfigError(name, error.value, error.problem) from None


def _faults(given: Any) -> tuple[str, ...]:
    if isinstance(given, Mapping):
        given = [f"{name}={share!r}" for name, share in given.items()]
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, (list, tuple)) or not all(isinstance(k, str) for k in texts):
        raise ConfigError("dead_links", given, 'must be connections, as in ["3-4", "0-1=0.5"]')
    for text in texts:
        _fault(text)
    return tuple(dict.fromkeys(text.strip() for text in texts))


def _fault(text: str) -> tuple[str, float]:
    """A connection by its ends and the share of its bandwidth that is left: "3-4" or "3-4=0.5"."""
    name, equals, left = text.partition("=")
    try:
        share = float(left) if equals else 0.0
    except ValueError:
        share = math.nan
    if not name.strip():
        legal = 'must be a connection, as in "3-4" (dead) or "3-4=0.5" (half of its bandwidth left)'
        raise ConfigError("dead_links", text, legal)
    if not 0 <= share < 1:
        legal = 'must be a connection, as in "3-4" (dead) or "3-4=0.5", where the share left of its'
        raise ConfigError("dead_links", text, f"{legal} bandwidth is a number from 0 to below 1")
    return name.strip(), share

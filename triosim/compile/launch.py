"""Launches from the CPU against work on the GPU: who waits for whom, and what CUDA graphs change.

The CPU launches kernels one after the other and never waits; the GPU runs them in order, each when
it has been launched and the one before has ended. A CUDA graph is launched once for all its
kernels. Left out: a full launch queue, several streams, synchronisation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import isfinite

from triosim.errors import ConfigError

MODES = ("eager", "compiled", "cuda-graphs")


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchCosts:
    """Seconds on the CPU, but for `node_s`, which is the GPU's between two kernels of a CUDA graph.

    `launch_s` per kernel; `guard_s` per captured graph, to check that its assumptions still hold
    and call it; `break_s` for the Python between two graphs; `replay_s` per launch of a CUDA graph.

    Defaults: 5 us per launch is the seminar's number. Guards and breaks are what torch 2.13 took on
    one core of a server for a model of six layers; both grow with what is guarded. A graph of
    kernels in a row is launched in about 2.5 us whatever its length (CUDA 12.6, as NVIDIA reports).
    """

    launch_s: float = 5e-6
    guard_s: float = 4e-6
    break_s: float = 5e-6
    replay_s: float = 2.5e-6
    node_s: float = 0.0

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not (isfinite(value) and value >= 0):
                raise ConfigError(item.name, value, "must be a number of seconds from 0")


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """One kernel's way through: launched by the CPU from `cpu_start_s` to `cpu_end_s`, then run.

    Of a CUDA graph the first kernel has the launch and the others none (start and end equal).
    """

    segment: int
    kernel: int
    cpu_start_s: float
    cpu_end_s: float
    start_s: float
    end_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchTimeline:
    """`step_s` until both are done; `waiting_s` is time in which the GPU waited for launches."""

    launches: tuple[Launch, ...]
    step_s: float
    cpu_s: float
    gpu_s: float

    @property
    def waiting_s(self) -> float:
        return self.step_s - self.gpu_s

    @property
    def launch_bound(self) -> bool:
        """Whether the CPU's work alone takes longer than the GPU's."""
        return self.cpu_s > self.gpu_s


def launch_timeline(
    segments: Sequence[Sequence[float]], costs: LaunchCosts, mode: str = "compiled"
) -> LaunchTimeline:
    """Kernels of the given seconds, in graphs between breaks; eager mode has neither.

    c_i = c_(i-1) + launch, s_i = max(c_i, e_(i-1)), e_i = s_i + t_i. Raises `ConfigError` for times
    below 0 and an unknown mode.
    """
    if mode not in MODES:
        raise ConfigError("mode", mode, f"must be {', '.join(MODES[:-1])} or {MODES[-1]}")
    launches: list[Launch] = []
    cpu = free = busy = 0.0
    for number, times in enumerate(segments):
        if mode != "eager":
            cpu += costs.guard_s + (costs.break_s if number else 0.0)
        for index, time_s in enumerate(times):
            if not (isfinite(time_s) and time_s >= 0):
                raise ConfigError("segments", time_s, "must hold numbers of seconds from 0")
            before = cpu
            replayed = mode == "cuda-graphs"
            cpu += costs.launch_s if not replayed else costs.replay_s if index == 0 else 0.0
            gap_s = costs.node_s if replayed and index else 0.0
            start = max(cpu, free + gap_s)
            free = start + time_s
            busy += time_s
            launches.append(
                Launch(
                    segment=number, kernel=index, cpu_start_s=before, cpu_end_s=cpu,
                    start_s=start, end_s=free,
                )
            )  # fmt: skip
    return LaunchTimeline(launches=tuple(launches), step_s=max(cpu, free), cpu_s=cpu, gpu_s=busy)

"""Training steps in a file that may hold several.

Steps are marked by ProfilerStep; else each ends with Optimizer.step (so that a step is forward,
backward, optimizer wherever zero_grad stands); else they begin with zero_grad, else with the data
loader; else the file is one step.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tracer.convert.kineto import Kernel, Profile, Row
from tracer.convert.names import OPTIMIZER_STEP, STEP, ZERO_GRAD, is_launch, is_step

ALWAYS = 1 << 62  # ns


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """From `start` to before `end` (ns). `complete`: it ran something and no kernel is missing."""

    number: int
    label: str
    start: int
    end: int
    complete: bool = False
    rows: tuple[Row, ...] = ()
    kernels: tuple[Kernel, ...] = ()


def find_steps(profile: Profile) -> list[Step]:
    """The steps in the order of time, with what ran in each."""
    return _fill(profile, _windows(profile.rows))


def _windows(rows: Sequence[Row]) -> list[Step]:
    marked: dict[int, Row] = {}
    for row in rows:
        match = STEP.match(row.name)
        if match:
            marked.setdefault(int(match.group(1)), row)
    if marked:
        steps = sorted(marked.items(), key=lambda item: item[1].start)
        return [
            Step(number=number, label=row.name, start=row.start, end=row.end)
            for number, row in steps
        ]
    ends = [row.end for row in _rarest(rows, OPTIMIZER_STEP)]
    if ends:
        windows = pairwise([-ALWAYS, *ends])
        return [
            Step(number=i, label=f"the one that ends with {OPTIMIZER_STEP} {i}", start=a, end=b)
            for i, (a, b) in enumerate(windows)
        ]
    for marker in (ZERO_GRAD, "enumerate(DataLoader)"):
        starts = [row.start for row in _rarest(rows, marker)]
        if len(starts) > 1:
            windows = pairwise([*starts, ALWAYS])
            return [
                Step(number=i, label=f"the one that begins with {marker} {i}", start=a, end=b)
                for i, (a, b) in enumerate(windows)
            ]
    return [Step(number=0, label="the whole file", start=-ALWAYS, end=ALWAYS)]


def _rarest(rows: Iterable[Row], prefix: str) -> list[Row]:
    """Several optimizers may step in one iteration: the one that steps least often marks it."""
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        if row.name.startswith(prefix):
            by_name.setdefault(row.name, []).append(row)
    # Of equally frequent ones the last of the iteration ends it.
    chosen = min(by_name.values(), key=lambda found: (len(found), -found[-1].end), default=[])
    return sorted(chosen, key=lambda row: row.start)


def _fill(profile: Profile, windows: Sequence[Step]) -> list[Step]:
    rows: list[list[Row]] = [[] for _ in windows]
    kernels: list[list[Kernel]] = [[] for _ in windows]
    missing = [0] * len(windows)
    starts = [step.start for step in windows]
    ends = [step.end for step in windows]

    def of(time: int) -> int | None:
        at = bisect_right(starts, time) - 1
        return at if at >= 0 and time < ends[at] else None

    for row in profile.rows:
        at = of(row.start)
        if at is not None:
            rows[at].append(row)
    for kernel in profile.kernels:
        time = kernel.launch.start if kernel.launch else None
        if time is None:
            time = kernel.row.start if kernel.row else kernel.start
        at = of(time)
        if at is not None and kernel.reason != "launched before the recording":
            kernels[at].append(kernel)
    ran = {kernel.correlation for kernel in profile.kernels}
    for correlation, launch in profile.launches.items():
        at = of(launch.start)
        if at is not None and correlation not in ran and is_launch(launch.name):
            missing[at] += 1
    return [
        Step(
            number=step.number, label=step.label, start=step.start, end=step.end,
            rows=tuple(rows[i]), kernels=tuple(kernels[i]),
            complete=missing[i] == 0 and any(not is_step(row) for row in rows[i])
            and bool(kernels[i] or not profile.kernels),
        )
        for i, step in enumerate(windows)
    ]  # fmt: skip

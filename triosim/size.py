"""How many tasks a scenario makes, known before any of them is written.

Counted with unlimited memory: what is evicted and fetched again comes on top, so `Program` keeps a
last check of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from triosim.engine.program import MAX_TASKS, check_tasks
from triosim.errors import counted
from triosim.jitter import MAX_SPEEDS
from triosim.parallel.data import fill_buckets
from triosim.parallel.plan import split_step
from triosim.parallel.stages import check_stages
from triosim.scenario import Scenario
from triosim.trace import Trace
from triosim.trace.memory import Origin, find_memory
from triosim.trace.parameters import find_parameters


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """Each of `classes` groups of ranks has `per_batch` tasks for every batch, `once` for the step.

    A pipeline is one class: its stages share the operators.
    """

    classes: int
    batches: int
    per_batch: int
    once: int

    @property
    def tasks(self) -> int:
        return self.classes * (self.batches * self.per_batch + self.once)

    @property
    def most_classes(self) -> int:
        return MAX_TASKS // max(1, self.tasks // self.classes)

    @property
    def most_batches(self) -> int:
        return (MAX_TASKS // self.classes - self.once) // max(1, self.per_batch)


def size_of(scenario: Scenario, trace: Trace) -> Size:
    """The size of one step; `trace` is at the batch that the scenario says it was taken at."""
    count = _pipeline if scenario.case == 4 else _replicas
    return count(scenario, trace)


def check_size(scenario: Scenario, trace: Trace) -> None:
    """Raises `Infeasible` where a step needs more tasks than a program may have.

    And `ConfigError` where a pipeline has more stages than the trace can be cut into.
    """
    if scenario.case == 4:
        check_stages(trace, scenario.gpus)
    size = size_of(scenario, trace)
    check_tasks(size.tasks, *_cause(scenario, trace, size))


def _cause(scenario: Scenario, trace: Trace, size: Size) -> tuple[str, str]:
    """What makes the step so large, and what would be right."""
    if size.classes > 1 and size.most_classes and size.classes >= size.batches:
        most = size.most_classes
        if not scenario.fold:
            return (
                f"{size.classes:,} GPUs simulated one by one",
                f"let identical GPUs be folded, or use at most {counted(most, 'GPU')}",
            )
        return (
            f"GPUs of {size.classes:,} different speeds",
            f"use at most {counted(most, 'different speed')}",
        )
    if size.batches > 1 and size.most_batches > 0:
        if scenario.case != 4:
            return (
                f"{size.batches:,} accumulated batches",
                f"accumulate at most {size.most_batches:,}",
            )
        least = -(-_batch(scenario, trace) // size.most_batches)
        return (
            f"{size.batches:,} micro-batches of {scenario.micro_batch_size}",
            f"use micro-batches of at least {least:,}",
        )
    return f"{len(trace.operators):,} operators", "use a shorter trace or fewer GPUs"


def _batch(scenario: Scenario, trace: Trace) -> int:
    return scenario.batch_size_sim or trace.batch_size


def _replicas(scenario: Scenario, trace: Trace) -> Size:
    """Cases 0 to 3: every class runs all operators."""
    batches = scenario.accumulate if scenario.case in (1, 2) else 1
    before = split_step(trace).before
    again = sum(trace.operators[i].phase != "optimizer" for i in before)
    scaling, fixed = _fetched(scenario, trace)
    collectives = 0 if scenario.gpus == 1 else _all_reduces(scenario, trace)
    return Size(
        classes=_classes(scenario),
        batches=batches,
        per_batch=again + scaling,
        once=len(trace.operators) - again + fixed + collectives,
    )


def _classes(scenario: Scenario) -> int:
    if not scenario.fold:
        return scenario.gpus
    if scenario.jitter:
        return min(scenario.gpus, MAX_SPEEDS)
    at_full_speed = len(scenario.speeds) < scenario.gpus
    return len(set(scenario.speeds.values())) + at_full_speed


def _all_reduces(scenario: Scenario, trace: Trace) -> int:
    if scenario.case == 3:
        return sum(
            bool(op.tensor_parallel) and any(t.bytes for t in op.outputs) for op in trace.operators
        )
    if scenario.case == 2:
        return len(fill_buckets(trace, scenario.bucket_mb * 2**20))
    return int(scenario.case == 1 and find_parameters(trace).bytes > 0)


def _pipeline(scenario: Scenario, trace: Trace) -> Size:
    """The operators of all stages, and both ends of the transfers over every cut."""
    forward, backward = len(trace.phase("forward")), len(trace.phase("backward"))
    stages = min(scenario.gpus, max(1, forward))
    cuts = (stages - 1) * (2 if backward else 1)
    batch = _batch(scenario, trace)
    scaling, fixed = _fetched(scenario, trace)
    # Every stage runs its part of each optimizer operator; a whole one runs once ("count").
    shares = stages if scenario.stage_cut == "time" else 1
    return Size(
        classes=1,
        batches=-(-batch // (scenario.micro_batch_size or batch)),
        per_batch=forward + backward + scaling + 2 * cuts,
        once=shares * len(trace.phase("optimizer")) + fixed,
    )


def _fetched(scenario: Scenario, trace: Trace) -> tuple[int, int]:
    """Buffers that come from remote memory: once for every batch, and once a step."""
    existing = [
        buffer.scales
        for buffer in find_memory(trace).buffers
        if buffer.origin is Origin.EXISTING and buffer.bytes and not scenario.resident
    ]
    return sum(existing), len(existing) - sum(existing)

"""Transfers inside passes, which the step's own program holds as part of composite tasks."""

from __future__ import annotations

from triosim.analysis.communication import Communication
from triosim.train.step import StepWriter


def inner_communication(writer: StepWriter) -> list[Communication]:
    """Tensor, context and expert parallelism: one row per kind and purpose, over all ranks."""
    ranks = writer.plan.scenario.gpus
    sums: dict[tuple[str, str], list[float]] = {}
    for stage in writer.stages:
        members = sum(len(writer.program.classes[c].members) for c in stage.classes)
        for made, times in writer.composites(stage.number):
            for one in made.passes:
                for key, moved in one.moved.items():
                    row = sums.setdefault(key, [0.0] * 4)
                    row[0] += moved.transfers * times * members / ranks
                    row[1] += moved.sent_bytes * times * members
                    row[2] += moved.busy_s * times * members / ranks
                for part in one.parts:
                    if part.kind == "exposed_communication":
                        row = sums.setdefault(part.key, [0.0] * 4)
                        row[3] += part.seconds * times * members / ranks
    return [
        Communication(
            kind=kind,
            purpose=purpose,
            transfers=round(row[0]),
            bytes=row[1],
            busy_s=row[2],
            exposed_s=row[3],
        )
        for (kind, purpose), row in sums.items()
    ]


def sent_inside(writer: StepWriter, stage: int) -> float:
    """Bytes that one rank of a stage sends inside its passes."""
    return sum(
        moved.sent_bytes * times
        for made, times in writer.composites(stage)
        for one in made.passes
        for moved in one.moved.values()
    )

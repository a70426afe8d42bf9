"""torchgpipe's speeds from its speed on one GPU: the schedule alone, without a hardware model."""

from __future__ import annotations

from typing import Any

from triosim.pipelines import pipeline

BACKWARD = 2.0  # of forward's time


def step_s(row: dict[str, Any]) -> float:
    """A step on equal stages where all micro-batches but the last run forward again.

    The last one goes back first, and its way through all stages is on the critical path: there each
    stage saves one forward.
    """
    stages, microbatches = row["stages"], row["microbatches"]
    work_s = row["global_batch"] / row["single_gpu_samples_per_s"]
    forward_s = work_s / (1 + BACKWARD) / stages / microbatches
    again = pipeline(
        "gpipe",
        stages=stages,
        microbatches=microbatches,
        forward=forward_s,
        backward=(1 + BACKWARD) * forward_s,
        weight=forward_s,
    )
    return float(again.makespan - stages * forward_s)


def published_s(row: dict[str, Any]) -> float:
    return float(row["global_batch"] / row["samples_per_s"])

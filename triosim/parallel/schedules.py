"""The order in which a pipeline stage runs its micro-batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Step = tuple[str, int]  # phase ("forward" or "backward"), micro-batch


def gpipe(stage: int, stages: int, microbatches: int) -> list[Step]:
    """All forwards, then all backwards: every micro-batch's activations are kept at once."""
    del stage, stages
    forward = [("forward", m) for m in range(microbatches)]
    return forward + [("backward", m) for m in range(microbatches)]


def one_forward_one_backward(stage: int, stages: int, microbatches: int) -> list[Step]:
    """1F1B (PipeDream-Flush): after min(m, p-1-i) warm-up forwards, alternate.

    Stage i keeps at most min(m, p-i) micro-batches' activations.
    """
    warm_up = min(microbatches, stages - 1 - stage)
    steps: list[Step] = [("forward", m) for m in range(warm_up)]
    for m in range(microbatches - warm_up):
        steps += [("forward", warm_up + m), ("backward", m)]
    return steps + [("backward", m) for m in range(microbatches - warm_up, microbatches)]


SCHEDULES: Mapping[str, Callable[[int, int, int], list[Step]]] = {
    "gpipe": gpipe,
    "1f1b": one_forward_one_backward,
}

"""Pipelines: the step against the schedule alone, period and makespan, uneven stages."""

from __future__ import annotations

import pytest

from triosim.errors import ConfigError
from triosim.schedules import Durations, time_schedule


def alone(result):
    """The schedule with the passes' durations and one delay for each hop, no engine involved."""
    plan, writer = result.plan, result.writer
    groups = writer._groups.whole
    seconds = {
        kind: [sum(p.seconds for p in group.passes(kind)) for group in groups]
        for kind in ("forward", "backward", "weight", "input")
    }
    split = any(plan.schedule.split)
    backward = (
        [a + b for a, b in zip(seconds["input"], seconds["weight"], strict=True)]
        if split
        else seconds["backward"]
    )
    delay = writer.wires.handover(0, 1, writer._handed_bytes).planned.time_s
    durations = Durations(
        forward=seconds["forward"],
        backward=backward,
        weight=seconds["weight"],
        hop=[delay] * plan.stages,
    )
    return time_schedule(plan.schedule, durations)


SCHEDULES = [
    ("gpipe", 4, 8, 1),
    ("1f1b", 4, 8, 1),
    ("1f1b", 4, 2, 1),
    ("interleaved", 2, 4, 2),
    ("looped-bfs", 4, 8, 2),
    ("zb-h1", 4, 8, 1),
    ("zb-h2", 4, 8, 1),
    ("zb-v", 4, 8, 1),
]


@pytest.mark.parametrize(("schedule", "stages", "batch", "chunks"), SCHEDULES)
def test_the_step_is_its_schedule_and_the_optimizer(step, schedule, stages, batch, chunks):
    result = step(
        gpus=stages, pp=stages, dp_shard=1, global_batch=batch, schedule=schedule, chunks=chunks,
        layers=8, recompute="full", optimizer_sync="stage",
    )  # fmt: skip
    timing = alone(result)
    state = result.writer.state
    spans = [span + state.optimizer_s(s) for s, span in enumerate(timing.spans)]
    # Hops in both directions share links here: the engine can only be later than fixed delays.
    assert result.step_s == pytest.approx(max(spans), rel=3e-3)
    assert result.step_s >= max(spans) * (1 - 1e-9)


def test_a_global_optimizer_waits_for_every_stage(step):
    settings = {"gpus": 4, "pp": 4, "dp_shard": 1, "global_batch": 8, "layers": 8}
    whole = step(**settings)
    local = step(**settings, optimizer_sync="stage")
    assert whole.step_s > local.step_s
    assert whole.step_s == pytest.approx(
        alone(whole).makespan + max(whole.writer.state.optimizer_s(s) for s in range(4)), rel=1e-3
    )
    for result in (whole, local):
        assert sum(result.breakdown.values()) == pytest.approx(result.step_ms, rel=1e-9)
        for breakdown in result.breakdowns:
            assert sum(breakdown.classes_s.values()) == pytest.approx(result.step_s, rel=1e-9)
            assert min(breakdown.classes_s.values()) >= -1e-12


def test_stages_bound_the_step(step):
    """ORACLES P4: at least m times the slowest stage, and one micro-batch's way through all."""
    result = step(gpus=4, pp=4, dp_shard=1, global_batch=16, layers=8)
    busy = [
        sum(p.seconds for kind in ("forward", "backward") for p in group.passes(kind))
        for group in result.writer._groups.whole
    ]
    assert result.step_s >= 16 * max(busy)
    assert result.step_s >= sum(busy)


def test_interleaving_405b_gains_what_was_published(step):
    """SEMINAR P3: theory 1.30, torchtitan measured 1.28 (405B, pp 8, m = 8 not stated)."""
    settings = {
        "model": "llama3.1-405b", "gpu": "h100-96gb", "gpus": 512, "tp": 8, "pp": 8,
        "global_batch": 64, "sequence_parallel": True, "async_tp": True, "loss_parallel": True,
        "recompute": "full", "compile": True, "stack": "torchtitan-compile",
        "precision": "fp8-tensorwise", "machine": "seminar-h100",
    }  # fmt: skip
    plain = step(**settings)
    interleaved = step(**settings, schedule="interleaved", chunks=2)
    assert plain.step_s / interleaved.step_s == pytest.approx(1.29, abs=0.03)


def test_dualpipe_holds_the_model_twice_and_adds_its_gradients_up(step):
    settings = {"gpus": 4, "pp": 4, "dp_shard": 1, "global_batch": 8, "layers": 8}
    once, twice = step(**settings), step(**settings, schedule="dualpipe")
    total = [sum(r.writer.state.count(s) for s in range(4)) for r in (once, twice)]
    assert total[1] == 2 * total[0]
    reduced = [
        sum(row.bytes for row in r.communication if row.kind == "all-reduce") for r in (once, twice)
    ]
    # Two ranks each send the whole of their gradients once, in 2 bytes; the norm is a few bytes.
    assert reduced[1] - reduced[0] == pytest.approx(total[1] * 2, rel=1e-4)


def test_data_parallel_stages_gather_once_and_reduce_once(step):
    """As torchtitan: parameters stay gathered, gradients are reduced after the last micro-batch."""
    few, many = (step(gpus=8, pp=2, global_batch=4 * m) for m in (2, 8))
    for purpose in ("parameters", "gradients"):
        one, other = (
            sum(
                row.bytes for row in r.communication
                if row.purpose == purpose and row.kind != "send/recv"
            )
            for r in (few, many)
        )  # fmt: skip
        assert one == pytest.approx(other)


def test_a_grid_is_a_schedule_like_any_other(step):
    settings = {"gpus": 2, "pp": 2, "dp_shard": 1, "global_batch": 4, "layers": 8}
    typed = "F0 F1 B0 F2 B1 F3 B2 B3\n F0 B0 F1 B1 F2 B2 F3 B3"
    assert step(**settings, grid=typed).step_s == step(**settings, schedule="1f1b").step_s
    with pytest.raises(ConfigError, match=r"grid of 2 pp: must be of 4 here"):
        step(**{**settings, "gpus": 4, "pp": 4}, grid=typed)
    with pytest.raises(ConfigError, match=r"grid of 4 micro-batches: must be of 8 here"):
        step(**{**settings, "global_batch": 8}, grid=typed)

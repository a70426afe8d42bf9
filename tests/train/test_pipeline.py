"""Pipelines: the step against the schedule alone, period and makespan, uneven stages."""

from __future__ import annotations

import pytest

from triosim.engine.executor import execute
from triosim.errors import ConfigError
from triosim.schedules import Durations, time_schedule
from triosim.train.step import StepWriter


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
    ("dualpipe", 4, 8, 1),
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
    # DualPipe's cross at every pair.
    assert result.step_s == pytest.approx(max(spans), rel=1e-2 if schedule == "dualpipe" else 3e-3)
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


def pair_of(result):
    """A layer's forward, its backward, and the two beside each other."""
    blocks = result.writer.blocks
    unit = next(u for u in result.plan.virtual_stages[1] if u.layer >= 0)
    alone = [blocks.simulate(unit, kind) for kind in ("forward", "backward")]
    return (*alone, blocks.simulate_pair(unit, unit, "backward"))


def compute_s(one):
    return sum(part.seconds for part in one.parts if part.kind == "compute")


EXPERTS = {"experts": 8, "top_k": 2, "expert_ffn": 4096, "ep": 4, "zero": 0, "layers": 8}
DUALPIPE = {"gpus": 16, "pp": 4, "global_batch": 32, "schedule": "dualpipe"}


@pytest.mark.parametrize("bytes_per_s", [5e9, 50e9, 450e9])
def test_a_pair_hides_transfers_behind_the_other_pass(step_on, bytes_per_s):
    quiet = {"overlap_slowdown": 0.0, "launch_us": 0.0}
    result = step_on(bytes_per_s, **DUALPIPE, **EXPERTS, constants=quiet)
    forward, backward, pair = pair_of(result)
    moved = sum(m.busy_s for one in (forward, backward) for m in one.moved.values())
    computed = compute_s(forward) + compute_s(backward)
    assert compute_s(pair) == pytest.approx(computed)
    least = max(computed, moved) * (1 - 1e-9)
    assert least <= pair.seconds < forward.seconds + backward.seconds
    assert sum(m.sent_bytes for m in pair.moved.values()) == pytest.approx(
        sum(m.sent_bytes for one in (forward, backward) for m in one.moved.values())
    )


def test_pairs_that_move_nothing_inside_take_as_long_as_their_halves(step):
    forward, backward, pair = pair_of(step(**DUALPIPE, layers=8, zero=0))
    assert pair.seconds == pytest.approx(forward.seconds + backward.seconds)


class Serial(StepWriter):
    """Writes a pair's forward first and its backward after it."""

    def _runs_whole(self, *args, **flags):
        return False


def test_dualpipe_gains_from_its_pairs_where_passes_move_something(step_on):
    """More than the pairs lose by starting together, as the published implementation has them."""
    result = step_on(20e9, **DUALPIPE, **EXPERTS, constants={"launch_us": 0})
    assert result.step_s < execute(Serial(result.plan).write()).total_s
    assert all(check.passed for check in result.checks)
    pair = next(t for t, made in result.writer.made.items() if "beside" in made.group.units[1].name)
    inside = result.inside(pair)
    assert set(inside.phase) >= {"forward", "backward"}
    assert inside.end_ms.max() == pytest.approx(
        1e3 * sum(part.seconds for part in result.tasks.program.parts[pair])
    )


def test_backwards_with_and_without_their_weight_part_are_not_taken_for_each_other(step):
    """From ten stages on DualPipe's cool-down has rows of backwards that change half-way."""
    result = step(
        gpus=10, pp=10, dp_shard=1, global_batch=20, schedule="dualpipe", layers=20, hidden=256,
        heads=4, kv_heads=4, ffn=512,
    )  # fmt: skip
    assert all(check.passed for check in result.checks)
    one_by_one = execute(StepWriter(result.plan, repeat=False).write())
    assert result.tasks.total_s == pytest.approx(one_by_one.total_s)

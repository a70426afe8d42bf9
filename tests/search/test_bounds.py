"""A bound is safe if no simulated step is shorter or holds less; held against random plans."""

import contextlib
import random
from dataclasses import replace
from itertools import pairwise

import pytest

import triosim as ts
from triosim.schedules import make_schedule
from triosim.search.bounds import Bounds
from triosim.search.orders import orders_of
from triosim.train import make_plan

SCHEDULES = ("gpipe", "1f1b", "interleaved", "looped-bfs", "zb-h1", "zb-h2", "zb-v", "dualpipe")
CHOICES = {
    "gpus": (8, 16, 32, 64),
    "tp": (1, 2, 4, 8),
    "cp": (1, 2, 4),
    "pp": (1, 2, 4),
    "machine": (None, None, "seminar-h100", "torus"),
    "dp_replicate": (1, 2),
    "micro_batch_size": (1, 2),
    "recompute": ("none", "full", "selective-op", "selective-layer:2", "attention"),
    "schedule": SCHEDULES,
    "stack": ("generic", "torchtitan-compile", "megatron-2021", "deepspeed"),
    "fsdp": (1, 2),
    "zero": (None, 1, 2, 3),
    "reshard": (True, False),
    "offload": (False, False, True),
    "optimizer_sync": ("global", "stage"),
    "precision": ("bf16", "fp16", "fp8-rowwise"),
    "prefill": (False, False, False, True),
    "context": ("ring-zigzag", "ulysses", "allgather"),
    "async_tp": (False, True),
}


def scenarios(seed, count):
    """Legal ones of a small model."""
    chance = random.Random(seed)
    found = []
    while len(found) < count:
        chosen = {name: chance.choice(values) for name, values in CHOICES.items()}
        chosen["sequence_parallel"] = chosen["tp"] > 1
        chosen["chunks"] = 2 if chosen["schedule"] in ("interleaved", "looped-bfs") else 1
        if chosen["pp"] == 1:
            chosen |= {"schedule": "1f1b", "chunks": 1}
        try:
            scenario = ts.TrainScenario(
                model="llama3-8b", layers=8, seq_len=2048, global_batch=16, **chosen
            )
            make_plan(scenario)
        except ts.ConfigError:
            continue
        found.append(scenario)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_no_step_is_shorter_than_its_bound_or_holds_less(seed):
    bounds = Bounds()
    for scenario in scenarios(seed, 15):
        plan = make_plan(scenario)
        result = ts.train(scenario)
        assert bounds.time(plan).seconds <= result.step_s * (1 + 1e-9), scenario
        assert bounds.held(plan).bytes <= result.peak_memory_bytes * (1 + 1e-9), scenario


@pytest.mark.parametrize("seed", range(2))
def test_a_lower_zero_stage_is_never_slower_and_has_the_same_bound(seed):
    """Which is why a search leaves out a plan where one that is less sharded fits."""
    bounds = Bounds()
    for scenario in scenarios(seed + 50, 8):
        plans = []
        for zero in (1, 2, 3):
            with contextlib.suppress(ts.ConfigError):  # nothing to shard over
                plans.append(make_plan(replace(scenario, zero=zero)))
        steps = [ts.train(plan.scenario).step_s for plan in plans]
        for less, more in pairwise(steps):
            assert less <= more * (1 + 1e-6), scenario
        assert len({bounds.time(plan).seconds for plan in plans}) <= 1


def test_a_pipeline_is_bounded_by_its_bubble():
    # 1F1B of p equal stages takes (m + p - 1)(F + B); 8 layers and no vocabulary to speak of.
    scenario = ts.TrainScenario(
        model="llama3-8b", layers=16, vocab=128, gpus=4, pp=4, global_batch=8, seq_len=2048
    )
    bound = Bounds().time(make_plan(scenario))
    assert bound.seconds / bound.busy_s == pytest.approx((8 + 3) / 8, rel=0.01)
    assert bound.mean_busy_s == pytest.approx(bound.busy_s, rel=0.02)


@pytest.mark.parametrize(
    ("name", "stages", "microbatches", "chunks", "held"),
    [
        # ORACLES P: GPipe holds all micro-batches, 1F1B min(m, p - s) at stage s.
        ("gpipe", 4, 6, 1, [6, 6, 6, 6]),
        ("1f1b", 4, 6, 1, [4, 3, 2, 1]),
        ("1f1b", 4, 2, 1, [2, 2, 2, 1]),
    ],
)
def test_what_an_order_holds(name, stages, microbatches, chunks, held):
    orders = orders_of(make_schedule(name, stages, microbatches, chunks))
    assert [max(sum(one.values()) for one in order.held) for order in orders] == held


def test_what_an_order_waits_for():
    last = orders_of(make_schedule("1f1b", 4, 6))[3]
    assert dict(last.before) == {("forward", 0): 1, ("forward", 1): 1, ("forward", 2): 1}
    assert dict(last.after) == {("backward", 0): 1, ("backward", 1): 1, ("backward", 2): 1}
    assert dict(last.passes) == {("forward", 3): 6, ("backward", 3): 6}

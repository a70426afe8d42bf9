"""The words for why a layout lost, for steps made by hand."""

import pytest

import triosim as ts
from triosim.search.bounds import Bound, Held
from triosim.search.candidates import Candidate, Simulated
from triosim.search.reasons import bounded, no_memory, percent, slower

GIB = 2**30
BASE = ts.TrainScenario(gpus=16)
GATHER = "exposed_communication", "all-gather tensor parallel"
COMPUTE = "compute", "backward"
RECOMPUTE = "compute", "recompute"


def step(parts_ms, memory_gib=40, stage=0):
    return Simulated(
        step_ms=sum(parts_ms.values()), peak_memory_bytes=memory_gib * GIB, fullest_stage=stage,
        fits=True, tokens_per_s_per_gpu=1.0, mfu=0.5, parts_ms=parts_ms,
    )  # fmt: skip


def plan(seconds, busy_s, sent_s, mean_busy_s, *, across_hosts=False, **scenario):
    return Candidate(
        scenario=ts.TrainScenario(gpus=16, **scenario),
        held=Held(bytes=90 * GIB, stage=3),
        bound=Bound(seconds=seconds, busy_s=busy_s, sent_s=sent_s, mean_busy_s=mean_busy_s),
        across_hosts=across_hosts,
    )


BEST = step({COMPUTE: 1000.0})


@pytest.mark.parametrize(
    ("parts", "more", "text"),
    [
        ({COMPUTE: 1000.0}, {}, "as fast as the best"),
        ({COMPUTE: 1000.3}, {}, "as fast as the best within 0.05 %"),
        (
            {COMPUTE: 990.0, ("bubble", "bubble"): 50.0}, {},
            "4.0 % slower: bubble, 5.0 % of the best's step more",
        ),
        (
            {COMPUTE: 1000.0, GATHER: 250.0}, {"across_hosts": True},
            "25 % slower: exposed all-gather (tensor parallel), 25 % of the best's step more, "
            "across hosts",
        ),
        (
            {COMPUTE: 1100.0}, {"across_hosts": True},
            "10 % slower: backward compute, 10 % of the best's step more",
        ),
        (
            {COMPUTE: 1000.0, RECOMPUTE: 200.0}, {"forced": True},
            "20 % slower: recompute, 20 % of the best's step more (full, to fit in memory)",
        ),
        (
            {COMPUTE: 1000.0, RECOMPUTE: 200.0}, {},
            "20 % slower: recompute, 20 % of the best's step more (full)",
        ),
    ],
)  # fmt: skip
def test_slower_ones_say_what_grew_most(parts, more, text):
    scenario = ts.TrainScenario(gpus=16, recompute="full" if RECOMPUTE in parts else "none")
    known = {"across_hosts": False, "forced": False} | more
    assert slower(step(parts), scenario, BEST, **known) == text


@pytest.mark.parametrize(
    ("candidate", "text"),
    [
        (plan(1.25, 1.0, 0.1, 1.0, pp=2), "at least 25 % slower: 20 % of it a bubble"),
        (
            plan(1.5, 1.5, 0.3, 1.5, tp=2, cp=2, across_hosts=True),
            "at least 50 % slower: 20 % of it transfers of tensor and context parallelism, across "
            "hosts",
        ),
        (
            plan(1.2, 1.2, 0.0, 1.0, pp=4),
            "at least 20 % slower: uneven stages, the longest 20 % above the mean",
        ),
        (
            plan(1.05, 1.05, 0.01, 1.05, recompute="full"),
            "at least 5.0 % slower: it computes part of it twice (full recompute)",
        ),
        (
            plan(1.05, 1.05, 0.01, 1.05),
            "at least 5.0 % slower: its computing alone takes longer",
        ),
    ],
)
def test_bounded_ones_say_what_the_bound_consists_of(candidate, text):
    assert bounded(candidate, BEST) == text


def test_what_does_not_fit_says_how_much_it_lacks():
    held = plan(1.0, 1.0, 0.0, 1.0, pp=4)
    assert no_memory(held, None, 80 * GIB) == (
        "out of memory at stage 3: needs at least 90 of 80 GiB"
    )
    one = plan(1.0, 1.0, 0.0, 1.0)
    assert no_memory(one, None, 80 * GIB) == "out of memory: needs at least 90 of 80 GiB"
    run = step({COMPUTE: 1.0}, memory_gib=85, stage=2)
    assert no_memory(held, run, 80 * GIB) == "out of memory at stage 2: needs 85 of 80 GiB"
    close = step({COMPUTE: 1.0}, memory_gib=80.25)
    assert no_memory(one, close, 80 * GIB) == "out of memory: needs 80.25 of 80 GiB"


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0.0 %"), (0.0512, "5.1 %"), (0.0996, "10 %"), (0.254, "25 %"), (12.0, "1,200 %")],
)
def test_shares_have_the_digits_that_say_something(share, text):
    assert percent(share) == text

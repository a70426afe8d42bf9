"""When tensors are fetched, evicted and fetched again, on steps small enough to plan by hand."""

import pytest

from triosim import Infeasible, Trace
from triosim.parallel.residency import Arrival, Store, plan_residency
from triosim.parallel.work import lay_out, scaled_run
from triosim.trace import Operator, Tensor

GB_PER_S = 1e-6  # 1,000 bytes per second: 600 bytes take 0.6 s


def tensor(number, size):
    return Tensor(
        id=number, storage=number + 100, shape=(1, size), numel=size, element_bytes=1, kind="weight"
    )


def trace_of(*operators):
    return Trace(
        name="hand",
        batch_size=1,
        operators=tuple(
            Operator(id=i, name=name, phase="forward", time_s=1.0, inputs=ins, outputs=outs)
            for i, (name, ins, outs) in enumerate(operators)
        ),
    )


def planned(trace, capacity, *, resident=False):
    work = lay_out(trace, [scaled_run(trace, i, 0, 1) for i in range(len(trace.operators))])
    return work, plan_residency(work, capacity, resident=resident)


@pytest.fixture
def three_layers():
    """Each operator reads a weight of 400 bytes and 100 bytes of the one before, makes 100."""
    acts = [tensor(i, 100) for i in range(4)]
    weights = [tensor(10 + i, 400) for i in range(3)]
    return trace_of(*((f"op{i}", (acts[i], weights[i]), (acts[i + 1],)) for i in range(3)))


def test_everything_is_fetched_at_once_where_it_fits(three_layers):
    _, plan = planned(three_layers, 2000)
    assert [arrival.gate for arrival in plan.arrivals] == [-1] * 4
    assert [arrival.slot for arrival in plan.arrivals] == [0, 0, 1, 2]


def test_a_fetch_waits_for_the_operator_that_makes_room(three_layers):
    # While op0 runs 600 bytes are in use, so only one weight can come early; when it has ended, its
    # weight and input make room for the third.
    _, plan = planned(three_layers, 1024)
    assert [arrival.gate for arrival in plan.arrivals] == [-1, -1, -1, 0]
    assert not plan.stores


def test_fetches_run_ahead_as_far_as_memory_allows(three_layers):
    _, plan = planned(three_layers, 700)
    # 100 bytes of room beside each operator: every weight waits for the operator before its own.
    assert [arrival.gate for arrival in plan.arrivals] == [-1, -1, 0, 1]


@pytest.fixture
def kept_result():
    """op0 makes 600 bytes that only op2 needs; op1 needs a weight of 600 bytes meanwhile."""
    kept, other, weight = tensor(1, 600), tensor(2, 100), tensor(3, 600)
    return trace_of(("op0", (), (kept,)), ("op1", (weight,), (other,)), ("op2", (kept, other), ()))


def test_what_is_needed_last_is_stored_and_fetched_again(kept_result):
    work, plan = planned(kept_result, 1024)
    kept, other, weight = work.instances
    assert plan.stores == [Store(key=kept, after=0, before=1)]
    assert plan.arrivals == [
        Arrival(key=weight, slot=1, gate=0, stores=1),
        Arrival(key=kept, slot=2, gate=1, stores=1, again=True),
    ]
    assert other not in [arrival.key for arrival in plan.arrivals]


def test_eviction_is_visible_in_the_timeline(kept_result, simulate_trace):
    result = simulate_trace(kept_result, gpus=1, capacity_log2=10, bandwidth_gb_per_s=GB_PER_S)
    # op0 to 1 s, the store to 1.6 s, the weight to 2.2 s, op1 to 3.2 s, back by 3.8 s, op2.
    spans = result.timeline.set_index("name")["end_ms"].to_dict()
    assert spans == pytest.approx(
        {
            "op0": 1000,
            "store activations": 1600,
            "fetch parameters": 2200,
            "op1": 3200,
            "fetch activations again": 3800,
            "op2": 4800,
        }
    )
    assert result.fetched_bytes == 1200
    assert result.peak_memory_bytes == 700
    assert all(check.passed for check in result.checks)
    assert any("fetched again" in warning for warning in result.warnings)


def test_what_remote_memory_still_has_is_dropped_not_stored():
    weight, big, out = tensor(1, 600), tensor(2, 600), tensor(3, 8)
    trace = trace_of(("op0", (weight,), (out,)), ("op1", (big,), ()), ("op2", (weight, out), ()))
    _, plan = planned(trace, 1024)
    assert not plan.stores
    assert plan.dropped == 1
    assert [(a.slot, a.again) for a in plan.arrivals] == [(0, False), (1, False), (2, True)]


def test_resident_tensors_that_do_not_fit_come_when_needed(three_layers):
    # The input and the three weights are 1,300 bytes: the weight needed last cannot stay.
    _, plan = planned(three_layers, 1250, resident=True)
    last = max(plan.arrivals, key=lambda arrival: arrival.slot)
    assert last.slot == 2
    assert last.key not in plan.initial
    assert len(plan.initial) == 3


def test_a_working_set_that_can_never_fit_is_named(three_layers):
    with pytest.raises(
        Infeasible, match=r"Operator 0 \(op0\) needs 600 bytes in memory at once and a GPU has 512"
    ):
        planned(three_layers, 512)


def test_more_than_64_bits_are_refused():
    with pytest.raises(Infeasible, match="more than 2\\^62"):
        planned(trace_of(("op0", (tensor(1, 2**62), tensor(2, 2**62)), ())), 2**60)


@pytest.mark.parametrize("case", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("resident", [False, True])
def test_every_capacity_gives_a_valid_step_or_none(make_trace, simulate_trace, case, resident):
    trace = make_trace(
        [1.0, 2.0, 1.0, 3.0],
        [2.0, 4.0, 1.0, 5.0],
        activation_bytes=[3000, 5000, 2000, 7000, 100],
        parameter_bytes=4000,
        optimizer_us=1.0,
        batch_size=4,
    )
    settings = {"case": case, "gpus": 2, "resident": resident, "bandwidth_gb_per_s": 1.0}
    if case == 4:
        settings |= {"micro_batch_size": 1, "schedule": "1f1b"}
    free = simulate_trace(trace, **settings)
    seen = []
    for log2 in range(10, 18):
        try:
            result = simulate_trace(trace, **settings, capacity_log2=log2)
        except Infeasible:
            seen.append("none")
            continue
        assert [check for check in result.checks if not check.passed] == []
        assert result.peak_memory_bytes <= 2**log2
        assert result.total_ms >= free.total_ms * (1 - 1e-9)
        seen.append("tight" if result.total_ms > free.total_ms * 1.0001 else "roomy")
    assert seen[0] == "none"
    assert seen[-1] == "roomy"
    assert seen == sorted(seen, key=["none", "tight", "roomy"].index)

"""TrioSim's case 3: 1/n of the time of flagged operators, then 1/n of their output all-reduced."""

import pytest

from triosim import TraceFormatError


@pytest.fixture
def layers(make_trace):
    return make_trace(
        [10.0, 20.0], [30.0, 40.0], activation_bytes=[1000, 2000, 3000], optimizer_us=7.0
    )


@pytest.mark.parametrize("gpus", [2, 3, 8])
def test_closed_form(layers, simulate_trace, gpus):
    result = simulate_trace(layers, case=3, gpus=gpus, resident=True, ptp_bandwidth_gb_per_s=1)
    # Outputs: 2000 and 3000 forward; 1000 + 4 and 2000 + 4 backward.
    moved_ms = (2000 + 3000 + 1004 + 2004) / gpus / 1e9 * 1e3
    assert result.total_ms == pytest.approx(0.1 / gpus + 0.007 + moved_ms, rel=1e-12)
    assert result.exposed_communication_ms == pytest.approx(moved_ms)
    assert result.samples_per_s == pytest.approx(1 / result.total_ms * 1e3)


def test_one_gpu_is_the_recorded_step(layers, simulate_trace):
    assert simulate_trace(layers, case=3, gpus=1, resident=True).total_ms == pytest.approx(0.107)


def test_parameters_are_held_in_shares(make_trace, simulate_trace):
    trace = make_trace([1.0] * 3, [1.0] * 3, parameter_bytes=8000, optimizer_us=1.0)
    whole = simulate_trace(trace, case=3, gpus=1)
    split = simulate_trace(trace, case=3, gpus=8)
    assert whole.fetched_bytes == 3 * 8000 + 4
    assert split.fetched_bytes / 8 == 3 * 1000 + 4
    assert split.peak_memory_bytes < whole.peak_memory_bytes / 6


def test_a_trace_without_flags_is_refused(make_trace, shared, simulate_trace):
    from triosim import Scenario, simulate

    folder = shared / "traces" / "odd_csv" / "c13_no_tpflag_column"
    with pytest.raises(TraceFormatError, match=r"trace\.csv.*tpflag"):
        simulate(Scenario(trace_dir=str(folder), case=3, gpus=2))

"""A file of 216,000 events, the rows of a published recording laid end to end."""

import pytest

from benchmarks.convert import EVENTS, FILE, TARGET_BYTES, in_own_processes


def test_memory_of_a_large_file(traces, tmp_path):
    found = in_own_processes(traces / "kineto" / FILE, tmp_path)
    assert found["events"] == EVENTS
    # five whole copies of 2,700 kernels; the sixth is cut off before its kernels begin
    assert found["kernels"] >= 5 * 2_700
    assert found["attributed"] == pytest.approx(1.0)
    assert found["memory_bytes"] < TARGET_BYTES, "the README says 1 GB for 216,000 events"

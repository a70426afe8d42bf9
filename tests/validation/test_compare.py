"""Errors and what they come to, on figures made by hand."""

from dataclasses import replace

import pandas as pd
import pytest

from triosim.validation import (
    Prediction,
    compare,
    load_source,
    predict,
    rows_of,
    summarise,
    uncalibrated,
    worst,
)
from triosim.validation.compare import frame_of
from triosim.validation.gpipe import step_s


@pytest.fixture
def frame():
    """Five rows of 10 s and 100 GiB, the last one second-hand; the fourth cannot be run."""
    row = rows_of(load_source("torchtitan"))[0]
    statuses = ("kept", "kept", "marked", "kept", "shown")
    rows = [
        replace(row, number=i, status=status, published_s=10.0, published_gib=100.0)
        for i, status in enumerate(statuses)
    ]
    own = [
        Prediction(seconds=11, gib=90), Prediction(seconds=8, gib=100), Prediction(seconds=10.5),
        Prediction(problem="no"), Prediction(seconds=100, gib=1000),
    ]  # fmt: skip
    generic = [Prediction(seconds=12), *own[1:]]
    return frame_of(rows, zip(own, generic, strict=True))


def test_errors_are_signed_shares_of_the_published_value(frame):
    assert frame.calibrated_time_error.tolist()[:3] == pytest.approx([0.1, -0.2, 0.05])
    assert frame.calibrated_memory_error.tolist()[:2] == pytest.approx([-0.1, 0.0])
    assert pd.isna(frame.calibrated_time_error[3])
    assert frame.problem[3] == "no"


def test_only_counted_rows_are_summed_up(frame):
    found = summarise(frame).set_index(["quantity", "stack"])
    time = found.loc["time", "calibrated"]
    assert (time.rows, time.source) == (3, "torchtitan")
    assert time.mean_error == pytest.approx((0.1 + 0.2 + 0.05) / 3)
    assert time.bias == pytest.approx((0.1 - 0.2 + 0.05) / 3)
    assert time.p90 == pytest.approx(0.1 + 0.8 * 0.1)  # between the second and the largest of three
    assert found.loc["time", "generic"].mean_error == pytest.approx((0.2 + 0.2 + 0.05) / 3)
    assert found.loc["memory", "calibrated"].rows == 2


def test_the_worst_rows_come_first_and_second_hand_ones_do_not(frame):
    assert worst(frame, 2).row.tolist() == [1, 0]


def test_the_generic_stack_keeps_what_was_compiled():
    rows = rows_of(load_source("torchtitan"))
    eager, compiled = (uncalibrated(rows[i].scenario) for i in (0, 1))
    assert (eager.stack, eager.compiled) == ("generic", False)
    assert (compiled.stack, compiled.compiled) == ("generic", True)


def test_a_scenario_that_is_refused_is_a_problem():
    row = rows_of(load_source("torchtitan"))[0]
    found = predict(replace(row.scenario, tp=3, dp_shard=1, gpus=3), row.measured)
    assert found.seconds is None
    assert "heads" in found.problem or "tp" in found.problem


def test_a_layer_is_a_part_of_its_step():
    rows = {row.number: row for row in rows_of(load_source("selective-recompute"))}
    step = predict(rows[1].scenario, "step").seconds
    layer = predict(rows[14].scenario, "layer").seconds
    assert 48 * layer < step < 1.2 * 48 * layer  # 48 layers, embedding, head and optimizer


@pytest.mark.parametrize(("stages", "microbatches"), [(1, 2), (2, 7), (4, 4), (8, 40)])
def test_gpipe_with_recompute_but_for_the_last_micro_batch(stages, microbatches):
    """Forward fills and drains; backward B for the last micro-batch on each stage, then B + F."""
    f, b = 1.0, 2.0
    batch = 3.0 * stages * microbatches  # so that one micro-batch takes F + B = 3 on a stage
    row = {
        "stages": stages, "microbatches": microbatches, "global_batch": batch,
        "single_gpu_samples_per_s": 1.0,
    }  # fmt: skip
    want = (microbatches + stages - 1) * f + stages * b + (microbatches - 1) * (b + f)
    assert step_s(row) == pytest.approx(want)


def test_sources_without_a_stack_have_one_prediction():
    frame = compare(load_source("torchgpipe"))
    assert frame.generic_s.isna().all()
    one_gpu = frame[frame.gpus == 1].calibrated_time_error  # nothing but the recomputation
    assert one_gpu.abs().max() < 0.01

"""Settings that a schedule does not allow: one sentence with the nearest that it does."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from triosim import ConfigError
from triosim.pipelines import pipeline
from triosim.schedules import SCHEDULES


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"schedule": "2f2b"}, r"schedule 2f2b: must be one of gpipe, 1f1b, interleaved, "),
        ({"schedule": "interleaved", "chunks": 2, "microbatches": 9}, r"of 4 .*; 8 or 12 would"),
        ({"schedule": "interleaved", "chunks": 2, "microbatches": 5}, r"of 4 .*; 4 or 8 would"),
        ({"schedule": "zb-h2", "microbatches": 6}, r"needs at least 2 x 4 - 1; 7 would do\."),
        ({"schedule": "dualpipe", "stages": 3}, r"stages 3: .*even number; 2 or 4 would do\."),
        ({"schedule": "dualpipe", "stages": 1}, r"stages 1: .*even number; 2 would do\."),
        ({"schedule": "dualpipe", "microbatches": 11}, r"at least 2 x 4; 10 or 12 would do\."),
        ({"schedule": "dualpipe", "microbatches": 7}, r"at least 2 x 4; 8 would do\."),
        ({"schedule": "dualpipe", "microbatches": 6}, r"at least 2 x 4; 8 would do\."),
        ({"schedule": "1f1b", "chunks": 2}, r"chunks 2: 1f1b runs 1 on each stage"),
        ({"schedule": "zb-v", "chunks": 3}, r"chunks 3: zb-v runs 2 on each stage"),
        ({"stages": 0}, r"stages 0: must be a whole number from 1"),
        ({"stages": 2.5}, r"stages 2.5: must be a whole number"),
        ({"stages": True}, r"stages True: must be a whole number"),
        ({"microbatches": "many"}, r"microbatches many: must be a whole number"),
        ({"microbatches": 10**400}, r"microbatches 1000.*: must be a whole number"),
        ({"stages": 1000, "microbatches": 1000}, r"too many for 1,000 stages: .* most 200,000\."),
        ({"microbatches": 10**5}, r"at most 200,000; 25,000 would do\."),
        ({"forward": -1}, r"forward -1: must be a number from 0"),
        ({"forward": math.nan}, r"forward nan: must be a number from 0"),
        ({"forward": [1, 1, math.inf, 1]}, r"forward inf: must be a number from 0"),
        ({"transfer": None}, r"transfer None: must be a number"),
        ({"backward": [1, 2]}, r"backward \[1, 2\]: must be one number or one for each of 4"),
        ({"forward": 0, "backward": 0}, r"forward 0: forward and backward cannot both be 0"),
        ({"schedule": "zb-h1", "backward": 1, "weight": 1.5}, r"weight 1.5: must be at most back"),
    ],
)
def test_one_sentence(settings, sentence):
    with pytest.raises(ConfigError, match=sentence):
        pipeline(**settings)


@given(st.sampled_from(tuple(SCHEDULES)), st.integers(1, 9), st.integers(1, 20), st.integers(1, 3))
def test_all_numbers_run_or_are_refused(schedule, stages, microbatches, chunks):
    try:
        makespan = pipeline(
            schedule, stages=stages, microbatches=microbatches, chunks=chunks
        ).makespan
        field = None
    except ConfigError as error:
        makespan, field = None, error.field
    assert field in (None, "stages", "microbatches", "chunks")
    assert makespan is None or makespan >= 3 * microbatches - 1e-9


def test_schedules_that_take_any_number_of_micro_batches():
    for schedule in ("gpipe", "1f1b", "looped-bfs", "zb-h1", "zb-v"):
        for microbatches in range(1, 12):
            assert pipeline(schedule, stages=5, microbatches=microbatches).makespan > 0


def test_names_and_numbers_as_people_write_them():
    plain = pipeline("zb-h1", stages=4, microbatches=8, forward=[1, 1, 1, 2])
    other = pipeline(" ZB_H1", stages=4.0, microbatches="8", forward=np.array([1, 1, 1, 2]))
    assert other.timeline.equals(plain.timeline)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_weight_is_part_of_backward_under_every_schedule(schedule):
    assert pipeline(schedule, backward=0.5).weight == (0.5,) * 4
    assert pipeline(schedule).weight == (1.0,) * 4
    with pytest.raises(ConfigError, match=r"weight 1\.0: must be at most backward, here 0\.5\."):
        pipeline(schedule, backward=0.5, weight=1)

"""The same schedules through SimPy: an independent computation of every start and end."""

import numpy as np
from hypothesis import given
from hypothesis import settings as hypothesis_settings

from tests.schedules.strategies import runs
from triosim.engine.executor import execute
from triosim.pipelines import pipeline
from triosim.schedules import Durations, time_schedule, write_schedule


def durations(result):
    """Per-stage times as the schedule's parts of the model have them."""
    route, share = (
        result.schedule.routes[0],
        result.schedule.stages / len(result.schedule.routes[0]),
    )
    spread = {
        name: [share * getattr(result, name)[place.stage] for place in route]
        for name in ("forward", "backward", "weight")
    }
    return Durations(**spread, hop=result.transfer)


@given(runs())
@hypothesis_settings(max_examples=150)
def test_the_engine_agrees(keywords):
    result = pipeline(**keywords)
    timeline = execute(write_schedule(result.schedule, durations(result)))
    tasks = len(result.timing.start)
    assert np.abs(timeline.start_s[:tasks] - result.timing.start).max() <= 1e-12
    assert np.abs(timeline.end_s[:tasks] - result.timing.end).max() <= 1e-12
    assert timeline.total_s == result.makespan


def test_virtual_stages_can_differ_within_a_stage():
    """The last virtual stage, with the head, is on stage 0 of a V."""
    schedule = pipeline("zb-v", stages=2, microbatches=3).schedule
    uneven = Durations(
        forward=[1, 1, 1, 5], backward=[2, 2, 2, 7], weight=[1, 1, 1, 3], hop=[0.5, 0]
    )
    timing = time_schedule(schedule, uneven)
    assert timing.busy == (3 * (1 + 2 + 5 + 7), 3 * (1 + 2 + 1 + 2))
    # F0 on four virtual stages, hops 0-1 and 1-0; then B0 begins on stage 0.
    first_backward = [task.kind for task in schedule.rows[0]].index("B")
    assert timing.start[first_backward] == 1 + 0.5 + 1 + 1 + 0.5 + 5
    timeline = execute(write_schedule(schedule, uneven))
    assert timeline.end_s[: len(timing.end)].tolist() == timing.end.tolist()

"""Launches against work: the seminar's question K2, and breaks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triosim.compile import LaunchCosts, launch_timeline
from triosim.errors import ConfigError

FREE = LaunchCosts(launch_s=5e-6, guard_s=0, break_s=0, replay_s=0)


def test_k2_replay_saves_what_the_gpu_waited_for():
    short = [[1.2e-3 / 300] * 300]
    launched = launch_timeline(short, FREE)
    replayed = launch_timeline(short, FREE, "cuda-graphs")
    assert launched.step_s == pytest.approx(1.5e-3, rel=5e-3)
    assert launched.launch_bound
    assert replayed.step_s == pytest.approx(1.2e-3)
    assert 1 - replayed.step_s / launched.step_s == pytest.approx(0.20, abs=0.003)


def test_k2_replay_gains_nothing_where_the_gpu_is_the_slower():
    long = [[3e-3 / 300] * 300]
    launched = launch_timeline(long, FREE)
    assert launched.step_s == pytest.approx(3e-3, rel=2e-3)
    assert not launched.launch_bound
    assert launch_timeline(long, FREE, "cuda-graphs").step_s == pytest.approx(3e-3)


def test_the_whole_timeline_of_three_kernels():
    costs = LaunchCosts(launch_s=2, guard_s=0, break_s=0, replay_s=0)
    steps = launch_timeline([[1, 5, 1]], costs).launches
    assert [(k.cpu_start_s, k.cpu_end_s, k.start_s, k.end_s) for k in steps] == [
        (0, 2, 2, 3), (2, 4, 4, 9), (4, 6, 9, 10),
    ]  # fmt: skip


def test_a_break_adds_guards_and_python_and_another_replay():
    costs = LaunchCosts(launch_s=1, guard_s=10, break_s=100, replay_s=1000)
    times = [[1, 1], [1]]
    assert launch_timeline(times, costs, "eager").cpu_s == 3
    assert launch_timeline([[1, 1, 1]], costs).cpu_s == 10 + 3
    assert launch_timeline(times, costs).cpu_s == 10 + 2 + 100 + 10 + 1
    assert launch_timeline(times, costs, "cuda-graphs").cpu_s == 1010 + 110 + 1000


def test_a_replayed_graph_can_cost_time_between_its_kernels():
    costs = LaunchCosts(guard_s=0, break_s=0, replay_s=0, node_s=0.5)
    assert launch_timeline([[1, 1, 1]], costs, "cuda-graphs").step_s == 4


@given(
    st.lists(st.lists(st.floats(0, 1e-3), max_size=8), max_size=4),
    st.sampled_from(["eager", "compiled", "cuda-graphs"]),
)
def test_busy_and_waiting_make_up_the_step(times, mode):
    timeline = launch_timeline(times, LaunchCosts(), mode)
    assert timeline.gpu_s == pytest.approx(sum(map(sum, times)))
    assert timeline.step_s >= max(timeline.cpu_s, timeline.gpu_s) - 1e-12
    assert timeline.step_s <= timeline.cpu_s + timeline.gpu_s + 1e-12
    for before, after in zip(timeline.launches, timeline.launches[1:], strict=False):
        assert before.end_s <= after.start_s
        assert after.cpu_end_s <= after.start_s


def test_bad_input_is_refused():
    with pytest.raises(ConfigError, match="mode lazy: must be eager, compiled or cuda-graphs"):
        launch_timeline([[1]], FREE, "lazy")
    with pytest.raises(ConfigError, match="must hold numbers of seconds from 0"):
        launch_timeline([[-1]], FREE)
    with pytest.raises(ConfigError, match="launch_s nan: must be a number of seconds"):
        LaunchCosts(launch_s=float("nan"))

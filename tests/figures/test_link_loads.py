"""Loads of single links, and what one link carries over time."""

from __future__ import annotations

import numpy as np
import pytest

from triosim import Scenario, simulate
from triosim.figures import step_times_figure, topology_figure, utilisation_figure
from triosim.figures.link_loads import link_loads
from triosim.figures.utilisation import MAX_COLUMNS, columns

NAMES = ["two hosts", "dead link", "broken ring", "pipeline on a switch"]


def own_links(result):
    links = result.tasks.program.links
    return [k for k, link in enumerate(links) if link.source >= 0 and link.target >= 0]


@pytest.mark.parametrize("name", NAMES)
def test_loads_are_those_of_the_simulation(result_of, name):
    """The engine adds up bytes while they move, here they come from the algorithms' patterns."""
    result = result_of(name)
    loads = link_loads(result)
    source, target = (end.tolist() for end in loads.topology.ends())
    for k in own_links(result):
        link = result.tasks.program.links[k]
        ends = zip(source, target, strict=True)
        alike = [i for i, e in enumerate(ends) if e == (link.source, link.target)]
        assert alike
        for i in alike:  # the ways out of a host are parallel
            assert loads.carried_bytes[i] == pytest.approx(result.tasks.carried_bytes[k])
            assert loads.topology.capacity_bytes_per_s[i] == pytest.approx(link.bytes_per_s)
    total = sum(
        result.tasks.program.links[k].members * result.tasks.carried_bytes[k]
        for k in own_links(result)
    )
    assert loads.carried_bytes.sum() == pytest.approx(total)


def test_a_ring_of_four_by_hand():
    """Every link of a ring of n carries 2 (n - 1) / n of the 406,454,272 bytes of gradients."""
    result = simulate(Scenario(case=1, gpus=4, topology="ring", algorithm="ring"))
    (size,) = {
        result.tasks.program.bytes[ends[0]]
        for load, ends in zip(result.tasks.program.loads, result.tasks.program.ends, strict=True)
        if result.tasks.program.phase[ends[0]] == "all-reduce"
    }
    loads = link_loads(result)
    used = loads.carried_bytes[loads.carried_bytes > 0]
    assert used.tolist() == pytest.approx([1.5 * size] * 4)
    assert loads.why == ""


def test_what_decided_is_said_where_nothing_was_chosen(result_of):
    (used,) = result_of("two hosts").algorithms
    assert link_loads(result_of("two hosts")).why.startswith(f"{used.algorithm}, ")


def test_a_dead_link_is_drawn_as_one(result_of):
    figure = topology_figure(result_of("dead link"))
    (dead,) = (t for t in figure.data if t.name == "dead")
    (gpus,) = (t for t in figure.data if t.meta == "gpu")
    at = dict(zip(gpus.text, zip(gpus.x, gpus.y, strict=True), strict=True))
    assert {*zip(dead.x, dead.y, strict=True)} == {at["5"], at["6"], (None, None)}


@pytest.mark.parametrize("name", [*NAMES, "distributed", "mesh", "each alone"])
def test_the_area_is_what_the_link_carried(result_of, name):
    result = result_of(name)
    for k in range(len(result.tasks.program.links)):
        if result.tasks.carried_bytes[k] == 0:
            continue
        (load,) = (t for t in utilisation_figure(result, k).data if t.meta == "load")
        x, y = np.array(load.x), np.array(load.y)
        assert (x[0], x[-1]) == pytest.approx((0, result.total_ms))
        area = float((np.diff(x) * y[:-1]).sum()) * 1e6  # ms x GB/s
        assert area == pytest.approx(result.tasks.carried_bytes[k])


def test_many_changes_become_columns_of_the_same_area():
    random = np.random.default_rng(3)
    time_s = np.sort(random.uniform(0.1, 0.9, 20_000))
    load = random.uniform(0, 5, 20_000)
    load[-1] = 0.0
    edges, means = columns(time_s, load, 1.0)
    assert len(means) == MAX_COLUMNS
    area = float((np.diff(time_s) * load[:-1]).sum())
    assert float((np.diff(edges) * means).sum()) == pytest.approx(area)


def test_a_link_that_carries_nothing_says_so(make_trace, simulate_trace):
    result = simulate_trace(make_trace([100], [100]), gpus=1, resident=True)
    figure = utilisation_figure(result, 0)
    assert figure.layout.annotations[0].text == "This link carries nothing in this step."


def test_steps_that_differ_are_a_box_with_their_own_numbers(result_of):
    result = result_of("broken ring")
    times = result.step_times
    traces = {t.meta: list(t.x) for t in step_times_figure(result).data}
    assert traces["P50 to P95"] == [times.p50_ms, times.p95_ms]
    assert traces[f"all {times.steps:,} steps"] == [times.least_ms, times.most_ms]
    assert traces["the step shown here"] == [result.total_ms]


def test_steps_that_are_all_alike_say_so(result_of):
    figure = step_times_figure(result_of("distributed"))
    assert figure.layout.annotations[0].text == "Every step takes the same time."

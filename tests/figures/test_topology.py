"""The network: nodes, links, their loads."""

from __future__ import annotations

import math

import pytest

from triosim import Scenario, simulate
from triosim.figures import topology_figure
from triosim.figures.places import TRACK_FROM, curve, place


def nodes(figure):
    (found,) = (trace for trace in figure.data if trace.meta == "gpu")
    return dict(zip(found.text, zip(found.x, found.y, strict=True), strict=True))


def links(figure):
    return [text for t in figure.data if t.meta == "link" for text in t.hovertext if text]


def pieces(figure):
    """Lines as drawn: coordinates between two breaks."""
    return sum(list(t.x).count(None) for t in figure.data if t.meta == "line")


@pytest.mark.parametrize(
    ("name", "gpus", "count"),
    [
        ("alone", 1, 0),
        ("each alone", 8, 8),  # from remote memory to each GPU
        ("distributed", 8, 8),
        ("unfolded", 8, 8),
        ("straggler", 8, 8),
        ("pipeline", 4, 6),  # both directions of three cuts
        ("long pipeline", 16, 30),
        ("mesh", 8, 8),
        ("mesh pipeline", 8, 14),
        ("row", 8, 8),
        ("huge", 64, 63),
    ],
)
def test_nodes_and_links(result_of, name, gpus, count):
    figure = topology_figure(result_of(name))
    assert len(nodes(figure)) == gpus
    assert len(links(figure)) == count
    assert pieces(figure) == count
    assert len(set(nodes(figure).values())) == gpus


def test_case_0_has_no_links_between_gpus(result_of):
    figure = topology_figure(result_of("each alone"))
    assert all(text.startswith("<b>remote memory to GPU") for text in links(figure))
    assert [a.text for a in figure.layout.annotations] == ["remote<br>memory"]


def test_loads_are_the_timelines(result_of):
    """8.388608 MB over 65 GB/s in a step of that length, both ways over the first two cuts."""
    result = result_of("pipeline")
    hovers = links(topology_figure(result))
    program, timeline = result.tasks.program, result.tasks
    for i, link in enumerate(program.links):
        if link.source < 0 or link.target < 0:
            continue
        (own,) = (h for h in hovers if f"<b>GPU {link.source} to GPU {link.target}</b>" in h)
        busy = timeline.carried_bytes[i] / 65e9 / timeline.total_s * 100
        assert f"{busy:.1f} % of what it could carry" in own
        assert "bandwidth 65 GB/s" in own
    assert "8.39 MB in this step" in hovers[0]


def test_busier_links_are_wider(result_of):
    figure = topology_figure(result_of("long pipeline"))
    width = {t.name: t.line.width for t in figure.data if t.meta == "line"}
    assert width["40\u201360 % of the step busy"] > width["0\u201320 % of the step busy"]


def test_equal_loads_are_said_once(result_of):
    figure = topology_figure(result_of("distributed"))
    assert not figure.layout.annotations
    assert "each link carries 406 MB" in figure.layout.xaxis.title.text
    assert "each GPU fetches 696 MB" in figure.layout.xaxis.title.text


def test_a_part_of_many_is_drawn_and_said(result_of):
    for name in ("huge", "huge mesh"):
        figure = topology_figure(result_of(name))
        assert "64 of 16,384 GPUs drawn" in figure.layout.xaxis.title.text
        assert len(nodes(figure)) == 64


def test_a_pipeline_follows_the_ring_along_its_mesh():
    """2 x 4: 0 1 2 3 above, 7 6 5 4 below."""
    at = place(
        Scenario(case=4, interconnect="optical", mesh_rows=2, mesh_cols=4, micro_batch_size=1)
    ).at
    assert [at[rank] for rank in range(8)] == [
        (0.0, 0.0), (1.0, 0.0), (2.0, 0.0), (3.0, 0.0),
        (3.0, -1.0), (2.0, -1.0), (1.0, -1.0), (0.0, -1.0),
    ]  # fmt: skip


def test_only_a_circuit_that_passes_others_bows_on_a_mesh():
    even = place(Scenario(case=2, interconnect="optical", mesh_rows=2, mesh_cols=4))
    assert set(even.pairs.values()) == {0.0}
    row = place(Scenario(case=2, interconnect="optical"))
    assert [pair for pair, bend in row.pairs.items() if bend] == [(7, 0)]


@pytest.mark.parametrize("gpus", [2, 8, TRACK_FROM - 1, TRACK_FROM, 48, 64])
def test_a_rings_nodes_are_evenly_spread(gpus):
    """Straight distances between neighbours differ by what a half circle bends at most."""
    places = place(Scenario(case=2, gpus=gpus))
    steps = [math.dist(places.at[a], places.at[b]) for a, b in places.pairs]
    assert len(steps) == gpus
    assert min(steps) >= 0.95 * max(steps)


def test_the_two_directions_of_a_connection_bow_apart():
    there, back = curve((0, 0), (1, 0), 0.2), curve((1, 0), (0, 0), 0.2)
    assert there[8] == pytest.approx((0.5, 0.2))
    assert back[8] == pytest.approx((0.5, -0.2))
    assert (there[0], there[-1]) == ((0, 0), (1, 0))


@pytest.mark.parametrize(
    "settings",
    [
        {"interconnect": "optical", "mesh_rows": 1},
        {"interconnect": "optical", "mesh_rows": 4},
        {"case": 4, "micro_batch_size": 1, "batch_size_sim": 64},
    ],
)
def test_gpus_in_a_row_do_not_overlap_on_a_phone(settings):
    """390 px less 40 px of margins, divided among what the x axis spans."""
    figure = topology_figure(simulate(Scenario(**{"case": 2, "gpus": 16, **settings})))
    low, high = figure.layout.xaxis.range
    (gpus,) = (trace for trace in figure.data if trace.meta == "gpu")
    assert gpus.marker.size + gpus.marker.line.width < 350 / (high - low)
    assert 2 * 0.6 * gpus.textfont.size < gpus.marker.size


@pytest.mark.parametrize("name", ["distributed", "pipeline", "each alone", "huge mesh", "row"])
def test_the_caption_fits_a_phone(result_of, name):
    """Lines of at most 46 letters of half the text's size."""
    title = topology_figure(result_of(name)).layout.xaxis.title.text
    assert all(len(line) <= 46 for line in title.split("<br>"))

"""The drawing of a topology: what is drawn of it, and how its links look."""

from __future__ import annotations

import json

import numpy as np
import pytest

from triosim.figures.network import busy_of, network_figure, pairs_of
from triosim.figures.network_places import FULL, MAX_DRAWN, place_network
from triosim.network.collectives.choose import lay_out
from triosim.network.topology.base import LinkSpec, one_group
from triosim.network.topology.describe import GENERIC, machine_names, topology_of
from triosim.network.topology.faults import degrade

LINK = LinkSpec(bytes_per_s=100e9, latency_s=5e-6)


def of(figure, meta):
    return [trace for trace in figure.data if trace.meta == meta]


def texts(figure):
    (hovers,) = of(figure, "link")
    return list(hovers.hovertext)


def shares_of(topology, algorithm="ring", operation="all-reduce"):
    return lay_out(operation, algorithm, one_group(topology.ranks), topology).shares()


# Pairs of neighbours: an edge of a ring for each GPU, n (n-1) / 2 of a full mesh, two for each GPU
# of a torus with sides above 2, one for each GPU to its switch, 16 pairs of a DGX-1.
@pytest.mark.parametrize(
    ("name", "ranks", "pairs", "switches"),
    [
        ("ring", 8, 8, 0),
        ("ring", 2, 1, 0),
        ("fully-connected", 8, 28, 0),
        ("torus:4x4", 16, 32, 0),
        ("mesh:2x3", 6, 7, 0),
        ("torus-3d:3x3x3", 27, 81, 0),
        ("switch", 7, 7, 1),
        ("hybrid-cube-mesh", 8, 16, 0),
        ("leaf-spine:8x4", 32, 36, 5),
        ("rail-optimised:4x2", 16, 16 + 16 + 8, 4 + 8 + 1),
        ("seminar-h100", 16, 16 + 2 + 1, 4),
        ("dragonfly:3x2x2", 12, 12 + 3 + 3, 6),
    ],
)
def test_every_node_and_pair_is_drawn(name, ranks, pairs, switches):
    topology = topology_of(name, ranks, LINK)
    figure = network_figure(topology)
    assert len(texts(figure)) == pairs
    (gpus,), (others,) = of(figure, "gpu"), of(figure, "switch")
    assert len(gpus.x) == ranks
    assert len(others.x) == switches
    spots = set(zip((*gpus.x, *others.x), (*gpus.y, *others.y), strict=True))
    assert len(spots) == ranks + switches
    assert sum(list(trace.x).count(None) for trace in of(figure, "line")) == pairs


# A DGX-1 has eight GPUs, and full meshes are for up to 1,024.
MOST = {"hybrid-cube-mesh": 8, "fully-connected": 1024}
SIZES = [
    (name, ranks)
    for name in (*GENERIC, *machine_names())
    for ranks in (1, 8, 64, 65, 1000, 4096)
    if ranks <= MOST.get(name, ranks)
]


@pytest.mark.parametrize(("name", "ranks"), SIZES)
def test_any_size_stays_small(name, ranks):
    topology = topology_of(name, ranks, LINK)
    places = place_network(topology)
    assert places.drawn_ranks <= MAX_DRAWN
    assert places.drawn_ranks == ranks or ranks > (FULL if name == "fully-connected" else MAX_DRAWN)
    assert len(places.at) <= 2 * MAX_DRAWN + 16
    figure = network_figure(topology)
    assert len(figure.to_json()) < 700_000
    assert len(figure.data) < 30
    json.loads(figure.to_json())


def test_free_places_of_a_grid_and_of_a_host_are_told_from_gpus():
    figure = network_figure(topology_of("torus:4x4", 10, LINK), sides=(4, 4))
    (gpus,), (free,) = of(figure, "gpu"), of(figure, "free place")
    assert (len(gpus.x), len(free.x)) == (10, 6)
    assert len(texts(figure)) == 32  # traffic passes free places
    figure = network_figure(topology_of("mi300x", 12))
    (gpus,), (switches,) = of(figure, "gpu"), of(figure, "switch")
    assert len(gpus.x) == 12
    assert list(switches.hovertext) == ["host 0", "host 1", "fabric 0"]


def test_a_large_machine_says_how_many_there_are():
    figure = network_figure(topology_of("seminar-h100", 16_384))
    labels = " ".join(annotation.text for annotation in figure.layout.annotations)
    # Eight GPUs a host, two hosts a rack.
    for name, count in (("GPU", "16,384"), ("NVSwitch", "2,048"), ("top of rack", "1,024")):
        assert f"{name} \u00d7 {count}" in labels
    caption = figure.layout.xaxis.title.text.replace("<br>", " ")
    assert "8 of 16,384 GPUs drawn" in caption
    assert "\u00d7 2,048" in caption


def test_hovers_have_bandwidth_latency_and_load():
    """A flat ring over two hosts: each NVLink carries 2 (n-1)/n of the array, as do two NICs."""
    topology = topology_of("seminar-h100", 16)
    figure = network_figure(topology, shares_of(topology), 1e9)
    (host,) = (text for text in texts(figure) if "GPU 3 to NVSwitch 0" in text)
    assert "450 GB/s, latency 600 ns" in host
    assert "carries 1.88 GB" in host
    # 50 of 450 GB/s: a ninth as long as the NIC.
    assert "busy 11.1 % as long as the busiest link" in host
    (rack,) = (text for text in texts(figure) if "NVSwitch 0 to top of rack 0" in text)
    assert "8 links of 50 GB/s" in rack
    assert "busy 100.0 %" in rack


def test_busier_links_are_darker_and_faster_ones_wider():
    topology = topology_of("leaf-spine:8x4", 32, LINK)
    figure = network_figure(topology, shares_of(topology), 1e9)
    (slow,) = {t.line.width for t in of(figure, "line") if "80\u2013100" in t.name}
    (fast,) = {t.line.width for t in of(figure, "line") if "80\u2013100" not in t.name}
    assert fast > slow  # a leaf's uplinks carry 2 x 100 GB/s, and one ring passes them
    assert "40\u201360 % of the busiest" in [trace.name for trace in of(figure, "line")]


def test_busy_times_are_shares_of_the_busiest():
    topology = topology_of("seminar-h100", 16)
    busy = busy_of(topology, shares_of(topology))
    assert busy.max() == 1.0
    assert set(np.round(busy, 6)) == {0.0, round(1 / 9, 6), 1.0}
    assert not busy_of(topology, np.zeros(len(busy))).any()


def test_a_dead_link_is_drawn_as_dead():
    topology = degrade(topology_of("ring", 4, LINK), {"0-1": 0.0, "2-3": 0.5})
    figure = network_figure(topology, shares_of(topology), 1e9)
    assert [t.name for t in of(figure, "line") if t.line.dash == "dot"] == ["dead"]
    assert any("50 GB/s" in text for text in texts(figure))
    pairs = pairs_of(topology, place_network(topology), None, 0.0)
    assert sorted(pair.bytes_per_s for pair in pairs) == [0, 50e9, 100e9, 100e9]

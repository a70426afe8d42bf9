"""Every machine of the catalogue against what its sources state."""

import csv

import numpy as np
import pytest

from triosim.errors import ConfigError
from triosim.hardware import gpu_names, load_gpu
from triosim.network.collectives.choose import lay_out
from triosim.network.topology.base import one_group
from triosim.network.topology.bisection import bisection_bytes_per_s
from triosim.network.topology.describe import topology_of
from triosim.network.topology.machines import (
    ALL_REDUCE,
    BISECTION,
    MEASURED,
    load_machine,
    machine_names,
    read_machines,
)

MACHINES = [load_machine(name) for name in machine_names()]
FIGURES = [(machine, figure) for machine in MACHINES for figure in machine.stated]
RANKS = (1, 2, 7, 8, 9, 12, 16, 17, 1000, 131072)


def named(value):
    return getattr(value, "name", None) or getattr(value, "quantity", None)


def busy_s(topology, loads):
    return (loads / topology.capacity_bytes_per_s).max()


def ring_loads(topology, order, size):
    order = np.array(order)
    return topology.traffic(order, np.roll(order, -1), np.full(len(order), float(size)))


def bus_bandwidth(topology, rings):
    """Of the best all-reduce over rings or a direct exchange, both without latency, bytes/s.

    Per byte of the array each rank sends 2(n-1)/n: in rings to its neighbours, in an exchange 1/n
    twice to every other rank; the bus bandwidth is that over the time.
    """
    n = topology.ranks
    sent = 2 * (n - 1) / n
    around = sum(ring_loads(topology, ring, sent / len(rings)) for ring in rings)
    direct = topology.exchange(one_group(n), 2 / n)
    return sent / min(busy_s(topology, around), busy_s(topology, direct))


def rings_of(machine, gpus):
    """One ring in rank order; in a hybrid cube mesh six, which use every NVLink both ways once."""
    if machine.name != "dgx-1v":
        return [range(gpus)]
    # NVLinks of a DGX-1V: a ring of double ones and a ring of single ones, as NCCL finds them.
    doubled = (0, 3, 2, 1, 5, 6, 7, 4)
    once = [(0, 1, 3, 7, 5, 4, 6, 2), doubled, doubled]
    return [way for ring in once for way in (ring, ring[::-1])]


def test_the_list_has_a_line_for_each():
    assert all(about.strip() and "\n" not in about for about in machine_names().values())
    assert {"dgx-a100", "dgx-h100", "hgx-h100", "hgx-h200", "dgx-b200", "gb200-nvl72"} <= set(
        machine_names()
    )
    assert {"pcie-8", "mi300x", "dgx-1v", "seminar-h100"} <= set(machine_names())


@pytest.mark.parametrize(("machine", "figure"), FIGURES, ids=named)
def test_bandwidths_are_what_the_source_states(machine, figure):
    topology = topology_of(machine.name, figure.gpus)
    if figure.quantity == BISECTION and machine.name == "dgx-1v":
        # The source counts NVLinks between the halves. Of two ways as short the routes take one,
        # so that not all of them are full at once.
        source, target = topology.ends()
        cut = topology.capacity_bytes_per_s[(source < 4) & (target >= 4) & (target < 8)]
        assert cut.sum() == pytest.approx(figure.bytes_per_s)
        assert bisection_bytes_per_s(topology) == pytest.approx(8 / 9 * figure.bytes_per_s)
    elif figure.quantity == BISECTION:
        assert bisection_bytes_per_s(topology) == pytest.approx(figure.bytes_per_s)
    elif figure.quantity == ALL_REDUCE:
        assert bus_bandwidth(topology, rings_of(machine, figure.gpus)) == pytest.approx(
            figure.bytes_per_s
        )
    else:
        # Nothing measured beats the links: all the array up once in a switch that adds up, a
        # ring's or an exchange's bytes elsewhere.
        n = figure.gpus
        reduces = any(tier.reduces for tier in machine.description.tiers)
        best = 2 * (n - 1) / n if reduces else 1.0
        ideal = bus_bandwidth(topology, rings_of(machine, n))
        assert 0.5 * ideal < figure.bytes_per_s < best * ideal


@pytest.mark.parametrize("machine", MACHINES, ids=named)
def test_every_machine_states_what_it_reaches(machine):
    assert {ALL_REDUCE} <= {figure.quantity for figure in machine.stated}
    assert all(figure.source.strip() for figure in machine.stated)


@pytest.mark.parametrize("machine", MACHINES, ids=named)
def test_every_machine_names_its_gpu_and_its_link(machine):
    assert machine.gpu in gpu_names()
    inside = machine.description.inside
    # Of a hybrid cube mesh and of eight fully connected GPUs the description has single links.
    links = {"dgx-1v": 6, "mi300x": 7}.get(machine.name, 1)
    link = inside.links[0] if inside else machine.description.tiers[0].link
    assert load_gpu(machine.gpu).link_bytes_per_s == links * link.bytes_per_s


def test_measured_figures_are_in_the_collection(shared):
    with open(shared / "published" / "nccl_collectives.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    measured = {
        (int(row["gpus"]), row["busbw_gb_s"])
        for row in rows
        if row["collective"] == "all_reduce" and row["nodes"] == "1"
    }
    figures = [figure for _, figure in FIGURES if figure.quantity == MEASURED]
    assert len(figures) >= 6
    for figure in figures:
        assert (figure.gpus, f"{figure.bytes_per_s / 1e9:.9g}") in {
            (gpus, f"{float(busbw):.9g}") for gpus, busbw in measured if busbw
        }


def test_the_seminar_cluster_puts_two_hosts_on_a_rack():
    hosts, racks = topology_of("seminar-h100", 64).units(np.arange(64))
    assert np.bincount(hosts).tolist() == [8] * 8
    assert np.bincount(racks).tolist() == [16] * 4
    assert any("not stated" in sentence for sentence in load_machine("seminar-h100").assumptions)


def test_the_seminar_question_of_two_hosts():
    # ORACLES, question C3: 1 GB on two hosts of 8, 450 GB/s inside, a 50 GB/s NIC for each GPU.
    topology = topology_of("seminar-h100", 16)
    ms = {
        algorithm: lay_out("all-reduce", algorithm, one_group(16), topology).seconds_per_byte * 1e12
        for algorithm in ("hierarchical", "ring")
    }
    assert ms == pytest.approx({"hierarchical": 6.39, "ring": 37.5}, abs=0.005)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("machine", MACHINES, ids=named)
def test_every_machine_of_any_size(machine, ranks):
    topology = topology_of(machine.name, ranks)
    assert topology.ranks == ranks
    last = np.array([ranks - 1])
    loads = topology.traffic(np.array([0]), last, np.array([8.0]))
    source, target = topology.ends()
    nodes = int(max(source.max(), target.max(), ranks - 1)) + 1
    gained = np.bincount(target, loads, nodes) - np.bincount(source, loads, nodes)
    expected = np.zeros(nodes)
    expected[0] -= 8.0
    expected[last] += 8.0
    np.testing.assert_allclose(gained, expected, atol=1e-9)


def test_machines_are_found_in_whatever_case():
    assert load_machine(" DGX-H100 ").name == "dgx-h100"
    with pytest.raises(ConfigError, match="no such machine; known are dgx-a100, dgx-h100"):
        load_machine("dgx-z9")
    with pytest.raises(ConfigError, match="no such machine"):
        load_machine(None)


ENTRY = {
    "about": "a box",
    "gpu": "h100",
    "gpus_per_host": 8,
    "assumptions": [],
    "topology": {"kind": "switch", "link": {"gb_per_s": 1}},
    "sources": {},
    "stated": [],
}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"price": 1}, r"machines.toml \[box\] price: no such entry"),
        ({"gpu": "z9"}, "gpu z9: no such GPU"),
        ({"like": "nothing"}, r"machines.toml \[box\] like = nothing: must be another entry"),
        ({"stated": [{"quantity": "joy"}]}, "needs quantity"),
        (
            {"topology": {"kind": "tiers", "tiers": [
                {"name": "leaf", "children": 8, "link": {"gb_per_s": 1}}]}},
            "sources of leaf: must say where the number is from",
        ),
    ],
)  # fmt: skip
def test_a_wrong_entry_is_named(changes, sentence):
    assert read_machines({"box": ENTRY})["box"].gpu == "h100-sxm"
    with pytest.raises(ConfigError, match=sentence):
        read_machines({"box": ENTRY | changes})


def test_a_missing_entry_is_named():
    entry = {key: value for key, value in ENTRY.items() if key != "gpu"}
    with pytest.raises(ConfigError, match=r"machines.toml \[box\] gpu: is missing"):
        read_machines({"box": entry})
    assert (
        read_machines({"box": ENTRY, "other": {"like": "box", "gpu": "b200"}})["other"].gpu
        == "b200"
    )

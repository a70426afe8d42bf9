"""Published collectives as rows, and fits of the protocols of triosim.network to them."""

from __future__ import annotations

import csv
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.fitting import minimise, share
from triosim.hardware import load_gpu
from triosim.network.protocol import (
    Calibration,
    Candidate,
    Protocol,
    choose,
    load_calibration,
    switch_candidates,
)

MIB = 2**20
OPERATIONS = {"alltoall": "all-to-all"}
FITTED = ("all-reduce", "all-gather")
PULL = 1e-3  # of the squared way from the start, in units of the loss

# gpu_type of the data: our GPU and calibration.
MACHINES = {
    "V100 (8 NVLink)": ("v100", "nvlink2"),
    "A100 (8 NVSwitch)": ("a100-80gb", "nvlink3"),
    "A100-SXM-80GB": ("a100-80gb", "nvlink3"),
    "H100-SXM-80GB": ("h100-sxm", "nvlink4"),
    "H200-SXM": ("h200", "nvlink4"),
    "B200-SXM": ("b200", "nvlink5"),
    "GB200": ("gb200", "nvlink5"),
}
APART = {
    "H100-SXM-80GB (EFA between nodes)": ("h100-sxm", "nvlink4"),
    "MI300X": ("mi300x", "nvlink"),
    "L40S (PCIe)": ("l40s", "pcie"),
}
# Rings that fit over the NVLinks among the first n GPUs of a box without a switch, each with one
# of the GPU's links: eight V100 in a hybrid cube mesh (six links each; the fifth GPU hangs on one
# other, so five have no ring), and MI300X, each pair of which shares one of seven.
RINGS = {
    "v100": (6, {2: 1, 3: 2, 4: 4, 6: 2, 7: 4, 8: 6}),
    "mi300x": (7, {2: 1, 8: 7}),
}
# Between nodes: the calibration and a GPU's share of its node's network in one direction.
NETWORKS = {
    "H100-SXM-80GB (EFA between nodes)": ("efa", 50e9),  # p5: 3,200 Gb/s for eight GPUs
    "B200-SXM": ("infiniband", 50e9),  # assumed: one port of 400 Gb/s for each GPU
    "A100-class, 4 nodes (hardware not stated)": ("infiniband", 12.5e9),  # assumed from its plateau
}
GPUS_PER_NODE = 8
REDUCING = ("nvlink4", "nvlink5")  # switches add up from NVSwitch 3 on (NVLS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One measurement and what it asks of links of `bytes_per_s`."""

    machine: str
    calibration: str
    operation: str
    ranks: int
    nodes: int
    size_bytes: int
    seconds: float
    bytes_per_s: float
    candidates: tuple[Candidate, ...]

    def predict_s(self, calibration: Calibration) -> float:
        return choose(calibration, self.candidates, self.bytes_per_s).time_s(self.bytes_per_s)

    @property
    def judged(self) -> bool:
        return self.machine in MACHINES and self.nodes == 1

    @property
    def large(self) -> bool:
        return self.size_bytes >= MIB


def bus_factor(operation: str, ranks: int) -> float:
    """busbw / algbw as nccl-tests defines it."""
    return (2 if operation == "all-reduce" else 1) * (ranks - 1) / ranks


def read_rows(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8") as file:
        rows = [_row(line) for line in csv.DictReader(file)]
    return [row for row in rows if row is not None]


def _row(line: dict[str, str]) -> Row | None:
    """A row, or None for five V100, where no ring fits."""
    machine, ranks, nodes = line["gpu_type"], int(line["gpus"]), int(line["nodes"])
    operation = OPERATIONS.get(line["collective"], line["collective"].replace("_", "-"))
    size = int(line["bytes"])
    if line["latency_us"]:
        seconds = float(line["latency_us"]) * 1e-6
    else:
        seconds = size * bus_factor(operation, ranks) / (float(line["busbw_gb_s"]) * 1e9)
    if nodes > 1:
        calibration, bytes_per_s = NETWORKS[machine]
        candidates = network_candidates(operation, nodes, size)
    else:
        gpu, calibration = (MACHINES | APART)[machine]
        bytes_per_s = load_gpu(gpu).link_bytes_per_s
        links, rings = RINGS.get(gpu, (1, {ranks: 1}))
        if ranks not in rings:
            return None
        bytes_per_s *= rings[ranks] / links
        off = line["note"].endswith(("NVLS off", "ring"))
        reduces = calibration in REDUCING and not off
        candidates = switch_candidates(operation, ranks, size, in_network=reduces)
    return Row(
        machine=machine,
        calibration=calibration,
        operation=operation,
        ranks=ranks,
        nodes=nodes,
        size_bytes=size,
        seconds=seconds,
        bytes_per_s=bytes_per_s,
        candidates=candidates,
    )


def network_candidates(operation: str, nodes: int, size_bytes: float) -> tuple[Candidate, ...]:
    """Rings and trees over nodes; every GPU's port carries its part of what leaves the node.

    Steps within a node are left out: they are short beside those between nodes.
    """
    ranks = nodes * GPUS_PER_NODE
    twice = 2 if operation == "all-reduce" else 1
    crossing = bus_factor(operation, ranks) * size_bytes / GPUS_PER_NODE
    ring = Candidate(algorithm="ring", steps=twice * (nodes - 1), link_bytes=crossing)
    if twice == 1:
        return (ring,)
    depth = math.ceil(math.log2(nodes))
    return (
        ring,
        Candidate(algorithm="tree", steps=2 * depth, link_bytes=2 * size_bytes / GPUS_PER_NODE),
    )


# Where the search begins.
START = Calibration(
    name="start",
    protocols=(
        Protocol(name="ll", payload=1 / 2, efficiency=0.5, base_s=6e-6, step_s=1e-6),
        Protocol(name="ll128", payload=120 / 128, efficiency=0.6, base_s=10e-6, step_s=1.5e-6),
        Protocol(name="simple", payload=1.0, efficiency=0.8, base_s=20e-6, step_s=3e-6),
    ),
    in_network=Protocol(name="in_network", payload=1.0, efficiency=0.65, base_s=20e-6, step_s=0.0),
    own_block=0.4,
    sources={},
)


def parameters(calibration: Calibration) -> list[float]:
    """Shares through a logistic, times through an exponential; what is 0 stays out."""
    found = []
    for protocol in parts(calibration):
        found += [math.log(s * 1e6) for s in (protocol.base_s, protocol.step_s) if s]
        found.append(_logit(protocol.efficiency))
    if calibration.own_block:
        found.append(_logit(calibration.own_block))
    return found


def with_parameters(base: Calibration, x: Sequence[float]) -> Calibration:
    """The inverse of `parameters`, on the shape of `base`."""
    values = iter(x)
    fitted = [
        replace(
            protocol,
            base_s=protocol.base_s and math.exp(next(values)) * 1e-6,
            step_s=protocol.step_s and math.exp(next(values)) * 1e-6,
            efficiency=share(next(values)),
        )
        for protocol in parts(base)
    ]
    count = len(base.protocols)
    return replace(
        base,
        protocols=tuple(fitted[:count]),
        in_network=fitted[count] if base.in_network else None,
        own_block=base.own_block and share(next(values)),
    )


def parts(calibration: Calibration) -> list[Protocol]:
    """The protocols, and the in-network one after them."""
    inside = [calibration.in_network] if calibration.in_network else []
    return [*calibration.protocols, *inside]


def _logit(value: float) -> float:
    return math.log(value / (1 - value))


def fit(rows: Sequence[Row], start: Calibration) -> Calibration:
    """The least mean |log(predicted / measured)|: machines weigh the same, rows below 1 MiB half.

    A faint pull towards the start settles what the data leaves open.
    """
    per_machine = Counter(row.machine for row in rows)
    weights = [(1.0 if row.large else 0.5) / per_machine[row.machine] for row in rows]
    total = sum(weights)
    begin = parameters(start)

    def loss(x: Sequence[float]) -> float:
        calibration = with_parameters(start, x)
        errors = sum(
            weight * abs(math.log(row.predict_s(calibration) / row.seconds))
            for weight, row in zip(weights, rows, strict=True)
        )
        return errors / total + PULL * sum((a - b) ** 2 for a, b in zip(x, begin, strict=True))

    # The descent goes one parameter at a time: a second run from where it ended finds a bit more.
    return with_parameters(start, minimise(loss, minimise(loss, begin)))


def fit_links(rows: Iterable[Row], start: Calibration = START) -> Calibration:
    """A fit to the fitted operations; in-network constants only where a row could use them."""
    chosen = [row for row in rows if row.operation in FITTED]
    reduces = any(len(row.candidates) > 1 for row in chosen)
    return fit(chosen, start if reduces else replace(start, in_network=None))


def fit_all(rows: Sequence[Row]) -> dict[str, Calibration]:
    """Every fitted calibration: each NVLink generation starts from the fit to all of them."""
    judged = [row for row in rows if row.judged]
    fits = {"nvlink": fit_links(judged)}
    for name in dict.fromkeys(name for _, name in MACHINES.values()):
        fits[name] = fit_links((r for r in judged if r.calibration == name), fits["nvlink"])
    # Two cards alone: more of that box share something slower than their own links.
    pcie = replace(START, protocols=(START.protocols[0], START.protocols[2]))
    fits["pcie"] = fit_links((r for r in rows if r.calibration == "pcie" and r.ranks == 2), pcie)
    fits["efa"] = fit_efa([r for r in rows if r.calibration == "efa" and r.operation in FITTED])
    return fits


def fit_efa(rows: Sequence[Row]) -> Calibration:
    """One constant: the median efficiency of the rings, after the latencies of the data file.

    All rows have one size, and one network that others used: they cannot tell latency from traffic.
    """
    base = load_calibration("efa")
    (simple,) = base.protocols
    shares = []
    for row in rows:
        ring = row.candidates[0]
        latency_s = simple.base_s + ring.steps * simple.step_s
        shares.append(ring.link_bytes / row.bytes_per_s / (row.seconds - latency_s))
    return replace(base, protocols=(replace(simple, efficiency=statistics.median(shares)),))


def left_out(rows: Sequence[Row], *, generation: bool) -> dict[str, Calibration]:
    """For each machine constants that have not seen it, nor its generation where `generation`.

    Other machines of its generation speak for it. Where there are none, all other NVLink machines
    do.
    """
    found = {}
    for machine, (_, own) in MACHINES.items():
        others = [row for row in rows if row.judged and row.machine != machine]
        alike = [] if generation else [row for row in others if row.calibration == own]
        found[machine] = fit_links(alike or [row for row in others if row.calibration != own])
    return found

"""The network of a scenario: TrioSim's ring, chain or circuits, or a topology."""

from __future__ import annotations

from triosim.network.closed_forms import bus_factor
from triosim.network.cluster import Cluster
from triosim.network.collectives.planned import AUTO
from triosim.network.interconnect import Interconnect, Network, Wire, chain, ring
from triosim.network.mesh import Mesh
from triosim.network.optical import CircuitSwitch, ring_order
from triosim.network.topology.base import LinkSpec, Topology
from triosim.network.topology.describe import natural_topology, topology_of
from triosim.network.topology.faults import degrade
from triosim.network.topology.machines import machine_names
from triosim.scenario import Scenario

GB = 1e9
RING = "ring"
# How much longer a GPU computes while its collectives run beside: 18.9 % on average, 0 to 40 %, for
# training on A100, H100, MI210 and MI250 (Lee et al. 2025, arXiv 2507.03114); DeepSeek-V3 gives
# communication 20 of 132 SMs, 132/112 = 1.18 (arXiv 2412.19437).
MEASURED_SLOWDOWN = 0.18


def network_of(scenario: Scenario) -> Network:
    """What the parallelism of a scenario asks; GPUs that train alone need no links."""
    wire = wire_of(scenario)
    if scenario.case == 0:
        return Interconnect(wire, [], scenario.gpus)
    if scenario.on_topology:
        return Cluster(
            topology_with_faults(scenario),
            algorithm=_algorithm(scenario),
            protocol=scenario.protocol,
            fold=scenario.fold,
        )
    places = ring_order(*scenario.mesh) if wire.optical else None
    if scenario.case == 4:
        return chain(wire, scenario.gpus, places)
    return ring(wire, scenario.gpus, places, folded=scenario.fold)


def topology_with_faults(scenario: Scenario) -> Topology:
    """The topology of a scenario that is on one, less what is dead or degraded."""
    return degrade(whole_topology(scenario), scenario.faults)


def whole_topology(scenario: Scenario) -> Topology:
    """The chosen topology; else a pipeline's chain, or the links the algorithm is made for."""
    wire = wire_of(scenario)
    link = LinkSpec(bytes_per_s=wire.bytes_per_s, latency_s=wire.latency_s)
    if scenario.topology is not None:
        return topology_of(scenario.topology, scenario.gpus, link)
    if scenario.case == 4:
        return topology_of(f"mesh:{scenario.gpus}", scenario.gpus, link)
    return natural_topology(_algorithm(scenario), scenario.gpus, link)


def _algorithm(scenario: Scenario) -> str:
    return scenario.algorithm or (AUTO if scenario.topology is not None else RING)


def wire_of(scenario: Scenario) -> Wire:
    """The link technology, as one link of the layout sees it."""
    if scenario.interconnect == "optical":
        return Wire(
            bytes_per_s=scenario.optical_gb_per_s * GB,
            latency_s=scenario.hop_latency_ns * 1e-9,
            circuit_setup_s=scenario.circuit_setup_ms * 1e-3,
        )
    bytes_per_s = scenario.ptp_bandwidth_gb_per_s * GB
    in_ring = scenario.case in (1, 2, 3) and scenario.gpus > 1 and scenario.topology is None
    if scenario.ptp_convention == "algbw" and in_ring and scenario.algorithm in (None, RING):
        # The flag gives S/t of an all-reduce; the ring's links must be that much faster.
        bytes_per_s *= bus_factor(scenario.gpus)
    return Wire(bytes_per_s=bytes_per_s, latency_s=scenario.latency_us * 1e-6)


def circuits_of(scenario: Scenario, network: Network) -> CircuitSwitch | None:
    """Where nothing takes time and nothing is scarce, every circuit stands before the step."""
    if not isinstance(network, Interconnect) or network.wire.circuit_setup_s is None:
        return None
    setup_s, teardown_s = network.wire.circuit_setup_s, scenario.circuit_teardown_ms * 1e-3
    if not (setup_s or teardown_s or scenario.wavelengths):
        return None
    rows, cols = scenario.mesh
    mesh = Mesh(rows=rows, cols=cols, wavelengths=scenario.wavelengths)
    return CircuitSwitch(setup_s, teardown_s=teardown_s, mesh=mesh)


def overlap_slowdown(scenario: Scenario) -> float:
    """As chosen; else what was measured on real machines, and none on networks without a name."""
    if scenario.overlap_slowdown is not None:
        return scenario.overlap_slowdown
    name = scenario.topology
    named = isinstance(name, str) and name.casefold() in machine_names()
    on_machine = scenario.on_topology and named
    return MEASURED_SLOWDOWN if on_machine else 0.0

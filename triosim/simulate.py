"""Scenario in, result out: trace -> scale -> parallelise -> execute -> timeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from triosim.analysis.checks import run_checks
from triosim.engine.executor import execute
from triosim.engine.program import Program
from triosim.engine.timeline import Timeline
from triosim.errors import ConfigError, Infeasible
from triosim.jitter import (
    MAX_SPEEDS,
    Floats,
    StepTimes,
    draw_speeds,
    on_curve,
    slowest_factors,
)
from triosim.network.closed_forms import bus_factor
from triosim.network.cluster import Cluster
from triosim.network.collectives.planned import AUTO
from triosim.network.interconnect import Interconnect, Network, Wire, chain, ring
from triosim.network.mesh import Mesh
from triosim.network.optical import CircuitSwitch, ring_order
from triosim.network.topology.base import LinkSpec
from triosim.network.topology.describe import natural_topology, topology_of
from triosim.network.topology.faults import degrade
from triosim.network.topology.machines import machine_names
from triosim.notes import assumptions_for, warnings_about_peak, warnings_for
from triosim.parallel.data import Bucket, fill_buckets, one_bucket, write_data_parallel
from triosim.parallel.pipeline import write_pipeline
from triosim.parallel.plan import Plan
from triosim.parallel.tensor import write_tensor_parallel
from triosim.result import Result
from triosim.scenario import Scenario
from triosim.size import check_size
from triosim.trace import Trace, load_trace, on_gpu

GB = 1e9
# How much longer a GPU computes while its collectives run beside: 18.9 % on average, 0 to 40 %, for
# training on A100, H100, MI210 and MI250 (Lee et al. 2025, arXiv 2507.03114); DeepSeek-V3 gives
# communication 20 of 132 SMs, 132/112 = 1.18 (arXiv 2412.19437).
MEASURED_SLOWDOWN = 0.18
PIPELINE_DRAWS = 48


def simulate(scenario: Scenario) -> Result:
    """Simulate one training step.

    Raises `ConfigError`, `TraceFormatError` or `Infeasible`: all of them `TrioSimError`.
    """
    trace = load_trace(scenario.trace_dir)
    plan = make_plan(scenario, trace)
    timeline = run(scenario, plan)
    result = Result(
        scenario=scenario,
        tasks=timeline,
        single_gpu_s=_single_gpu_s(scenario, trace, timeline),
        samples=samples_per_step(scenario, plan),
        step_times=step_times(scenario, plan),
        warnings=warnings_for(scenario, plan, timeline),
        assumptions=assumptions_for(scenario, timeline),
    )
    return result.noting(
        checks=run_checks(result, plan),
        warnings=warnings_about_peak(scenario, result.peak_memory_bytes),
    )


def make_plan(scenario: Scenario, trace: Trace) -> Plan:
    """The scenario with everything it leaves open filled in from the trace."""
    if scenario.batch_size is not None and scenario.batch_size != trace.batch_size:
        trace = trace.at_batch(scenario.batch_size)
    trace = on_gpu(trace, scenario.gpu, scenario.trace_gpu)
    check_size(scenario, trace)
    return Plan(
        trace=trace,
        gpus=scenario.gpus,
        batch_sizes=_batch_sizes(scenario, trace.batch_size),
        wire=_wire(scenario),
        remote_bytes_per_s=scenario.bandwidth_gb_per_s * GB,
        capacity_bytes=2**scenario.capacity_log2,
        resident=scenario.resident,
        bucket_bytes=scenario.bucket_mb * 2**20,
        schedule=scenario.schedule,
        stage_cut=scenario.stage_cut,
        speeds=_speeds(scenario, scenario.speeds, scenario.seed),
        fold=scenario.fold,
    )


def run(scenario: Scenario, plan: Plan) -> Timeline:
    """Write the program of the scenario's case and execute it."""
    network = _network(scenario, plan)
    program = Program(links=list(network.links), overlap_slowdown=overlap_slowdown(scenario))
    if scenario.case == 4:
        write_pipeline(plan, program, network)
    elif scenario.case == 3:
        write_tensor_parallel(plan, program, network)
    else:
        write_data_parallel(plan, program, network, _buckets(scenario, plan))
    if isinstance(network, Cluster):
        links, program.loads = network.settle(program.loads, len(program.links))
        program.links += links
    return execute(program, _circuits(scenario, network))


def _network(scenario: Scenario, plan: Plan) -> Network:
    """GPUs that train alone need no links."""
    if scenario.case == 0:
        return Interconnect(plan.wire, [], plan.gpus)
    if scenario.on_topology:
        return _cluster(scenario, plan)
    places = ring_order(*scenario.mesh) if plan.wire.optical else None
    if scenario.case == 4:
        return chain(plan.wire, plan.gpus, places)
    return ring(plan.wire, plan.gpus, places, folded=plan.fold)


def _cluster(scenario: Scenario, plan: Plan) -> Cluster:
    """The chosen topology; else a pipeline's chain, or the links the algorithm is made for."""
    link = LinkSpec(bytes_per_s=plan.wire.bytes_per_s, latency_s=plan.wire.latency_s)
    algorithm = scenario.algorithm or (AUTO if scenario.topology is not None else "ring")
    if scenario.topology is not None:
        topology = topology_of(scenario.topology, plan.gpus, link)
    elif scenario.case == 4:
        topology = topology_of(f"mesh:{plan.gpus}", plan.gpus, link)
    else:
        topology = natural_topology(algorithm, plan.gpus, link)
    return Cluster(
        degrade(topology, scenario.faults),
        algorithm=algorithm,
        protocol=scenario.protocol,
        fold=plan.fold,
    )


def overlap_slowdown(scenario: Scenario) -> float:
    """As chosen; else what was measured on real machines, and none on networks without a name."""
    if scenario.overlap_slowdown is not None:
        return scenario.overlap_slowdown
    name = scenario.topology
    named = isinstance(name, str) and name.casefold() in machine_names()
    on_machine = scenario.on_topology and named
    return MEASURED_SLOWDOWN if on_machine else 0.0


def step_times(scenario: Scenario, plan: Plan) -> StepTimes | None:
    """How the step's time is distributed over many steps; None where every step is the same."""
    slow = scenario.speeds
    now_and_then = bool(slow) and scenario.slow_every > 1
    if scenario.jitter == 0 and not now_and_then:
        return None
    draw = _pipeline_draws if scenario.case == 4 else _draws
    if not now_and_then:
        return StepTimes.of(draw(scenario, plan, slow))
    return StepTimes.of(
        draw(scenario, plan, slow), draw(scenario, plan, {}), slow_every=scenario.slow_every
    )


def _draws(scenario: Scenario, plan: Plan, slow: Mapping[int, float]) -> Floats:
    """Step times of the cases in which the slowest rank decides."""

    def step_s(factor: float) -> float:
        # All ranks as slow as the slowest: the others only wait for it.
        speeds = dict.fromkeys(range(plan.gpus), 1 / factor)
        return run(scenario, replace(plan, speeds=speeds, fold=True)).total_s

    return on_curve(slowest_factors(plan.gpus, slow, scenario.jitter, scenario.seed), step_s)


def _pipeline_draws(scenario: Scenario, plan: Plan, slow: Mapping[int, float]) -> Floats:
    """Step times of pipelines, one simulation each; a single one where nothing is random."""
    draws = PIPELINE_DRAWS if scenario.jitter else 1
    each = (_speeds(scenario, slow, (scenario.seed, step)) for step in range(draws))
    return np.array([run(scenario, replace(plan, speeds=speeds)).total_s for speeds in each])


def _speeds(
    scenario: Scenario, slow: Mapping[int, float], seed: int | tuple[int, int]
) -> dict[int, float]:
    """The ranks that are not at full speed in one step."""
    # The stages of a pipeline are classes of their own anyway.
    most = scenario.gpus if scenario.case == 4 else MAX_SPEEDS
    return draw_speeds(scenario.gpus, slow, scenario.jitter, seed, most)


def samples_per_step(scenario: Scenario, plan: Plan) -> int:
    """Cases 0 to 2: every GPU runs its own batches. Cases 3 and 4: all GPUs share one batch."""
    batch = sum(plan.batch_sizes)
    return batch * plan.gpus if scenario.case <= 2 else batch


def _buckets(scenario: Scenario, plan: Plan) -> list[Bucket]:
    if scenario.case == 1:
        return one_bucket(plan.trace)
    return fill_buckets(plan.trace, plan.bucket_bytes) if scenario.case == 2 else []


def _batch_sizes(scenario: Scenario, own: int) -> tuple[int, ...]:
    """What runs one after the other: accumulated batches, or a batch's micro-batches."""
    batch = scenario.batch_size_sim or own
    if scenario.case in (1, 2):
        return (batch,) * scenario.accumulate
    if scenario.case != 4 or scenario.micro_batch_size is None:
        return (batch,)
    if scenario.micro_batch_size > batch:
        raise ConfigError(
            "micro_batch_size",
            scenario.micro_batch_size,
            f"must be at most the simulated batch, {batch}",
        )
    whole, rest = divmod(batch, scenario.micro_batch_size)
    return (scenario.micro_batch_size,) * whole + ((rest,) if rest else ())


def _wire(scenario: Scenario) -> Wire:
    if scenario.interconnect == "optical":
        return Wire(
            bytes_per_s=scenario.optical_gb_per_s * GB,
            latency_s=scenario.hop_latency_ns * 1e-9,
            circuit_setup_s=scenario.circuit_setup_ms * 1e-3,
        )
    bytes_per_s = scenario.ptp_bandwidth_gb_per_s * GB
    in_ring = scenario.case in (1, 2, 3) and scenario.gpus > 1 and scenario.topology is None
    if scenario.ptp_convention == "algbw" and in_ring and scenario.algorithm in (None, "ring"):
        # The flag gives S/t of an all-reduce; the ring's links must be that much faster.
        bytes_per_s *= bus_factor(scenario.gpus)
    return Wire(bytes_per_s=bytes_per_s, latency_s=scenario.latency_us * 1e-6)


def _circuits(scenario: Scenario, network: Network) -> CircuitSwitch | None:
    """Where nothing takes time and nothing is scarce, every circuit stands before the step."""
    if not isinstance(network, Interconnect) or network.wire.circuit_setup_s is None:
        return None
    setup_s, teardown_s = network.wire.circuit_setup_s, scenario.circuit_teardown_ms * 1e-3
    if not (setup_s or teardown_s or scenario.wavelengths):
        return None
    rows, cols = scenario.mesh
    mesh = Mesh(rows=rows, cols=cols, wavelengths=scenario.wavelengths)
    return CircuitSwitch(setup_s, teardown_s=teardown_s, mesh=mesh)


def _single_gpu_s(scenario: Scenario, trace: Trace, timeline: Timeline) -> float | None:
    """The step on one GPU; None where it does not fit there."""
    if (
        not scenario.rank_speed
        and not scenario.jitter
        and (scenario.gpus == 1 or scenario.case == 0)
    ):
        return timeline.total_s
    return _step_on_one_gpu_s(scenario.on_one_gpu(), trace)


@lru_cache(maxsize=256)
def _step_on_one_gpu_s(scenario: Scenario, trace: Trace) -> float | None:
    try:
        return run(scenario, make_plan(scenario, trace)).total_s
    except Infeasible:
        return None

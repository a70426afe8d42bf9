"""Scenario in, result out: trace -> scale -> parallelise -> execute -> timeline."""

from __future__ import annotations

from functools import lru_cache

from triosim.analysis.checks import run_checks
from triosim.engine.executor import execute
from triosim.engine.program import MAX_TASKS, Program
from triosim.engine.timeline import Timeline
from triosim.errors import ConfigError, Infeasible
from triosim.network.closed_forms import bus_factor
from triosim.network.interconnect import Interconnect, Wire, chain, ring
from triosim.network.optical import CircuitSwitch
from triosim.notes import warnings_about_peak, warnings_for
from triosim.parallel.data import Bucket, fill_buckets, one_bucket, write_data_parallel
from triosim.parallel.pipeline import write_pipeline
from triosim.parallel.plan import Plan
from triosim.parallel.tensor import write_tensor_parallel
from triosim.result import Result
from triosim.scenario import Scenario
from triosim.trace import Trace, load_trace, on_gpu

GB = 1e9


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
        warnings=warnings_for(scenario, plan, timeline),
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
        speeds=scenario.speeds,
        fold=scenario.fold,
    )


def run(scenario: Scenario, plan: Plan) -> Timeline:
    """Write the program of the scenario's case and execute it."""
    network = _network(scenario, plan)
    program = Program(links=list(network.links))
    if scenario.case == 4:
        write_pipeline(plan, program, network)
    elif scenario.case == 3:
        write_tensor_parallel(plan, program, network)
    else:
        write_data_parallel(plan, program, network, _buckets(scenario, plan))
    return execute(program, _circuits(network))


def _network(scenario: Scenario, plan: Plan) -> Interconnect:
    """GPUs that train alone need no links."""
    if scenario.case == 0:
        return Interconnect(plan.wire, [], plan.gpus)
    if scenario.case == 4:
        return chain(plan.wire, plan.gpus)
    return ring(plan.wire, plan.gpus, folded=plan.fold)


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
    if whole * scenario.gpus > MAX_TASKS:
        raise Infeasible(
            f"{whole:,} micro-batches on {scenario.gpus:,} stages need more than {MAX_TASKS:,} "
            "tasks; use larger micro-batches."
        )
    return (scenario.micro_batch_size,) * whole + ((rest,) if rest else ())


def _wire(scenario: Scenario) -> Wire:
    if scenario.interconnect == "optical":
        return Wire(
            bytes_per_s=scenario.optical_gb_per_s * GB,
            latency_s=scenario.hop_latency_ns * 1e-9,
            circuit_setup_s=scenario.circuit_setup_ms * 1e-3,
        )
    bytes_per_s = scenario.ptp_bandwidth_gb_per_s * GB
    if scenario.ptp_convention == "algbw" and scenario.case in (1, 2, 3) and scenario.gpus > 1:
        # The flag gives S/t of an all-reduce; the ring's links must be that much faster.
        bytes_per_s *= bus_factor(scenario.gpus)
    return Wire(bytes_per_s=bytes_per_s, latency_s=scenario.latency_us * 1e-6)


def _circuits(network: Interconnect) -> CircuitSwitch | None:
    """Set-up time 0 means that every circuit of the layout stands before the step begins."""
    setup_s = network.wire.circuit_setup_s
    return None if not setup_s else CircuitSwitch(setup_s)


def _single_gpu_s(scenario: Scenario, trace: Trace, timeline: Timeline) -> float | None:
    """The step on one GPU; None where it does not fit there."""
    if not scenario.rank_speed and (scenario.gpus == 1 or scenario.case == 0):
        return timeline.total_s
    return _step_on_one_gpu_s(scenario.on_one_gpu(), trace)


@lru_cache(maxsize=256)
def _step_on_one_gpu_s(scenario: Scenario, trace: Trace) -> float | None:
    try:
        return run(scenario, make_plan(scenario, trace)).total_s
    except Infeasible:
        return None

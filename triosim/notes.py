"""What a reader of a result should know: warnings about this run, and standing assumptions."""

from __future__ import annotations

from triosim.engine.timeline import Timeline
from triosim.errors import counted
from triosim.hardware import load_gpu
from triosim.network.cluster import Carried
from triosim.network.topology.machines import load_machine, machine_names
from triosim.parallel.plan import Plan
from triosim.scenario import Scenario
from triosim.trace.memory import Origin, find_memory
from triosim.trace.parameters import find_parameters

ASSUMPTIONS = (
    "Operators run one after the other at the times in the trace; forward and backward times and "
    "activations scale with the batch, the optimizer, parameters, gradients and state do not.",
    "At another batch or on another GPU an operator takes its time in the trace x the roofline's "
    "prediction there / its prediction for the trace. Where the trace's GPU or the operator's "
    "shapes are unknown, times grow in proportion to the batch.",
    "The roofline takes a float32 trace's convolutions to run in TF32 and its matrix products in "
    "float32, on tensors that lie channel by channel (NCHW): PyTorch's defaults.",
    "An operator waits for its inputs. What exists before the step comes from remote memory in the "
    "order of first use, each GPU over its own link, unless it is resident.",
    "Memory is given out when a tensor is made or fetched and taken back after its last use; when "
    "it is full, the tensor needed last is evicted, and stored first if only this GPU has it.",
    "Distributed data parallel fills buckets in the order in which gradients are ready, later "
    "parameters first among equals; the optimizer waits for the last bucket.",
    "Tensor parallel is TrioSim's definition: a flagged operator takes 1/n of its time, then 1/n "
    "of its output is all-reduced. Its parameters are held to 1/n.",
    "A pipeline stage sends a micro-batch's tensors over a cut in one transfer when its last "
    "operator has ended. Stages are cut for GPUs of equal speed.",
    "An optical circuit is one hop however many mesh links it passes; it takes one wavelength on "
    "each, along the row first, and a busy circuit is never torn down.",
    "On a topology a collective is its algorithm's phases; each waits out its latency, then shares "
    "its links max-min fairly with all that is in flight.",
    "A machine's links have the protocol costs measured on such links, unless these are left out; "
    "generic topologies have ideal links.",
    "What a dead link carried takes the best way that is left, everything else its usual one.",
    "Computing takes longer while its GPU communicates with others: by the slow-down given, else "
    "by 18 % on a machine known by name and by nothing elsewhere. Fetches slow nothing down.",
    "Jitter is a factor on each GPU's computing time in a step: log-normal, mean 1, independent "
    "from GPU to GPU and from step to step.",
)
NOT_MODELLED = (
    "Kernel launch on the CPU, host work and data loading.",
    "Writing updated parameters back to remote memory after the step.",
    "Memory fragmentation, workspaces and communication buffers.",
    "Kernels that get less efficient on smaller shards, and on smaller batches where the trace's "
    "GPU is unknown: times scale in proportion.",
)


def assumptions_for(scenario: Scenario, timeline: Timeline) -> tuple[str, ...]:
    """What this run takes for granted about its network and its steps, beside `ASSUMPTIONS`."""
    found: list[str] = []
    name = scenario.topology
    if scenario.on_topology and isinstance(name, str) and name.casefold() in machine_names():
        found += load_machine(name.casefold()).assumptions
    program = timeline.program
    if program.overlap_slowdown and scenario.gpus > 1 and scenario.case != 0:
        found.append(
            f"Computing takes {1 + program.overlap_slowdown:g} times as long beside communication."
        )
    carried = [load for load in program.loads if isinstance(load, Carried)]
    protocols = dict.fromkeys(load.protocol for load in carried if load.protocol is not None)
    if protocols:
        found.append(
            f"Links cost what {' and '.join(protocols)} {'was' if len(protocols) == 1 else 'were'} "
            "measured to cost on such machines."
        )
    found += _about_faults(scenario)
    if scenario.speeds and scenario.slow_every > 1:
        found.append(
            f"The step shown is the one in {scenario.slow_every:,} in which slow GPUs are slow."
        )
    if scenario.jitter:
        found.append("The step shown is one of many: computing times vary from step to step.")
    return tuple(found)


def _about_faults(scenario: Scenario) -> list[str]:
    """Where traffic goes that meets a link which is not whole."""
    if not scenario.on_topology:
        return []
    found = []
    if any(scenario.faults.values()):
        found.append(
            "A link with a share of its bandwidth left keeps all of its traffic, as communication "
            "libraries do not rebalance; only that of a dead one takes another way, so that a "
            "nearly dead link can be slower than a dead one."
        )
    rings = scenario.algorithm in (None, "ring") and scenario.case != 4
    if rings and scenario.topology is None and 0.0 in scenario.faults.values():
        found.append(
            "Neighbours of TrioSim's ring are joined in both directions: what a dead link carried "
            "goes the other way round, over links that the ring leaves idle."
        )
    return found


def warnings_for(scenario: Scenario, plan: Plan, timeline: Timeline) -> tuple[str, ...]:
    """One sentence per thing that this run leaves unused or had to assume."""
    found = [*plan.trace.warnings, *_unused(scenario), *_unused_network(scenario)]
    found += [*_unused_variation(scenario), *_gradients(scenario, plan)]
    found += _memory(scenario, plan, timeline)
    return tuple(found)


def warnings_about_peak(scenario: Scenario, peak_bytes: int) -> tuple[str, ...]:
    """Whether a chosen GPU type has the memory that the step needs."""
    if scenario.gpu is None or peak_bytes <= load_gpu(scenario.gpu).memory_bytes:
        return ()
    return (
        f"The step needs {peak_bytes:,} bytes and {scenario.gpu} has "
        f"{load_gpu(scenario.gpu).memory_bytes:,}; the capacity of 2^{scenario.capacity_log2} "
        "bytes does not hold it to that.",
    )


def _unused(scenario: Scenario) -> list[str]:
    default = Scenario()
    found = []
    if scenario.interconnect == "optical" and (
        scenario.ptp_bandwidth_gb_per_s != default.ptp_bandwidth_gb_per_s
    ):
        found.append(
            f"The GPU to GPU bandwidth of {scenario.ptp_bandwidth_gb_per_s:g} GB/s is unused: the "
            f"optical interconnect has {scenario.optical_gb_per_s:g} GB/s per circuit."
        )
    if scenario.case != 4 and scenario.micro_batch_size is not None:
        found.append(
            f"The micro-batch of {scenario.micro_batch_size} is unused: only case 4 has "
            "micro-batches."
        )
    if scenario.case not in (1, 2) and scenario.accumulate > 1:
        found.append(
            f"Accumulating over {scenario.accumulate} batches is unused: only cases 1 and 2 do it."
        )
    return found


def _unused_network(scenario: Scenario) -> list[str]:
    """Settings of links that this scenario does not have."""
    default, found = Scenario(), []
    optical = scenario.interconnect == "optical"
    why = "GPUs that train alone have no links" if scenario.case == 0 else ""
    if optical and not why:
        why = "the optical interconnect has circuits of its own"
    if scenario.topology is not None and why:
        found.append(f"The topology {scenario.topology_name} is unused: {why}.")
    if scenario.dead_links and why:
        found.append(f"The dead links {', '.join(scenario.dead_links)} are unused: {why}.")
    if scenario.algorithm is not None and (why or scenario.case == 4):
        reason = why or "a pipeline has no all-reduces"
        found.append(f"The algorithm {scenario.algorithm} is unused: {reason}.")
    if scenario.overlap_slowdown and scenario.case == 0:
        found.append(f"The slow-down of {scenario.overlap_slowdown:g} is unused: {why}.")
    own = scenario.on_topology and scenario.topology is not None and not scenario.generic_topology
    owner = "the optical interconnect" if optical else str(scenario.topology_name)
    if own and scenario.ptp_bandwidth_gb_per_s != default.ptp_bandwidth_gb_per_s:
        found.append(
            f"The GPU to GPU bandwidth of {scenario.ptp_bandwidth_gb_per_s:g} GB/s is unused: "
            f"{owner} has links of its own."
        )
    if (own or optical) and scenario.latency_us:
        found.append(
            f"The latency of {scenario.latency_us:g} us is unused: {owner} has links of its own."
        )
    circuits = {
        "wavelengths": scenario.wavelengths,
        "circuit set-up time": scenario.circuit_setup_ms,
        "circuit tear-down time": scenario.circuit_teardown_ms,
    }
    if not optical:
        found += [
            f"The {name} of {value:g} is unused: only the optical interconnect has circuits."
            if name != "wavelengths"
            else f"The {value:,} wavelengths are unused: only the optical interconnect has them."
            for name, value in circuits.items()
            if value
        ]
    return found


def _unused_variation(scenario: Scenario) -> list[str]:
    found = []
    if scenario.seed and not scenario.jitter:
        found.append(f"The seed {scenario.seed} is unused: nothing varies without jitter.")
    if scenario.slow_every > 1 and not scenario.speeds:
        found.append(
            f"One slow step in {scenario.slow_every:,} is unused: no GPU has a speed of its own."
        )
    return found


def _gradients(scenario: Scenario, plan: Plan) -> list[str]:
    if scenario.case not in (1, 2):
        return []
    parameters = find_parameters(plan.trace)
    if not parameters.tensors:
        return ["The trace trains no parameters, so there are no gradients to all-reduce."]
    if scenario.case == 2 and parameters.unresolved:
        size = sum(parameters.tensors[p].bytes for p in parameters.unresolved)
        return [
            f"The trace does not show when {len(parameters.unresolved):,} of "
            f"{counted(len(parameters.tensors), 'gradient')} ({size:,} bytes) can be reduced: at "
            "the end of backward."
        ]
    return []


def _memory(scenario: Scenario, plan: Plan, timeline: Timeline) -> list[str]:
    found = []
    program = timeline.program
    again = sum(
        phase == "fetch" and name.endswith(" again")
        for phase, name in zip(program.phase, program.name, strict=True)
    )
    stored = program.phase.count("store")
    if again or stored:
        found.append(
            f"Memory of 2^{scenario.capacity_log2} bytes is too small to keep everything: "
            f"{counted(stored, 'tensor')} stored to remote memory, {again:,} fetched again."
        )
    gradients = find_parameters(plan.trace).gradient_ids
    unnamed = [
        b
        for b in find_memory(plan.trace).buffers
        if b.origin is Origin.EXISTING and any(t.id in gradients for t in b.tensors)
    ]
    if unnamed and not scenario.resident:
        size = sum(b.bytes for b in unnamed)
        found.append(
            f"The optimizer reads {counted(len(unnamed), 'gradient')} ({size:,} bytes) that no "
            "backward operator of the trace names; fetched like state that exists before the step."
        )
    return found

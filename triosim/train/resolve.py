"""From a scenario to a plan: what it leaves open is filled in, what cannot be is refused."""

from __future__ import annotations

from collections.abc import Mapping

from triosim.errors import ConfigError, counted
from triosim.hardware import Gpu, load_gpu
from triosim.mesh import expert_mesh, training_mesh
from triosim.mesh.device_mesh import nearest
from triosim.network.topology.base import LinkSpec, Topology
from triosim.network.topology.describe import Description, topology_of
from triosim.network.topology.machines import load_machine, machine_names
from triosim.schedules import Schedule, make_schedule, read_grid
from triosim.trace import Trace, load_trace
from triosim.trace.scale import known_gpu, on_gpu
from triosim.train.layers import check_traced, find_layers
from triosim.train.plan import Plan, Unit
from triosim.train.scenario import TrainScenario
from triosim.workload import Layout, Transformer, parts_of


def make_plan(scenario: TrainScenario) -> Plan:
    """Fill in what the scenario leaves open; `ConfigError` names the nearest legal values."""
    gpu = load_gpu(scenario.gpu)
    trace = None if scenario.trace_dir is None else _read_trace(scenario, gpu)
    model = scenario.transformer() if trace is None else _stand_in(trace)
    seq = scenario.sequence if trace is None else model.seq_len
    stack = scenario.made_stack()
    mesh = training_mesh(scenario.gpus, **{axis: getattr(scenario, axis) for axis in _SIZES})
    sizes = {axis: mesh.axis_size(axis) for axis in _SIZES} | {"ep": scenario.ep}
    expert_mesh(mesh, scenario.ep)
    zero = _zero(scenario, sizes)
    microbatches, global_batch = _batches(scenario, sizes)
    schedule = _schedule(scenario, sizes, microbatches, global_batch)
    _check_parts(scenario, model, schedule)
    layout = Layout(
        tp=sizes["tp"],
        cp=sizes["cp"],
        ep=sizes["ep"],
        sequence_parallel=scenario.sequence_parallel and sizes["tp"] > 1,
        keep_gathered=stack.keep_gathered,
        loss_parallel=scenario.loss_parallel and sizes["tp"] > 1,
    )
    if trace is None:
        layout.check(model, seq)
    else:
        check_traced(scenario, trace, any(schedule.split))
    _check_async(scenario, sizes)
    if scenario.prefill and scenario.offload:
        problem = "prefill keeps nothing for a backward pass that could wait in the host's memory"
        raise ConfigError("offload", True, problem)
    if scenario.expert_skew > max(1, sizes["ep"]):
        raise ConfigError(
            "expert_skew",
            scenario.expert_skew,
            f"must be at most ep, {sizes['ep']}: then one rank has all tokens",
        )
    _check_context(scenario, model, sizes)
    machine = scenario.machine or machine_for(gpu)
    plan = Plan(
        scenario=scenario,
        model=model,
        gpu=gpu,
        stack=stack,
        machine=machine if isinstance(machine, str) else f"a described network ({machine.kind})",
        topology=_topology(machine, scenario.gpus, gpu),
        mesh=mesh,
        sizes=sizes,
        zero=zero,
        microbatches=microbatches,
        global_batch=global_batch,
        schedule=schedule,
        virtual_stages=_cut(model, schedule, scenario.prefill),
        layout=layout,
        seq=seq,
        trace=trace,
    )
    if scenario.graph_breaks is not None and not plan.fused:
        problem = (
            "needs layers that torch.compile fuses: compile is off, or nothing is left to fuse"
        )
        raise ConfigError("graph_breaks", scenario.graph_breaks, problem)
    return plan


def _read_trace(scenario: TrainScenario, gpu: Gpu) -> Trace:
    """The trace, with its times on the scenario's GPU where it says which one it is from."""
    trace = load_trace(str(scenario.trace_dir))
    return trace if known_gpu(trace) is None else on_gpu(trace, gpu.name)


def _stand_in(trace: Trace) -> Transformer:
    """A name and a number of layers; everything else is the trace's."""
    seq = trace.meta.get("seq_len")
    return Transformer(
        name=trace.name,
        layers=find_layers(trace).count,
        seq_len=seq if isinstance(seq, int) and seq > 0 else 1,
        hidden=1,
        heads=1,
        ffn=1,
        vocab=1,
    )


_SIZES = ("dp_replicate", "dp_shard", "cp", "tp", "pp")


def machine_for(gpu: Gpu) -> str:
    """The first machine with that GPU, else one of its generation and link speed, else PCIe."""
    machines = {name: load_gpu(load_machine(name).gpu) for name in machine_names()}
    for alike in (
        lambda other: other.name == gpu.name,
        lambda other: (
            (other.generation, other.link_bytes_per_s) == (gpu.generation, gpu.link_bytes_per_s)
        ),
    ):
        for name, other in machines.items():
            if alike(other):
                return name
    return "pcie-8"


def _zero(scenario: TrainScenario, sizes: Mapping[str, int]) -> int:
    """Context-parallel ranks share parameters as well, so that they count here."""
    shards = sizes["dp_shard"] * sizes["cp"]
    if scenario.zero is None:
        return 3 if shards > 1 and not scenario.prefill else 0
    if scenario.zero and shards == 1:
        raise ConfigError(
            "zero", scenario.zero, "needs dp_shard of at least 2 to divide something over, it is 1"
        )
    return scenario.zero


def _batches(scenario: TrainScenario, sizes: Mapping[str, int]) -> tuple[int, int]:
    """Micro-batches of each data-parallel rank, and sequences of all."""
    ranks = sizes["dp_replicate"] * sizes["dp_shard"]
    step = scenario.micro_batch_size * ranks
    if scenario.global_batch is None:
        return sizes["pp"], step * sizes["pp"]
    count, rest = divmod(scenario.global_batch, step)
    if rest:
        raise ConfigError(
            "global_batch",
            scenario.global_batch,
            f"must be a multiple of {step:,} (micro-batches of {scenario.micro_batch_size:,} on "
            f"{counted(ranks, 'data-parallel rank')})",
            [n * step for n in (count, count + 1) if n],
        )
    return count, scenario.global_batch


def _topology(machine: str | Description, gpus: int, gpu: Gpu) -> Topology:
    """Generic topologies are made of links as fast as the GPU's, without latency."""
    try:
        return topology_of(machine, gpus, LinkSpec(bytes_per_s=gpu.link_bytes_per_s))
    except ConfigError as error:
        field = "machine" if error.field == "topology" else error.field
        raise ConfigError(field, error.value, error.problem) from None


def _schedule(
    scenario: TrainScenario, sizes: Mapping[str, int], microbatches: int, global_batch: int
) -> Schedule:
    stages = sizes["pp"]
    if scenario.grid is not None:
        typed = read_grid(scenario.grid)
        for name, has, wanted in (
            ("pp", typed.stages, stages),
            ("micro-batches", typed.microbatches, microbatches),
        ):
            if has != wanted:
                raise ConfigError("grid", f"of {has:,} {name}", f"must be of {wanted:,} here")
        return typed
    if stages == 1:
        return make_schedule("1f1b", 1, microbatches, 1)
    try:
        return make_schedule(scenario.schedule, stages, microbatches, scenario.chunks)
    except ConfigError as error:
        if error.field == "stages":
            # What the pipeline gives up or takes is dp_shard's.
            ranks = stages * sizes["dp_shard"]
            near = [n for n in error.near if ranks % n == 0]
            raise ConfigError("pp", stages, error.rule, near) from None
        if error.field == "microbatches":
            raise _too_few_sequences(error, scenario, microbatches, global_batch) from None
        raise


def _too_few_sequences(
    error: ConfigError, scenario: TrainScenario, microbatches: int, global_batch: int
) -> ConfigError:
    """What a schedule says of micro-batches, of the sequences that a step has."""
    step = global_batch // microbatches
    ranks = step // scenario.micro_batch_size
    made = (
        f"makes {microbatches:,} micro-batch{'' if microbatches == 1 else 'es'} of "
        f"{scenario.micro_batch_size:,}"
        + (f" on each of {ranks:,} data-parallel ranks" if ranks > 1 else "")
    )
    return ConfigError(
        "global_batch",
        f"{global_batch} (by default)" if scenario.global_batch is None else global_batch,
        f"{made}; {error.rule}",
        [near * step for near in error.near],
    )


def _check_parts(scenario: TrainScenario, model: Transformer, schedule: Schedule) -> None:
    """The first and the last part can do without a layer: embedding and head are there."""
    count, stages, most = schedule.virtual_stages, schedule.stages, model.layers + 2
    if count <= most:
        return
    cut = f"cuts {counted(model.layers, 'layer')} into {count:,} parts"
    if scenario.grid is not None:
        raise ConfigError("grid", f"of {count:,} parts", f"{cut}; at most {most:,} are possible")
    if scenario.chunks > 1 and stages <= most:
        raise ConfigError("chunks", scenario.chunks, f"{cut}; must be at most {most // stages:,}")
    legal = max(1, most // (count // stages))
    raise ConfigError("pp", stages, f"{cut}; must be at most {legal:,}")


def _check_async(scenario: TrainScenario, sizes: Mapping[str, int]) -> None:
    if scenario.async_tp and sizes["tp"] > 1 and not scenario.sequence_parallel:
        raise ConfigError(
            "async_tp", True, "overlaps the transfers of sequence_parallel, which is off"
        )


def _check_context(scenario: TrainScenario, model: Transformer, sizes: Mapping[str, int]) -> None:
    cp, tp = sizes["cp"], sizes["tp"]
    if cp == 1:
        return
    if scenario.context == "ulysses" and (model.heads // tp) % cp:
        raise ConfigError(
            "cp",
            cp,
            f"Ulysses divides the {model.heads // tp:,} heads of a rank"
            f"{nearest(cp, model.heads // tp)}",
        )
    kv_heads = max(1, model.groups // tp)
    if scenario.context == "ulysses" and kv_heads % cp and cp % kv_heads:
        problem = f"must divide the {kv_heads:,} KV heads of a rank, or they it"
        raise ConfigError("cp", cp, f"{problem}{nearest(cp, kv_heads)}")
    if "zigzag" in scenario.context and scenario.sequence % (2 * cp):
        near = max(1, scenario.sequence // (2 * cp)) * 2 * cp
        raise ConfigError(
            "seq_len",
            scenario.sequence,
            f"{scenario.context} cuts it into {2 * cp:,} equal parts",
            (near, near + 2 * cp),
        )


def _cut(model: Transformer, schedule: Schedule, prefill: bool) -> tuple[tuple[Unit, ...], ...]:
    """Layers over the virtual stages, as even as they go; what is over goes to the middle.

    The first one also has the embedding and the last one the head, so that they get no extra layer
    before the others have one. Prefill needs the head for one token only and leaves it out.
    """
    count = schedule.virtual_stages
    end = ("norm",) if prefill else ("norm", "head", "loss")
    low, over = divmod(model.layers, count)
    middle = sorted(range(count), key=lambda k: (k in (0, count - 1), k == 0, k))
    extra = set(middle[:over])
    parts = parts_of(model)
    cut, layer = [], 0
    for k in range(count):
        own = range(layer, layer + low + (k in extra))
        layer = own.stop
        units = [Unit(parts=(parts[1 + i],), layer=i) for i in own]
        if k == 0:
            units.insert(0, Unit(parts=("embedding",), layer=-1))
        if k == count - 1:
            units.append(Unit(parts=end, layer=-1))
        cut.append(tuple(units))
    return tuple(cut)

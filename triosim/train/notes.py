"""What a reader of a training result should know: warnings on it, and what was assumed for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from triosim.errors import counted
from triosim.network.topology.machines import load_machine, machine_names
from triosim.trace.scale import known_gpu
from triosim.train.plan import Plan

if TYPE_CHECKING:
    from triosim.train.result import TrainResult

NOTICEABLE = 0.01


def warnings_of(result: TrainResult) -> tuple[str, ...]:
    """Sentences about this run, the gravest first."""
    plan, notes = result.plan, []
    if not result.fits:
        over = (result.peak_memory_bytes - result.capacity_bytes) / 2**30
        notes.append(
            f"The step needs {result.peak_memory_gib:.1f} GiB on a GPU of "
            f"{result.capacity_bytes / 2**30:.0f} GiB: {over:.1f} GiB too much."
        )
    share = result.breakdown["launch_wait"] / result.step_ms if result.step_ms else 0.0
    if share > NOTICEABLE:
        notes.append(
            f"The GPU waits for the CPU's launches {share:.0%} of the time: larger micro-batches, "
            "compile or CUDA graphs would help."
        )
    wanted = "fp8" if plan.fp8 else plan.dtype
    if plan.trace is None and plan.gpu.computes_in(wanted) != wanted:
        notes.append(
            f"{plan.gpu.name} has no {wanted}: products are computed in "
            f"{plan.gpu.computes_in(wanted)}."
        )
    for axis in ("tp", "cp"):
        hosts = _hosts(plan, axis)
        if plan.sizes[axis] > 1 and hosts > 1:
            notes.append(
                f"Groups of {axis} reach over {counted(hosts, 'host')} and use the network "
                "between them inside every layer."
            )
    return tuple(notes)


def assumptions_of(plan: Plan) -> tuple[str, ...]:
    """What was chosen where the scenario does not say."""
    scenario, notes = plan.scenario, [f"Stack {plan.stack.name}: {plan.stack.about}."]
    if plan.stack.reserved.value > 1:
        share = plan.stack.reserved.value - 1
        notes.append(f"Memory is what the allocator holds, {share:.0%} more than tensors take.")
    notes += _compiled(plan)
    if plan.trace is None and plan.gpu.host_speed != 1:
        notes.append(
            f"Hosts of {plan.gpu.name} run Python at {plan.gpu.host_speed:g} times the speed of "
            "the Xeon of 2023 that the stack's CPU times are for."
        )
    if plan.trace is not None and known_gpu(plan.trace) is None:
        notes.append(
            f"The trace does not say where it was taken; its times are taken as {plan.gpu.name}'s."
        )
    if scenario.machine is None:
        notes.append(f"The machine is {plan.machine}, which has this GPU or one like it.")
    if plan.machine in machine_names():
        notes += load_machine(plan.machine).assumptions
    if plan.stages > 1 and plan.zero >= 2:
        gathered = "parameters stay gathered for the whole step and " if plan.zero == 3 else ""
        beside = ", beside their shards" if plan.stack.persistent_gradients else ""
        notes.append(
            f"In a pipeline {gathered}gradients are reduced after the last micro-batch, as "
            f"torchtitan does: sharded or not, they are whole until then{beside}."
        )
    if plan.sizes["cp"] > 1 and plan.contiguous:
        end = "first" if plan.passes_queries else "last"
        notes.append(f"All ranks are timed as the one with the {end} part of the sequence.")
    if plan.sizes["cp"] // plan.ulysses > 1 and plan.rings_in_turn:
        notes.append(
            "PyTorch's ring attention: KV heads are repeated, gradients travel in float32, and "
            "nothing computes while something travels."
        )
    if plan.sizes["cp"] > 1 and plan.passes_queries and not scenario.prefill:
        notes.append("Backward passes queries as forward does; what is published is inference.")
    if plan.schedule.parameter_copies > 1:
        notes.append(
            "A forward and a backward that overlap take turns on the GPU: while one waits for a "
            "transfer inside a layer, the other computes."
        )
    if scenario.prefill:
        notes.append("The head multiplies one token of each sequence: it is left out.")
    if plan.sizes["ep"] > 1:
        skew = scenario.expert_skew
        notes.append(
            "Tokens are spread evenly over the experts."
            if skew == 1
            else f"All ranks are timed as the busiest one, with {skew:g} times the mean of tokens."
        )
    return tuple(notes)


def _compiled(plan: Plan) -> list[str]:
    """Where the kernels of a compiled step come from."""
    scenario, stack = plan.scenario, plan.stack
    if not scenario.compiled or plan.trace is not None:
        return []
    if not plan.fused:
        if stack.compiled_implementation == stack.implementation:
            return [
                f"The kernels of {stack.name} are fused by hand: compile changes launches only."
            ]
        return [
            "The schedule splits backward in two, which torch.compile does not fuse: each norm, "
            "rotation and activation is taken as one kernel."
        ]
    ends = "Each part of the model" if stack.compiled_ends else "Each layer"
    loss = " and the loss" if stack.compiled_loss else ""
    notes = [f"{ends}{loss} is compiled on its own, kernels fused as Inductor does."]
    if scenario.recompute not in ("none", "full"):
        notes.append("What is computed again runs as the whole fused kernels of forward.")
    if plan.fp8:
        notes.append("Casts to fp8 are kernels of their own.")
    return notes


def _hosts(plan: Plan, axis: str) -> int:
    if plan.machine not in machine_names():
        return 1
    return plan.mesh.hosts_per_group(axis, load_machine(plan.machine).gpus_per_host)

"""Where a computation's time is from: measured, scaled from measured, or a roofline's formula."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from triosim.amounts import bytes_words, time_words
from triosim.engine.program import COMPUTE_PHASES
from triosim.errors import TrioSimError
from triosim.hardware import Gpu, Work, predict_s
from triosim.result import Result
from triosim.simulate import make_plan
from triosim.trace import Operator, Trace, load_trace
from triosim.trace.scale import times_at, works_of
from triosim.train import TrainResult
from triosim.train.plan import Unit
from triosim.workload import Op

_SAME = 1e-9  # relative: durations that come from the same operator


@dataclass(frozen=True, kw_only=True, slots=True)
class _Found:
    """An operator of the trace at a batch, and what it was recorded as."""

    operator: Operator
    recorded: Operator
    work: Work | None
    batch: int


def operator_lines(result: Result, task: int) -> tuple[str, ...]:
    """What the trace says of a computation's time; nothing where the trace is gone."""
    program = result.tasks.program
    if program.transfer[task] >= 0 or program.phase[task] not in COMPUTE_PHASES:
        return ()
    if isinstance(result, TrainResult):
        return tuple(_composite_lines(result, task))
    try:
        recorded = load_trace(result.scenario.trace_dir)
        plan = make_plan(result.scenario, recorded)
    except TrioSimError:
        return ()
    found = _operator(result, task, plan.trace, recorded, plan.batch_sizes)
    if found is None:
        return ()
    own_s = program.duration_s[task] * result.classes[result.tasks.class_list[task]].speed
    return tuple(_lines(found, plan.trace, recorded, own_s))


def _operator(
    result: Result, task: int, trace: Trace, recorded: Trace, batches: tuple[int, ...]
) -> _Found | None:
    """The operator of that name, phase and time; of several alike any one."""
    program, scenario = result.tasks.program, result.scenario
    speed = result.classes[result.tasks.class_list[task]].speed
    own_s = program.duration_s[task] * speed
    name, phase = program.name[task], program.phase[task]
    alike = [i for i in trace.phase(phase) if trace.operators[i].name == name]
    for batch in dict.fromkeys(batches):
        times_s = times_at(trace, batch)
        for i in alike:
            split = scenario.case == 3 and trace.operators[i].tensor_parallel
            whole_s = times_s[i] / (scenario.gpus if split else 1)
            if math.isclose(whole_s, own_s, rel_tol=_SAME):
                work = works_of(trace, batch)[i] if trace.gpu is not None else None
                return _Found(
                    operator=trace.operators[i],
                    recorded=recorded.operators[i],
                    work=work,
                    batch=batch,
                )
    if phase == "optimizer" and alike:  # a stage's share of it
        i = alike[0]
        return _Found(operator=trace.operators[i], recorded=recorded.operators[i], work=None,
                      batch=recorded.batch_size)  # fmt: skip
    return None


def _lines(found: _Found, trace: Trace, recorded: Trace, own_s: float) -> Iterator[str]:
    before_s = found.recorded.time_s
    source = {"roofline": "is a roofline's prediction", "scaled": "was scaled from a measured one"}
    how = source.get(found.recorded.provenance, "was measured")
    batch = f" at batch {recorded.batch_size:,}"
    if math.isclose(before_s, own_s, rel_tol=_SAME):
        yield f"Its time {how}: the trace has {time_words(before_s)}{batch}."
    else:
        changes = []
        if found.batch != recorded.batch_size:
            changes.append(f"batch {found.batch:,}")
        if trace.gpu is not None and found.operator.time_s != before_s:
            changes.append(f"another GPU ({trace.gpu.name})")
        ratio = ", the ratio of two predictions where its work is known, else of the sizes"
        if not changes:
            changes, ratio = ["the share of it that this GPU has"], ""
        yield (
            f"The trace has {time_words(before_s)}{batch}, which {how}; for "
            f"{' and '.join(changes)} that is multiplied by {own_s / before_s:.4g}{ratio}."
        )
    if found.work is not None and trace.gpu is not None and found.work.bytes:
        yield roofline_words(trace.gpu, found.work)


def roofline_words(gpu: Gpu, work: Work) -> str:
    """The two sides of the roofline for a piece of work, and what the model makes of them."""
    peak = gpu.peak(work.dtype)
    compute_s, memory_s = work.flops / peak, work.bytes / gpu.memory_bytes_per_s
    bound = "computing" if compute_s > memory_s else "memory"
    flops = (
        f"{work.flops / 1e9:,.4g} GFLOP would take {time_words(compute_s)} at the peak of "
        f"{peak / 1e12:,.4g} TFLOP/s and its "
    )
    return (
        f"On {gpu.name} its {flops if work.flops else ''}{bytes_words(work.bytes)} "
        f"{'' if work.flops else 'would take '}{time_words(memory_s)} at "
        f"{gpu.memory_bytes_per_s / 1e9:,.4g} GB/s, so {bound} limits it; with the efficiencies "
        f"fitted for such kernels the model predicts {time_words(predict_s(gpu, work))}."
    )


def _composite_lines(result: TrainResult, task: int) -> Iterator[str]:
    """What a pass of a training step, or its optimizer, is priced by."""
    stack = result.plan.stack.name
    made = result.writer.made.get(task)
    if made is None:
        if result.tasks.program.phase[task] == "optimizer":
            yield (
                "The optimizer clips by the norm of all gradients and updates this rank's shard: "
                f"its kernels are bound by memory, at the share of the bandwidth that {stack} "
                "reaches."
            )
        return
    layers = len(made.group.units)
    kernels = sum(one.kernels for one in made.passes)
    launch_s = result.writer.blocks.costs.launch_s
    yield (
        f"It stands for {layers:,} part{'s' if layers > 1 else ''} of the model with {kernels:,} "
        f"kernels, simulated once with their launches ({time_words(launch_s)} each) and the "
        "transfers inside."
    )


def kernel_lines(
    result: TrainResult, unit: Unit, name: str, phase: str, seconds: float
) -> Iterator[str]:
    """The formula behind a kernel of a pass: its roofline over the share that the stack reaches."""
    if result.plan.trace is not None:
        yield "Its time is the trace's, in proportion to the batch."
        return
    op = _op(result, unit, name, phase, seconds)
    if op is None:  # a copy, a cast or the fused loss
        yield (
            f"It only moves data: its bytes at the {result.plan.gpu.memory_bytes_per_s / 1e9:,.4g} "
            f"GB/s of {result.plan.gpu.name}'s memory, at the share that {result.plan.stack.name} "
            "reaches of it."
        )
        return
    costs = result.writer.blocks.costs
    yield roofline_words(result.plan.gpu, op.work)
    share = predict_s(result.plan.gpu, op.work) / costs.op_s(op)
    if not costs.scaled(op):
        yield f"{result.plan.stack.name} reaches {share:.3g} of that speed for such kernels."


def _op(result: TrainResult, unit: Unit, name: str, phase: str, seconds: float) -> Op | None:
    """The operator of that name; of several the one whose time fits best."""
    blocks = result.writer.blocks
    ops: list[Op] = []
    for part in unit.parts:
        kept = blocks.kept(part, unit.layer)
        ops += {"backward": kept.backward, "recompute": kept.again}.get(phase, kept.forward)
    alike = [op for op in ops if op.name == name and not op.collective]
    return min(alike, key=lambda op: abs(blocks.costs.op_s(op) - seconds), default=None)

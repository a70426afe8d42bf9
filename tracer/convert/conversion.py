"""Convert one profiler file, with or without its execution trace: the other modules in order.

read -> nest rows -> find steps -> join with the execution trace -> cut into operators -> build
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tracer.convert.batch import find_batch_size
from tracer.convert.build import build, cpu_times, kernel_times
from tracer.convert.choose import choose_step
from tracer.convert.communication import communications
from tracer.convert.cut import cut
from tracer.convert.files import read_file
from tracer.convert.graph import Graph
from tracer.convert.join import Join
from tracer.convert.kineto import Profile
from tracer.convert.modules import find_modules
from tracer.convert.names import ACCUMULATE
from tracer.convert.nesting import nest
from tracer.convert.partners import TP_OPS, find_partners
from tracer.convert.report import Report
from tracer.convert.source import MAX_BYTES, Data
from tracer.convert.steps import Step, find_steps
from tracer.convert.summary import Found, report_of, warnings_of
from triosim.errors import TraceFormatError
from triosim.trace import Trace

FAIL_BELOW = 0.5  # of the kernel time


def convert(
    profiler: Data,
    graph: Data | None = None,
    *,
    step: int | None = None,
    tp_ops: Sequence[str] = TP_OPS,
    name: str | None = None,
    meta: Mapping[str, Any] | None = None,
    max_bytes: int = MAX_BYTES,
) -> tuple[Trace, Report]:
    """The trace of one step and a report of what was used and what was not.

    The files are given as paths or as their content; `meta` is what the collector knows (batch
    size, torch, GPU). Raises `TraceFormatError` for files that are not what they should be, and
    where less than half of the kernel time has an operator.
    """
    profile, execution = _read(profiler, graph, max_bytes)
    nest(profile)
    steps = find_steps(profile)
    if not profile.rows:
        raise TraceFormatError(_without_rows(profile))
    chosen, joined = choose_step(steps, profile, execution, step)
    found = _find(profile, execution, steps, chosen, joined, tp_ops)
    _check(found)
    return _finish(found, name=name or trace_name(profile.name), meta=meta or {})


def _read(profiler: Data, graph: Data | None, max_bytes: int) -> tuple[Profile, Graph | None]:
    first = read_file(profiler, default="profiler file", max_bytes=max_bytes)
    if graph is None:
        if isinstance(first, Graph):
            raise TraceFormatError(
                f"{first.name}: an execution trace (schema {first.schema or 'unknown'}, "
                f"{len(first.nodes)} nodes) has no times; give the profiler file as well."
            )
        return first, None
    second = read_file(graph, default="execution trace", max_bytes=max_bytes)
    if isinstance(first, Graph) and isinstance(second, Profile):
        second.repairs["the two files were given in the other order"] += 1
        return second, first
    if not isinstance(first, Profile) or not isinstance(second, Graph):
        kind = "profiler files" if isinstance(first, Profile) else "execution traces"
        raise TraceFormatError(
            f"{first.name} and {second.name}: both are {kind}; give one of each."
        )
    return first, second


def _without_rows(profile: Profile) -> str:
    if profile.kernels:
        return (
            f"{profile.name}: {len(profile.kernels)} kernels and no operators (cpu_op), so no time "
            "can be attributed; record with ProfilerActivity.CPU as well."
        )
    return (
        f"{profile.name}: none of its {profile.events} events is an operator (cpu_op) with a time."
    )


def _find(
    profile: Profile,
    graph: Graph | None,
    steps: Sequence[Step],
    step: Step,
    joined: Join,
    tp_ops: Sequence[str],
) -> Found:
    parts = cut(step.rows, step.kernels, joined.nodes)
    find_partners(step.rows, parts, joined.nodes)
    find_modules(parts.operators, profile.module_ranges)
    times = kernel_times(parts) if profile.kernels else cpu_times(parts)
    operators, renamed = build(parts, times, joined.nodes, graph, tp_ops)
    if renamed:
        profile.repairs["tensor ids that stood for two memories were made two"] += renamed
    origin = min((row.start for row in step.rows), default=0)
    if profile.kernels:
        total = sum(k.end - k.start for k in step.kernels)
        lost = sum(k.end - k.start for k in parts.left)
    else:
        total, lost = sum(times.share), 0
    return Found(
        profile=profile, graph=graph, steps=steps, step=step, join=joined, cut=parts, times=times,
        operators=operators, kernel_ns=total, attributed_ns=total - lost,
        communications=communications(parts.communications, joined.nodes, origin),
    )  # fmt: skip


def _check(found: Found) -> None:
    name = found.profile.name
    if found.kernel_ns and found.attributed < FAIL_BELOW:
        reasons = Counter(kernel.reason for kernel in found.cut.left)
        why = ", ".join(f"{n} {reason}" for reason, n in reasons.most_common())
        raise TraceFormatError(
            f"{name}: only {found.attributed:.1%} of the kernel time of step "
            f"{found.step.number} belongs to an operator ({why}); at least {FAIL_BELOW:.0%} is "
            "needed."
        )
    if not found.operators:
        what = "kernels" if found.profile.kernels else "operators that take time"
        raise TraceFormatError(
            f"{name}: step {found.step.number} ({found.step.label}) has no {what} of a "
            "computation, so there is nothing to write."
        )


def _finish(found: Found, *, name: str, meta: Mapping[str, Any]) -> tuple[Trace, Report]:
    accumulations = sum(row.name == ACCUMULATE for row in found.step.rows)
    size, source = find_batch_size(found.operators, accumulations)
    known = meta.get("batch_size")
    if type(known) is int and known > 0:
        size, source = known, "meta.json"
    warnings = warnings_of(found, size)
    report = report_of(found, size or 1, source, warnings)
    facts: dict[str, Any] = {
        "source": "measured",
        "gpu": report.gpu if found.profile.kernels else "cpu",
        "torch": report.torch,
        **meta,
        "converted_from": [part for part in (report.profiler, report.graph) if part],
        "step": found.step.number,
        "device": found.device,
    }
    trace = Trace(
        name=name,
        operators=tuple(found.operators),
        batch_size=size or 1,
        meta={key: value for key, value in facts.items() if value not in ("", None)},
        warnings=warnings,
    )
    return trace, report


def trace_name(file: str) -> str:
    """profiler_vgg13-iter41.json.gz is the trace vgg13-iter41."""
    name = re.sub(r"(\.pt)?(\.trace)?(\.json)?(\.gz)?$", "", file, flags=re.IGNORECASE)
    return re.sub(r"^profiler_", "", name) or "trace"

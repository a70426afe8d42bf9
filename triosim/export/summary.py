"""A result as a few lines of text."""

from __future__ import annotations

from pathlib import Path

from triosim.analysis.breakdown import CLASSES
from triosim.errors import counted
from triosim.result import Result, Used
from triosim.scenario import CASES


def summary(result: Result) -> str:
    """What the command line prints."""
    scenario = result.scenario
    name = Path(scenario.trace_dir).resolve().name
    network = scenario.topology_name if scenario.on_topology else scenario.interconnect
    lines = [
        f"{name}, case {scenario.case} ({CASES[scenario.case]}), {scenario.gpus} "
        f"{'GPU' if scenario.gpus == 1 else 'GPUs'}, {network or 'electrical'}",
        "",
        f"  step time       {result.total_ms:12.4f} ms",
        *_many_steps(result),
        f"  speed-up        {_number(result.speedup, '.3f')} over one GPU",
        f"  throughput      {_number(result.samples_per_s, ',.1f')} samples/s",
        "",
        "  where the time goes, mean over GPUs:",
    ]
    for kind in CLASSES:
        value = getattr(result, f"{kind}_ms")
        share = value / result.total_ms if result.total_ms else 0.0
        lines.append(f"    {kind.replace('_', ' '):22}{value:12.4f} ms {share:7.1%}")
    lines += [
        "",
        f"  sent GPU to GPU {_size(result.communication_bytes)} in all",
        f"  fetched         {_size(result.fetched_bytes)} in all",
        f"  peak memory     {result.peak_memory_bytes / 2**30:12.3f} GiB per GPU",
    ]
    if result.algorithms:
        lines += ["", *(f"  {_used(used)}" for used in result.algorithms)]
    shares = result.provenance
    if shares["measured"] < 1 and any(shares.values()):
        said = ", ".join(f"{share:.1%} {kind}" for kind, share in shares.items() if share)
        lines += ["", f"  computing time: {said}"]
    failed = [check for check in result.checks if not check.passed]
    lines += ["", f"  {len(result.checks) - len(failed)} of {len(result.checks)} checks passed"]
    lines += [f"    FAILED {check.id}: {check.detail}" for check in failed]
    return "\n".join(lines)


def _many_steps(result: Result) -> list[str]:
    """How the step time varies, where it does."""
    times = result.step_times
    if times is None:
        return []
    return [
        f"  over many steps {times.mean_ms:12.4f} ms mean, {times.p50_ms:.4f} ms P50, "
        f"{times.p95_ms:.4f} ms P95, {times.least_ms:.4f} to {times.most_ms:.4f} ms "
        f"({times.steps:,} drawn)"
    ]


def _used(used: Used) -> str:
    protocol = "ideal links" if used.protocol is None else f"protocol {used.protocol}"
    return f"{counted(used.transfers, used.operation)}: {used.algorithm}, {protocol}"


def _number(value: float | None, form: str) -> str:
    return f"{'n/a':>12}" if value is None else f"{value:>12{form}}"


def _size(value: float) -> str:
    return f"{value / 1e9:12.3f} GB"

"""The tables of each kind of result, by name; each is made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, fields
from functools import singledispatch
from typing import Any

import pandas as pd

from triosim.analysis.breakdown import CLASSES
from triosim.analysis.checks import Check
from triosim.collective import CollectiveResult
from triosim.compare import Comparison, Delta
from triosim.explain import Explanation, WhatIf
from triosim.pipelines import PipelineResult
from triosim.result import Result
from triosim.saved import SavedResult
from triosim.search import SearchResult
from triosim.sweep import SweepResult
from triosim.train import TrainResult

Tables = Mapping[str, Callable[[], pd.DataFrame]]
GIB = 2**30
LONGEST = 10  # gaps of an explanation's summary
_SWEEP = ("step_ms", "samples_per_s", "tokens_per_s_per_gpu", "mfu", "peak_memory_gib")


@singledispatch
def tables_of(shown: Any) -> Tables:
    """The tables of a result, the summary first."""
    raise TypeError(type(shown).__name__)


@tables_of.register
def _(shown: Result) -> Tables:
    return {
        "summary": lambda: _of_trace(shown),
        "breakdown": lambda: _breakdown(shown),
        "communication": lambda: _communication(shown),
        "ranks": lambda: pd.DataFrame(
            [
                {"rank": group.rank, "members": len(group.members), **shown.class_entry(c)}
                for c, group in enumerate(shown.classes)
            ]
        ),
        "timeline": lambda: shown.timeline,
        "checks": lambda: _checks(shown),
    }


@tables_of.register
def _(shown: TrainResult) -> Tables:
    made = dict(tables_of.dispatch(Result)(shown))
    return {**made, "summary": lambda: _of_training(shown), "memory": lambda: _memory(shown)}


@tables_of.register
def _(shown: SavedResult) -> Tables:
    common: Tables = {
        "breakdown": lambda: _breakdown(shown),
        "communication": lambda: _communication(shown),
        "checks": lambda: _checks(shown),
    }
    if shown.trained:
        return {
            "summary": lambda: _of_training(shown), **common, "memory": lambda: _memory(shown),
        }  # fmt: skip
    return {
        "summary": lambda: _of_trace(shown), **common,
        "ranks": lambda: pd.DataFrame(shown.per_rank),
    }  # fmt: skip


def _figures(rows: Iterable[tuple[str, float | None, str]]) -> pd.DataFrame:
    """One figure a row with its unit; what has no answer is NaN."""
    return pd.DataFrame(
        [
            (name, float("nan") if value is None else float(value), unit)
            for name, value, unit in rows
        ],
        columns=["figure", "value", "unit"],
    )


def _of_trace(result: Result | SavedResult) -> pd.DataFrame:
    return _figures(
        [
            ("step time", result.total_ms, "ms"),
            ("speed-up over one GPU", result.speedup, ""),
            ("throughput", result.samples_per_s, "samples/s"),
            *_parts(result),
            ("sent from GPU to GPU", result.communication_bytes / 1e9, "GB in all"),
            ("fetched", result.fetched_bytes / 1e9, "GB in all"),
            ("peak memory", result.peak_memory_bytes / GIB, "GiB on a GPU"),
        ]
    )


def _of_training(result: TrainResult | SavedResult) -> pd.DataFrame:
    band = result.band
    low, high = (band["low_ms"], band["high_ms"]) if isinstance(band, Mapping) else band
    return _figures(
        [
            ("step time", result.total_ms, "ms"),
            ("step time, fast end of the stack", low, "ms"),
            ("step time, slow end of the stack", high, "ms"),
            ("throughput", result.tokens_per_s_per_gpu, "tokens/s per GPU"),
            ("model FLOP/s", result.model_tflops_per_gpu, "TFLOP/s per GPU"),
            ("MFU", result.mfu * 100, "%"),
            ("HFU", result.hfu * 100, "%"),
            *_parts(result),
            ("peak memory", result.peak_memory_gib, "GiB on a GPU"),
            ("memory of a GPU", result.capacity_bytes / GIB, "GiB"),
        ]
    )


def _parts(result: Result | SavedResult) -> list[tuple[str, float, str]]:
    """Classes of time that there are; compute always."""
    return [
        (name.replace("_", " "), ms, "ms, mean over GPUs")
        for name, ms in result.breakdown.items()
        if ms or name == "compute"
    ]


def _breakdown(result: Result | SavedResult) -> pd.DataFrame:
    parts = result.breakdown
    total = result.total_ms
    shares = [ms / total if total else 0.0 for ms in parts.values()]
    return pd.DataFrame({"class": list(CLASSES), "ms": list(parts.values()), "share": shares})


def _communication(result: Result | SavedResult) -> pd.DataFrame:
    rows = [row.to_dict() for row in result.communication]
    columns = ["kind", "purpose", "transfers", "bytes", "busy_ms", "exposed_ms"]
    return pd.DataFrame(rows, columns=columns)


def _checks(result: Result | SavedResult) -> pd.DataFrame:
    names = [field.name for field in fields(Check)]
    return pd.DataFrame([asdict(check) for check in result.checks], columns=names)


def _memory(result: TrainResult | SavedResult) -> pd.DataFrame:
    held = result.memory_breakdown_gib
    return pd.DataFrame({"what": list(held), "gib": list(held.values())})


@tables_of.register
def _(shown: PipelineResult) -> Tables:
    return {
        "summary": lambda: _figures(
            [
                ("makespan", shown.makespan, "units of time"),
                ("period", shown.period, "units of time"),
                ("bubble of the ideal time", shown.bubble_of_ideal * 100, "%"),
                ("bubble of the period", shown.bubble_of_total * 100, "%"),
                ("micro-batches in flight, at most", max(shown.peak_in_flight), ""),
            ]
        ),
        "stages": lambda: pd.DataFrame(
            {
                "stage": range(shown.schedule.stages),
                "peak_in_flight": shown.peak_in_flight,
                "idle_share": shown.idle,
            }
        ),
        "timeline": lambda: shown.timeline,
    }


@tables_of.register
def _(shown: CollectiveResult) -> Tables:
    return {
        "summary": lambda: _figures(
            [
                ("time", shown.time_ms, "ms"),
                ("of it latency", shown.latency_ms, "ms"),
                ("time with measured protocol costs", shown.calibrated_ms, "ms"),
                ("algorithm bandwidth", shown.algbw_gb_per_s, "GB/s"),
                ("bus bandwidth", shown.busbw_gb_per_s, "GB/s"),
                ("steps", shown.steps, ""),
                ("on the busiest link", shown.link_bytes / 1e9, "GB"),
            ]
        ).dropna(ignore_index=True),
        "algorithms": lambda: pd.DataFrame(
            list(algorithms_ms(shown).items()), columns=["algorithm", "ms"]
        ).sort_values("ms", ignore_index=True),
    }


def algorithms_ms(shown: CollectiveResult) -> dict[str, float]:
    """The times of the algorithms that were compared; of the one that was named, its own."""
    return {shown.algorithm: shown.time_ms, **shown.candidates_ms}


@tables_of.register
def _(shown: Comparison) -> Tables:
    letters = "ABCD"[: len(shown.results)]
    return {
        "summary": lambda: pd.DataFrame(
            [
                {
                    "step": letter,
                    "step_ms": result.total_ms,
                    "samples_per_s": result.samples_per_s,
                    "times the samples per second of A": shown.speedup(i),
                    "peak_memory_gib": result.peak_memory_bytes / GIB,
                }
                for i, (letter, result) in enumerate(zip(letters, shown.results, strict=True))
            ]
        ),
        "settings": lambda: pd.DataFrame(
            [
                {
                    "section": d.section,
                    "setting": d.setting,
                    **dict(zip(letters, d.values, strict=True)),
                }
                for d in shown.differences
            ],
            columns=["section", "setting", *letters],
        ),
        "waterfall": lambda: pd.DataFrame(
            [
                {"step": letters[i], **asdict(delta)}
                for i in range(1, len(letters))
                for delta in shown.waterfall(i)
            ],
            columns=["step", *(field.name for field in fields(Delta))],
        ),
    }


@tables_of.register
def _(shown: SweepResult) -> Tables:
    return {"summary": lambda: _sweep(shown), "points": lambda: shown.frame}


def _sweep(shown: SweepResult) -> pd.DataFrame:
    """What was set and the main metrics, of those that any point has."""
    frame = shown.frame
    metrics = [name for name in _SWEEP if frame[name].notna().any()]
    problem = ["problem"] if frame["problem"].notna().any() else []
    return frame[[*(axis.field for axis in shown.spec.axes), *metrics, "fits", *problem]]


@tables_of.register
def _(shown: SearchResult) -> Tables:
    return {
        "summary": lambda: _ranked(shown),
        "layouts": lambda: shown.frame,
    }


def _ranked(shown: SearchResult) -> pd.DataFrame:
    """The legal layouts in few columns, so that the reason has room."""
    figures = ["step_ms", "mfu", "peak_memory_gib"]
    rows = [
        {"layout": one.layout, "with": one.plan, **one.row()}
        for one in shown.ranked
        if one.scenario is not None
    ]
    return pd.DataFrame(rows, columns=["layout", "with", *figures, "reason"])


@tables_of.register
def _(shown: Explanation) -> Tables:
    return {
        "summary": lambda: _gaps(shown).nlargest(LONGEST, "ms", keep="first"),
        "gaps": lambda: _gaps(shown),
        "path": lambda: pd.DataFrame(
            [
                {
                    "rank": step.rank,
                    "stream": step.stream,
                    "name": step.name,
                    "kind": step.kind,
                    "start_ms": step.start_s * 1e3,
                    "ms": step.seconds * 1e3,
                }
                for step in shown.critical_path
            ]
        ),
        "critical_totals": lambda: pd.DataFrame(
            list(shown.critical_totals.items()), columns=["kind", "ms"]
        ),
        "what_if": lambda: pd.DataFrame(
            [asdict(row) for row in shown.what_if()],
            columns=[field.name for field in fields(WhatIf)],
        ),
    }


def _gaps(shown: Explanation) -> pd.DataFrame:
    """One GPU of each group of identical ones, in order of time."""
    rows = [
        {
            "rank": group.rank,
            "start_ms": wait.start_s * 1e3,
            "ms": wait.seconds * 1e3,
            "kind": wait.kind.replace("_", " "),
            "reason": shown.reason(wait),
        }
        for group in shown.result.classes
        for wait in shown.gaps(group.rank)
    ]
    return pd.DataFrame(rows, columns=["rank", "start_ms", "ms", "kind", "reason"])

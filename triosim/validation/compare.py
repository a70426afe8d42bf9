"""Predicted against published: one table of rows, and what they come to.

Errors are signed shares of the published value: 0.1 is a prediction 10 % too high.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from triosim.errors import counted
from triosim.validation import gpipe, traces
from triosim.validation.predict import Prediction, predict_rows
from triosim.validation.tables import COUNTED, Row, Source, read_table, rows_of

STACKS = ("calibrated", "generic")
QUANTITIES = ("time", "memory")
COLUMNS = (
    "source", "row", "where", "size", "run", "gpus", "status", "note", "published_s",
    "calibrated_s", "calibrated_time_error", "generic_s", "generic_time_error", "published_gib",
    "calibrated_gib", "calibrated_memory_error", "generic_gib", "generic_memory_error", "problem",
)  # fmt: skip


def compare(source: Source, folder: Path | None = None, jobs: int = 1) -> pd.DataFrame:
    """Every row of a source against its predictions, with the columns of `COLUMNS`.

    Missing figures are NaN. Raises `ConfigError` where the source's data set is not there.
    """
    if source.kind != "train":
        return _plain(source, _PLAIN[source.kind])
    return compare_rows(rows_of(source, folder), jobs)


def compare_rows(rows: Sequence[Row], jobs: int = 1) -> pd.DataFrame:
    """The same for some rows."""
    return frame_of(rows, predict_rows(rows, jobs))


def frame_of(
    rows: Sequence[Row], predictions: Iterable[tuple[Prediction, Prediction]]
) -> pd.DataFrame:
    """Rows and their predictions, calibrated and generic, side by side."""
    lines = [
        {
            "source": row.source,
            "row": row.number,
            "where": row.where,
            "size": row.size,
            "run": row.label,
            "gpus": row.scenario.gpus,
            "status": row.status,
            "note": row.note,
            "published_s": row.published_s,
            "published_gib": row.published_gib,
            "calibrated_s": own.seconds,
            "calibrated_gib": own.gib,
            "generic_s": generic.seconds,
            "generic_gib": generic.gib,
            "problem": own.problem,
        }
        for row, (own, generic) in zip(rows, predictions, strict=True)
    ]
    return with_errors(pd.DataFrame(lines))


class Method(Protocol):
    """A module that predicts rows without a stack: schedules alone, or a trace."""

    def step_s(self, row: dict[str, Any]) -> float: ...
    def published_s(self, row: dict[str, Any]) -> float: ...


_PLAIN: Mapping[str, Method] = {"pipeline": gpipe, "trace": traces}


def _plain(source: Source, method: Method) -> pd.DataFrame:
    """No stack takes part, so that there is one prediction."""
    assert source.table is not None
    lines = []
    for row in read_table(source.table):
        gpus = int(row.get("stages", traces.GPUS))
        layout = f"case {row['case']}" if "case" in row else f"{row['microbatches']} micro-batches"
        lines.append(
            {
                "source": source.name,
                "row": row["row"],
                "size": row["model"],
                "run": f"{row['model']}, {counted(gpus, 'GPU')}, {layout}",
                "gpus": gpus,
                "status": row.get("status", "kept"),
                "note": row.get("note", ""),
                "published_s": method.published_s(row),
                "calibrated_s": method.step_s(row),
                "problem": "",
            }
        )
    return with_errors(pd.DataFrame(lines))


def with_errors(frame: pd.DataFrame) -> pd.DataFrame:
    """The signed errors beside predicted and published figures; columns in their order."""
    frame = frame.reindex(columns=list(COLUMNS))
    for quantity, unit in zip(QUANTITIES, ("s", "gib"), strict=True):
        published = pd.to_numeric(frame[f"published_{unit}"])
        for stack in STACKS:
            predicted = pd.to_numeric(frame[f"{stack}_{unit}"])
            frame[f"{stack}_{quantity}_error"] = predicted / published - 1
    return frame


def summarise(frame: pd.DataFrame) -> pd.DataFrame:
    """What the counted rows of each source come to.

    Columns source, quantity (time or memory), stack, rows, mean_error (of absolute values), bias,
    p90 (of absolute values).
    """
    lines = []
    for source, rows in frame[frame.status.isin(COUNTED)].groupby("source", sort=False):
        for quantity in QUANTITIES:
            for stack in STACKS:
                errors = rows[f"{stack}_{quantity}_error"].dropna()
                if len(errors):
                    lines.append(
                        {
                            "source": source,
                            "quantity": quantity,
                            "stack": stack,
                            "rows": len(errors),
                            "mean_error": errors.abs().mean(),
                            "bias": errors.mean(),
                            "p90": errors.abs().quantile(0.9),
                        }
                    )
    columns = ["source", "quantity", "stack", "rows", "mean_error", "bias", "p90"]
    return pd.DataFrame(lines, columns=columns)


def worst(frame: pd.DataFrame, count: int = 5, quantity: str = "time") -> pd.DataFrame:
    """The counted rows with the largest calibrated errors, the largest first."""
    counted = frame[frame.status.isin(COUNTED)].dropna(subset=[f"calibrated_{quantity}_error"])
    order = counted[f"calibrated_{quantity}_error"].abs().sort_values(ascending=False).index
    return counted.loc[order[:count]]

"""Write a converted trace: the two-file format, and the communications beside it."""

from __future__ import annotations

import csv
from dataclasses import astuple
from pathlib import Path

from tracer.convert.communication import HEADER
from tracer.convert.report import Report
from triosim.trace import Trace, write_trace


def save(trace: Trace, report: Report, folder: str | Path) -> None:
    """trace.csv, tensor.csv and meta.json; communication.csv where the step communicates."""
    folder = Path(folder)
    write_trace(trace, folder)
    path = folder / "communication.csv"
    if not report.communications:
        path.unlink(missing_ok=True)  # of an earlier conversion into the same folder
        return
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        writer.writerows(astuple(one) for one in report.communications)

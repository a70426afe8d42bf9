"""Write a converted trace: the two-file format, and the communications beside it."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

import pandas as pd

from tracer.convert.communication import HEADER
from tracer.convert.report import Report
from triosim.export.files import write_atomically
from triosim.export.table import to_csv
from triosim.trace import Trace, write_trace


def save(trace: Trace, report: Report, folder: str | Path) -> None:
    """trace.csv, tensor.csv and meta.json; communication.csv where the step communicates."""
    folder = Path(folder)
    write_trace(trace, folder)
    path = folder / "communication.csv"
    if not report.communications:
        path.unlink(missing_ok=True)  # of an earlier conversion into the same folder
        return
    table = pd.DataFrame([astuple(one) for one in report.communications], columns=list(HEADER))
    write_atomically(path, to_csv(table))

"""Zero Bubble's bubble rates from its measured stage times: schedules alone, no hardware model."""

from __future__ import annotations

import pandas as pd

from triosim.pipelines import pipeline
from triosim.validation.tables import read_table

TABLE = "zero_bubble_stages.csv"
CITATION = "Qi et al., Zero Bubble Pipeline Parallelism, arXiv 2401.10241, Tables 5 and 9"
# How far a rate may be from the printed one (ORACLES P0): the paper rounds its stage times.
TOLERANCE = {"1f1b": 1e-3, "zb-h1": 1e-3, "zb-h2": 1e-3, "interleaved": 5e-3}


def bubble_rates() -> pd.DataFrame:
    """All 48 cells. Columns size, stages, microbatches, schedule, published, predicted, agrees.

    A rate is 1 - m (F + B + W) / period, with the time between stages as a delay on every hop.
    """
    lines = []
    for row in read_table(TABLE):
        forward, weight = row["forward_ms"], row["weight_ms"]
        backward = row["input_ms"] + weight
        for schedule, tolerance in TOLERANCE.items():
            result = pipeline(
                schedule,
                stages=row["stages"],
                microbatches=row["microbatches"],
                forward=forward,
                backward=backward,
                weight=weight,
                chunks=row["chunks"] if schedule == "interleaved" else 1,
                transfer=row["transfer_ms"],
            )
            rate = 1 - row["microbatches"] * (forward + backward) / result.period
            lines.append(
                {
                    "size": row["size"],
                    "stages": row["stages"],
                    "microbatches": row["microbatches"],
                    "schedule": schedule,
                    "published": row[schedule],
                    "predicted": rate,
                    "agrees": abs(rate - row[schedule]) <= tolerance,
                }
            )
    return pd.DataFrame(lines)

"""Every run of a source in a table: published, predicted with both stacks, and signed errors."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from dashboard.validation_open import ask_for
from triosim.validation.compare import QUANTITIES, STACKS

TABLE_PX = 360
NUMBER, TEXT = st.column_config.NumberColumn, st.column_config.TextColumn
STATUS = {"kept": "yes", "marked": "with a doubt", "shown": "no"}
UNITS = {"time": ("s", "s"), "memory": ("gib", "GiB")}
DOOR = "train"


def table_of(frame: pd.DataFrame, *, stacks: tuple[str, ...] = STACKS) -> pd.DataFrame:
    """The columns that say something, errors in percent; `frame` as `compare` gives it."""
    table = pd.DataFrame({DOOR: "Open", "row": frame["row"], "run": frame["run"]})
    for quantity in QUANTITIES:
        unit, shown = UNITS[quantity]
        published = pd.to_numeric(frame[f"published_{unit}"])
        if published.isna().all():
            continue
        table[f"published ({shown})"] = published
        for stack in stacks:
            name = stack if len(stacks) > 1 else "predicted"
            table[f"{name} ({shown})"] = pd.to_numeric(frame[f"{stack}_{unit}"])
            table[f"{name} {quantity} error"] = 100 * frame[f"{stack}_{quantity}_error"]
    table["counts"] = frame["status"].map(STATUS)
    table["note"] = [
        "; ".join(part for part in (note, problem) if isinstance(part, str) and part)
        for note, problem in zip(frame["note"], frame["problem"], strict=True)
    ]
    table["from"] = [where if isinstance(where, str) else "" for where in frame["where"]]
    empty = [name for name in ("note", "from") if not table[name].any()]
    return table.drop(columns=empty)


def show_table(name: str, frame: pd.DataFrame, table: pd.DataFrame) -> None:
    """The table with a button in each line that opens the run."""
    key = f"open_{name}"

    def asked() -> None:
        ask_for(name, int(frame["row"].iloc[st.session_state[key].row]))

    st.dataframe(
        table,
        hide_index=True,
        height=min(TABLE_PX, 38 + 35 * len(table)),
        column_config=_columns(table, key, asked),
    )
    st.caption(
        "Open shows the run on the page Train, as does a click on its point. Hollow points do not "
        "count towards the means. A click on a column's head sorts."
    )


def _columns(table: pd.DataFrame, key: str, asked: Any) -> dict[str, Any]:
    columns: dict[str, Any] = {
        DOOR: st.column_config.ButtonColumn(
            "", type="tertiary", on_click=asked, key=key, width=60, pinned=True
        ),
        "row": NUMBER("Row", width=50, help="Its number in the collection typed from the source"),
        "run": TEXT("Run", width=300),
        "counts": TEXT("Counts", width=80, help="Whether it counts towards the means"),
        "note": TEXT("Note", width=260),
        "from": TEXT("From", width=200),
    }
    for name in table.columns:
        if name.endswith("error"):
            columns[name] = NUMBER("Error", format="%+.1f %%", width=76, help=name.capitalize())
        elif name.endswith(("(s)", "(GiB)")):
            label = name[:1].upper() + name[1:]
            columns[name] = NUMBER(label, format="%.4g", width=118 if "GiB" in name else 96)
    return columns

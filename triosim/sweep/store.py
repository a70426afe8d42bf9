"""Points that are known, in a folder of Parquet files: a sweep that was interrupted goes on.

Each finished batch is a file of its own, complete or absent. Rows count by the digest of the
resolved scenario and the version of this program, so that sweeps may share a folder.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

import triosim
from triosim.errors import ConfigError
from triosim.files import replace_files
from triosim.sweep.metrics import METRICS

Row = dict[str, Any]
COLUMNS = ("digest", "version", "problem", "fits", *METRICS)


class Keeper(Protocol):
    """Keeps rows by digest."""

    def read(self) -> Mapping[str, Row]: ...

    def write(self, rows: Mapping[str, Row]) -> None: ...


class Store:
    """A folder of results. Raises `ConfigError` where it cannot be used."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError("store", folder, error.strerror or "cannot be made") from None

    def read(self) -> dict[str, Row]:
        """Rows by digest; files that are no results are passed over."""
        rows: dict[str, Row] = {}
        for path in sorted(self.folder.glob("*.parquet")):
            try:
                found = _rows(pd.read_parquet(path))
            except Exception:  # of pandas, Arrow or Parquet, for a file that is damaged anywhere
                continue
            rows.update((row["digest"], row) for row in found)
        return rows

    def write(self, rows: Mapping[str, Row]) -> None:
        """Keep more rows, all or none of them."""
        if not rows:
            return
        version = triosim.__version__
        full = [{"digest": digest, "version": version, **row} for digest, row in rows.items()]
        frame = pd.DataFrame(full, columns=list(COLUMNS))
        target = self.folder / f"{secrets.token_hex(8)}.parquet"
        replace_files({target: frame.to_parquet(index=False)})


def _rows(frame: pd.DataFrame) -> Sequence[Row]:
    """What this version of the program has written."""
    if not set(COLUMNS) <= set(frame.columns):
        return []
    own = frame[frame["version"] == triosim.__version__]
    plain = own.astype(object).where(own.notna(), None)
    return plain.to_dict("records")  # type: ignore[return-value]

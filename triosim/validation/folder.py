"""Data sets that are not part of this project, read where they lie.

They share one set of columns (model, layers, ..., dp, tp, pp, cp, ep, micro_batch, ...); here each
line gets the names of `TrainScenario`.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from triosim.errors import ConfigError

VARIABLE = "TRIOSIM_PUBLISHED"
BESIDE = Path(__file__).resolve().parents[3] / "shared" / "published"
# Layers of models that a source cut: the catalogue's name, or a config.json beside the tables.
_CUT = {
    "llama3_70b": ("model", "llama3-70b"),
    "llama3_405b": ("model", "llama3.1-405b"),
    "deepseekv2": ("model", "deepseek-v2"),
    "deepseekv3": ("config", "deepseek-v3-cut.json"),
}
_RECOMPUTE = {"full": "full", "none (not stated)": "none"}


def published_folder(given: str | Path | None = None) -> Path:
    """Where the data sets lie: as given, else as TRIOSIM_PUBLISHED says, else ../shared/published
    beside the repository."""
    return Path(given or os.environ.get(VARIABLE) or BESIDE)


def read_folder(
    given: str | Path | None, file: str, only: str | None = None
) -> Iterator[dict[str, Any]]:
    """The lines of one data set, or of one of its tables, numbered from 0.

    Raises `ConfigError` on field "published" where it cannot be read or lacks a column.
    """
    path = published_folder(given) / file
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ConfigError(
            "published", path, f"{file} is not there; --published FOLDER or {VARIABLE} says where "
            "the data sets lie"
        ) from None  # fmt: skip
    lines = [line for line in csv.DictReader(text.splitlines()) if only in (None, line["table"])]
    try:
        return iter([_line(number, line) for number, line in enumerate(lines)])
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError("published", path, f"lacks or misprints a column ({error})") from None


def _line(number: int, line: dict[str, str]) -> dict[str, Any]:
    cut = next((key for key in _CUT if line["model"].startswith(key)), None)
    tp, cp, dp = int(line["tp"]), int(line["cp"]), int(line["dp"])
    found: dict[str, Any] = {
        "row": number,
        "table": line["table"],
        "size": line["model"].removeprefix("GPT ").split(" cut")[0],
        "layers": int(line["layers"]),
        "gpus": int(line["gpus"]),
        "tp": tp,
        "pp": int(line["pp"]),
        "cp": cp,
        "ep": int(line["ep"] or 1),
        "micro_batch_size": int(line["micro_batch"]),
        "global_batch": int(line["global_batch"]),
        "seq_len": int(line["seq_len"]),
        "recompute": _RECOMPUTE[line["activation_checkpointing"]],
        "sequence_parallel": line["sequence_parallel"] == "true",
        "iteration_time_s": float(line["iteration_time_s"]),
    }
    if line["memory_gib"]:
        found["memory_gib"] = float(line["memory_gib"])
    if cut is None:
        # Plain data parallelism: a dimension of replicas.
        found |= {"dp_replicate": dp, "dp_shard": 1, "vocab": int(line["vocab"])}
        found |= {key: int(line[key]) for key in ("hidden", "heads")}
        found["ffn"] = int(line["ffn_hidden"])
        return found
    kind, name = _CUT[cut]
    found |= {"dp_shard": dp, kind: name, "zero": 1 if dp * cp > 1 else 0}
    if kind == "config":
        del found["layers"]
    if cut.startswith("llama"):
        found["kv_heads"] = int(line["kv_heads"])
    if cp > 1:
        found["context"] = "ulysses"
    return found

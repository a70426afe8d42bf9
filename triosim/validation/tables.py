"""Published runs: sources with their citation, and their rows as training scenarios.

`data/sources.toml` says what a source is, how its table is read and which rows are left out.
"""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from triosim.errors import ConfigError, counted
from triosim.hardware.stacks import load_stack
from triosim.network.topology.describe import is_file_name
from triosim.network.topology.description import Description
from triosim.train import TrainScenario
from triosim.validation.folder import read_folder

DATA = files("triosim.validation") / "data"
COUNTED = ("kept", "marked")
STEP, LAYER = "step", "layer"
_FIELDS = {field.name for field in fields(TrainScenario)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Mean errors that were asked for, in percent: calibrated, its bias, with the generic stack."""

    calibrated: float
    bias: float
    generic: float


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """Rows without a prediction, by their numbers, and why."""

    rows: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Source:
    """A publication and how its rows are read.

    Either `table` names a file of this package, or `folder` one of the folder of published data,
    of which `only` picks a table. `kind` "train": rows are training scenarios; "pipeline" and
    "trace" have their own module and neither stack nor scenario. `stack` is the calibrated one,
    `compiled_stack` that of compiled rows. `operators` names the implementation of the code that
    ran where it is not the generic stack's, which is told so. `scenario` is what all rows share;
    `marks` are notes on rows that count with a doubt. `held_out` are the errors of model sizes that
    took no part in the fit, by `benchmarks.stacks`.
    """

    name: str
    title: str
    about: str
    citation: str
    kind: str = "train"
    stack: str = ""
    compiled_stack: str | None = None
    operators: str | None = None
    table: str | None = None
    folder: str | None = None
    only: str | None = None
    scenario: Mapping[str, Any]
    corrected: Mapping[str, Any]
    targets: Mapping[str, Target]
    assumptions: tuple[str, ...]
    known_failures: tuple[str, ...]
    held_out: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    marks: Mapping[str, str]

    @property
    def unidentified(self) -> tuple[str, ...]:
        """Constants of the source's stacks that were fitted and that its rows do not tell."""
        names = dict.fromkeys(name for name in (self.stack, self.compiled_stack) if name)
        stacks = [load_stack(name).unidentified.items() for name in names]
        return tuple(dict.fromkeys(f"{one}: {why}" for stack in stacks for one, why in stack))


@dataclass(frozen=True, kw_only=True)
class Row:
    """One published run.

    `number` counts from 0 in the source's collection; `size` is the model's, for splits that keep
    sizes together. `measured` says whether the time is a step's or one layer's forward and
    backward. `status`: kept, marked (counted, with a doubt) or shown (predicted, not counted).
    """

    source: str
    number: int
    where: str
    size: str
    scenario: TrainScenario
    measured: str
    published_s: float | None
    published_gib: float | None
    status: str
    note: str
    operators: str | None = None

    @property
    def counted(self) -> bool:
        return self.status in COUNTED

    @property
    def label(self) -> str:
        """The run in a few words, as in 405B, 512 GPUs, tp 8 pp 8, fp8-tensorwise."""
        s = self.scenario
        axes = ("dp_replicate", "dp_shard", "cp", "tp", "pp", "ep")
        mesh = " ".join(f"{a} {getattr(s, a)}" for a in axes if getattr(s, a) > 1)
        parts = [self.size, counted(s.gpus, "GPU"), mesh, f"micro-batch {s.micro_batch_size}"]
        if s.pp > 1:
            parts.append(s.schedule)
        parts += [s.precision, "compiled" if s.compiled else "", f"recompute {s.recompute}"]
        return ", ".join([part for part in parts if part] + (["async TP"] if s.async_tp else []))


def source_names() -> tuple[str, ...]:
    return tuple(_sources())


def load_source(name: str) -> Source:
    """The source of that name; `ConfigError` on field "source" names the known ones."""
    found = _sources().get(name)
    if found is None:
        raise ConfigError("source", name, f"no such source; known are {', '.join(_sources())}")
    return found


def rows_of(source: Source, folder: Path | None = None) -> tuple[Row, ...]:
    """The training scenarios of a source of kind "train", in the source's order.

    `folder` is where published data sets lie (see `triosim.validation.folder`). Raises
    `ConfigError` on field "published" where the source's is not there.
    """
    if source.table is not None:
        return tuple(_row(source, line) for line in read_table(source.table))
    assert source.folder is not None
    lines = read_folder(folder, source.folder, source.only)
    return tuple(_row(source, line) for line in lines)


@lru_cache(maxsize=1)
def _sources() -> dict[str, Source]:
    entries = tomllib.loads((DATA / "sources.toml").read_text(encoding="utf-8"))
    return {name: _source(name, entry) for name, entry in entries.items()}


def _source(name: str, entry: dict[str, Any]) -> Source:
    targets = {
        what: Target(calibrated=numbers[0], bias=numbers[1], generic=numbers[2])
        for what, numbers in entry.pop("targets", {}).items()
    }
    return Source(
        name=name,
        targets=targets,
        scenario=_with_files(entry.pop("scenario", {})),
        corrected=entry.pop("corrected", {}),
        assumptions=tuple(entry.pop("assumptions", ())),
        known_failures=tuple(entry.pop("known_failures", ())),
        held_out=tuple(entry.pop("held_out", ())),
        left_out=tuple(LeftOut(**item) for item in entry.pop("left_out", ())),
        marks=entry.pop("marks", {}),
        **entry,
    )


def _with_files(scenario: dict[str, Any]) -> dict[str, Any]:
    """Files beside the tables are named without their folder; of a network, what its file says."""
    found = {
        key: str(DATA / value) if is_file_name(str(value)) else value
        for key, value in scenario.items()
    }
    if is_file_name(str(found.get("machine"))):
        found["machine"] = Description.from_file(Path(found["machine"]))
    return found


def read_table(table: str) -> Iterator[dict[str, Any]]:
    """The lines of a table beside this file; empty cells are left out."""
    text = (DATA / table).read_text(encoding="utf-8")
    for line in csv.DictReader(io.StringIO(text)):
        yield {key: _value(text) for key, text in line.items() if text}


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _row(source: Source, line: dict[str, Any]) -> Row:
    told = _with_files({k: line[k] for k in line if k in _FIELDS})
    settings = {**source.scenario, **told, **source.corrected}
    if settings.get("config"):
        settings.pop("model", None)
    compiled = settings.get("compile") and source.compiled_stack
    scenario = TrainScenario(**{"stack": compiled or source.stack, **settings})
    mark = source.marks.get(str(line["row"]), "")
    status = str(line.get("status", "marked" if mark else "kept"))
    return Row(
        source=source.name,
        number=int(line["row"]),
        where=str(line.get("page", line.get("table", ""))),
        size=str(line["size"]),
        scenario=scenario,
        measured=str(line.get("measured", STEP)),
        published_s=_seconds(line, scenario),
        published_gib=line.get("memory_gib"),
        status=status,
        note="; ".join(note for note in (mark, str(line.get("note", ""))) if note),
        operators=source.operators,
    )


def _seconds(line: Mapping[str, Any], scenario: TrainScenario) -> float | None:
    """The published time of a step, or what the published tokens per second make it."""
    if "iteration_time_s" in line:
        return float(line["iteration_time_s"])
    if "tokens_per_s_per_gpu" not in line:
        return None
    assert scenario.global_batch is not None
    tokens = scenario.global_batch * scenario.sequence
    return tokens / (float(line["tokens_per_s_per_gpu"]) * scenario.gpus)

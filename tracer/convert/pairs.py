"""Find recordings in a folder: profiler files and the execution traces that belong to them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracer.convert.conversion import trace_name
from triosim.errors import TraceFormatError

SUFFIXES = (".json", ".json.gz")
# As in the original: data/profiler and data/graph; everything in one folder is as good.
PROFILER, GRAPH = "profiler", "graph"


@dataclass(frozen=True, kw_only=True, slots=True)
class Recording:
    """One profiler file; `graph` is its execution trace where there is one."""

    name: str
    profiler: Path
    graph: Path | None
    meta: dict[str, Any]


def find_recordings(folder: Path) -> list[Recording]:
    """profiler_NAME.json(.gz) with graph_NAME.json(.gz), in `folder` or its two sub-folders.

    Raises `TraceFormatError` where there is none.
    """
    profilers = {_key(path, PROFILER): path for path in _files(folder, PROFILER)}
    graphs = {_key(path, GRAPH): path for path in _files(folder, GRAPH)}
    if not profilers:
        raise TraceFormatError(
            f"{folder}: no profiler file; it should hold profiler_NAME.json and graph_NAME.json "
            "(or .json.gz)."
        )
    return [
        Recording(name=key, profiler=path, graph=graphs.get(key), meta=find_meta(path, key))
        for key, path in sorted(profilers.items())
    ]


def find_meta(profiler: Path, name: str) -> dict[str, Any]:
    """What the collector wrote about a recording: meta_NAME.json beside it, else meta.json."""
    folders = [profiler.parent]
    if profiler.parent.name == PROFILER:
        folders.append(profiler.parent.parent)
    for folder in folders:
        for file in (f"meta_{name}.json", "meta.json"):
            meta = _read_meta(folder / file)
            if meta is not None:
                return meta
    return {}


def _read_meta(path: Path) -> dict[str, Any] | None:
    try:
        meta = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError:
        return None
    except (ValueError, RecursionError) as error:
        raise TraceFormatError(f"{path.name}: not a JSON file ({error}).") from None
    return meta if isinstance(meta, dict) else None


def _files(folder: Path, kind: str) -> Iterator[Path]:
    for place in (folder, folder / kind):
        if place.is_dir():
            for path in sorted(place.iterdir()):
                if path.name.startswith(f"{kind}_") and path.name.endswith(SUFFIXES):
                    yield path


def _key(path: Path, kind: str) -> str:
    return trace_name(path.name.removeprefix(f"{kind}_"))

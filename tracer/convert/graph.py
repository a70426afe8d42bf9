"""What an execution trace (`ExecutionTraceObserver`) says: operators with their tensors.

Both layouts are read, told apart by their keys: flat (schema 1.0.0 and 1.0.1, `parent`, `inputs`)
and nested (since 1.0.2-chakra, `ctrl_deps`, `inputs.values`, `attrs`).
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tracer.convert.kineto import MODULE_RANGE
from tracer.convert.tensors import TensorRef, read_tensors

# The first version of torch that writes each schema; chakra suffixes are left off.
TORCH = {
    "1.0.0": "1.11 to 1.12", "1.0.1": "1.13 to 2.2", "1.0.2": "2.3", "1.0.3": "2.3 to 2.4",
    "1.1.0": "2.4", "1.1.1": "2.5 or later",
}  # fmt: skip
_SPECIAL = re.compile(
    r"\[pytorch\|profiler\|execution_(?:trace|graph)\|(process|thread)\]|ProfilerStep"
    rf"|## process_group|{MODULE_RANGE}"
)


@dataclass(slots=True, eq=False)
class Node:
    """One operator, annotation, thread or process of an execution trace."""

    id: int
    name: str
    parent: int
    rf_id: int  # 0: none
    sequence: int  # -1: none
    scope: int  # 0 function, 1 backward function, 7 annotation
    thread: int
    forward_thread: int
    inputs: tuple[TensorRef, ...]
    outputs: tuple[TensorRef, ...]
    schema: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_special(self) -> bool:
        """Process, thread, process group, step or module: no row in the profiler's sequence."""
        return bool(_SPECIAL.match(self.name))


@dataclass(kw_only=True)
class Graph:
    """An execution trace; `nodes` in the order of their ids, which is the order of their starts."""

    name: str
    header: dict[str, Any] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    layout: str = ""  # "flat" or "nested"
    repairs: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)

    @property
    def schema(self) -> str:
        return str(self.header.get("schema", ""))

    @property
    def torch(self) -> str:
        return TORCH.get(self.schema.split("-")[0], "")

    @property
    def thread_nodes(self) -> list[int]:
        return [n.id for n in self.nodes if n.name.endswith("|thread]")]


class GraphBuilder:
    """Takes the nodes of a file one by one."""

    def __init__(self, name: str) -> None:
        self.graph = Graph(name=name)
        self._ids: set[int] = set()

    def add(self, value: object) -> None:
        repairs = self.graph.repairs
        if not isinstance(value, dict) or type(value.get("id")) is not int:
            repairs["nodes without an id were left out"] += 1
            return
        if value["id"] in self._ids:
            repairs["nodes that stand twice were taken once"] += 1
            return
        self._ids.add(value["id"])
        nested = "attrs" in value or "ctrl_deps" in value
        self.graph.layout = self.graph.layout or ("nested" if nested else "flat")
        self.graph.nodes.append(_nested(value, repairs) if nested else _flat(value, repairs))

    def finish(self, header: dict[str, Any]) -> Graph:
        graph = self.graph
        graph.header = header
        graph.nodes.sort(key=lambda node: node.id)
        _mend(graph)
        if graph.schema and not graph.torch:
            graph.warnings.append(
                f"{graph.name}: schema {graph.schema} is not known; it was read by its keys."
            )
        return graph


def _flat(value: dict[str, Any], repairs: Counter[str]) -> Node:
    return _node(
        value,
        parent=value.get("parent"),
        fields=value,
        inputs=(value.get("inputs"), value.get("input_shapes"), value.get("input_types")),
        outputs=(value.get("outputs"), value.get("output_shapes"), value.get("output_types")),
        repairs=repairs,
        attributes={},
    )


def _nested(value: dict[str, Any], repairs: Counter[str]) -> Node:
    attributes = {}
    for entry in _list(value.get("attrs")):
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            attributes[entry["name"]] = entry.get("value")
    parent = value.get("ctrl_deps")
    if isinstance(parent, list):
        parent = parent[0] if parent else None
    return _node(
        value,
        parent=parent,
        fields=attributes,
        inputs=_columns(value.get("inputs")),
        outputs=_columns(value.get("outputs")),
        repairs=repairs,
        attributes=attributes if "collective_name" in attributes else {},
    )


def _columns(value: object) -> tuple[object, object, object]:
    if not isinstance(value, dict):
        return [], [], []
    return value.get("values"), value.get("shapes"), value.get("types")


def _node(
    value: dict[str, Any],
    *,
    parent: object,
    fields: Mapping[str, Any],
    inputs: Sequence[object],
    outputs: Sequence[object],
    repairs: Counter[str],
    attributes: Mapping[str, Any],
) -> Node:
    return Node(
        id=value["id"],
        name=sys.intern(str(value.get("name", ""))),
        parent=_integer(parent, 0),
        rf_id=_integer(fields.get("rf_id"), 0),
        sequence=_integer(fields.get("seq_id"), -1),
        scope=_integer(fields.get("scope"), 0),
        thread=_integer(fields.get("tid"), 0),
        forward_thread=_integer(fields.get("fw_tid"), 0),
        inputs=_tensors(inputs, repairs),
        outputs=_tensors(outputs, repairs),
        schema=sys.intern(str(fields.get("op_schema") or "")),
        attributes=attributes or _collective(value.get("name"), inputs),
    )


def _tensors(columns: Sequence[object], repairs: Counter[str]) -> tuple[TensorRef, ...]:
    values, shapes, types = map(_list, columns)
    return read_tensors(values, shapes, types, repairs)


def _collective(name: object, inputs: Sequence[object]) -> Mapping[str, Any]:
    """Before schema 1.1.0 a collective's name and group stand among its arguments."""
    if name != "record_param_comms":
        return {}
    found: dict[str, Any] = {}
    for value, kind in zip(_list(inputs[0]), _list(inputs[2]), strict=False):
        if kind == "String":
            found.setdefault("collective_name", value)
        elif kind == "Tuple[String,String]" and isinstance(value, list) and value:
            found.setdefault("pg_name", value[0])
    return found


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _integer(value: object, default: int) -> int:
    return value if type(value) is int else default


def _mend(graph: Graph) -> None:
    """Parents that do not exist, or that lead in a circle, become the process node (its own)."""
    parents = {node.id: node.parent for node in graph.nodes}
    rooted: set[int] = {node.id for node in graph.nodes if node.parent == node.id}
    root = min(rooted, default=0)
    by_id = {node.id: node for node in graph.nodes}
    for node in graph.nodes:
        path: list[int] = []
        on_path: set[int] = set()
        at = node.id
        while at not in rooted and at not in on_path and at in parents:
            path.append(at)
            on_path.add(at)
            at = parents[at]
        if at not in rooted and path:
            last = path[-1] if at not in parents else at
            kind = "lead in a circle" if at in parents else "do not exist"
            graph.repairs[f"parents of nodes that {kind} were replaced by the process"] += 1
            by_id[last].parent = parents[last] = root or last
        rooted.update(path)

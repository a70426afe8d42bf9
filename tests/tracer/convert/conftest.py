"""Recordings made by hand: a profiler file and an execution trace of a few operators."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def traces(shared: Path) -> Path:
    """Published and own recordings; see the index beside them."""
    return shared / "traces"


def row(name: str, start: float, length: float, **args: Any) -> dict[str, Any]:
    """An operator on thread 1; `tid` and `cat` go to the event, the rest to its arguments."""
    event = {"ph": "X", "cat": args.pop("cat", "cpu_op"), "name": name, "pid": 1}
    event |= {"tid": args.pop("tid", 1), "ts": start, "dur": length}
    return event | {"args": {key.replace("_", " "): value for key, value in args.items()}}


def kernel(
    correlation: int, launched: float, start: float, length: float, name: str = "k", tid: int = 1
) -> list[dict[str, Any]]:
    """A launch on a CPU thread and the kernel that it starts."""
    launch = {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": tid}
    launch |= {"ts": launched, "dur": 1, "args": {"correlation": correlation}}
    ran = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start}
    return [launch, ran | {"dur": length, "args": {"correlation": correlation}}]


def profile(*events: Any) -> bytes:
    """A profiler file of events and lists of events."""
    flat: list[Any] = []
    for event in events:
        flat.extend(event if isinstance(event, list) else [event])
    return json.dumps({"schemaVersion": 1, "traceEvents": flat}, indent=1).encode()


def tensor(number: int, *shape: int, storage: int | None = None) -> tuple[list[Any], list[int]]:
    """A float tensor as an execution trace writes it, and its shape."""
    numel = 1
    for length in shape:
        numel *= length
    place = number + 1 if storage is None else storage
    return [number, place, 0, numel, 4, "cuda:0"], list(shape)


def node(
    number: int,
    name: str,
    parent: int,
    inputs: Sequence[tuple[list[Any], list[int]]] = (),
    outputs: Sequence[tuple[list[Any], list[int]]] = (),
    **attributes: Any,
) -> dict[str, Any]:
    """A node in the nested layout; `rf_id` is the number unless given."""
    known = {"rf_id": number, "seq_id": -1, "scope": 0, "tid": 1, "fw_tid": 0, "op_schema": ""}
    return {
        "id": number,
        "name": name,
        "ctrl_deps": parent,
        "inputs": _side(inputs),
        "outputs": _side(outputs),
        "attrs": [{"name": key, "value": value} for key, value in {**known, **attributes}.items()],
    }


def _side(tensors: Sequence[tuple[list[Any], list[int]]]) -> dict[str, Any]:
    return {
        "values": [value for value, _ in tensors],
        "shapes": [shape for _, shape in tensors],
        "types": ["Tensor(float)"] * len(tensors),
    }


def graph(*nodes: dict[str, Any], schema: str = "1.1.1-chakra.0.0.4") -> bytes:
    """An execution trace with its process and its thread."""
    process = node(1, "[pytorch|profiler|execution_trace|process]", 1, scope=7, rf_id=0)
    thread = node(2, "[pytorch|profiler|execution_trace|thread]", 1, scope=7, rf_id=0)
    return json.dumps({"schema": schema, "pid": 1, "nodes": [process, thread, *nodes]}).encode()


@pytest.fixture(scope="session")
def make() -> Any:
    """The functions above, by name."""

    class Make:
        row = staticmethod(row)
        kernel = staticmethod(kernel)
        profile = staticmethod(profile)
        tensor = staticmethod(tensor)
        node = staticmethod(node)
        graph = staticmethod(graph)

    return Make


@pytest.fixture(scope="session")
def linear_step() -> tuple[bytes, bytes]:
    """One step of y = x w: forward, backward on a thread of its own, optimizer.

    x has 4 rows of 8, w is 2 by 8. Kernels of 10, 20 and 5 us.
    """
    x, w, y = tensor(10, 4, 8), tensor(12, 2, 8), tensor(14, 4, 2)
    dy, dw = tensor(16, 4, 2), tensor(18, 2, 8)
    evaluate = "autograd::engine::evaluate_function: "
    events = profile(
        row("aten::linear", 100, 20, Record_function_id=3, Sequence_number=7),
        row("aten::mm", 105, 10, Record_function_id=4),
        kernel(1, 106, 200, 10),
        row(evaluate + "MmBackward0", 130, 20, tid=2, Record_function_id=5, Sequence_number=7,
            Fwd_thread_id=1),
        row("MmBackward0", 131, 18, tid=2, Record_function_id=6, Sequence_number=7,
            Fwd_thread_id=1),
        row("aten::mm", 133, 10, tid=2, Record_function_id=7),
        kernel(2, 134, 210, 20, tid=2),
        row("Optimizer.step#SGD.step", 160, 20, cat="user_annotation", Record_function_id=8),
        row("aten::_foreach_add_", 165, 10, Record_function_id=9),
        kernel(3, 166, 232, 5),
    )  # fmt: skip
    schema = "aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor"
    nodes = graph(
        node(3, "aten::linear", 2, [x, w], [y], seq_id=7, op_schema=schema),
        node(4, "aten::mm", 3, [x, w], [y]),
        node(5, evaluate + "MmBackward0", 2, tid=2),
        node(6, "MmBackward0", 5, [dy], scope=1, seq_id=7, tid=2, fw_tid=1),
        node(7, "aten::mm", 6, [dy, x], [dw], tid=2),
        node(8, "Optimizer.step#SGD.step", 2, scope=7),
        node(9, "aten::_foreach_add_", 8, [w, dw]),
    )
    return events, nodes


@pytest.fixture
def changed(linear_step: tuple[bytes, bytes]) -> Callable[..., bytes]:
    """The step's profiler file after a change to its list of events."""

    def change(edit: Callable[[list[dict[str, Any]]], Any]) -> bytes:
        content = json.loads(linear_step[0])
        edited = edit(content["traceEvents"])
        if edited is not None:
            content["traceEvents"] = edited
        return json.dumps(content).encode()

    return change

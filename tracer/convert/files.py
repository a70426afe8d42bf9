"""Say what kind of file a file is, and read it as that."""

from __future__ import annotations

from collections.abc import Iterator

from tracer.convert.graph import Graph, GraphBuilder
from tracer.convert.jsonstream import Item, Reader
from tracer.convert.kineto import Profile, ProfileBuilder
from tracer.convert.source import MAX_BYTES, Data, Source, name_of
from triosim.errors import TraceFormatError

EVENTS = "traceEvents"
NODES = "nodes"
_HEADER_LISTS = ("deviceProperties", "distributedInfo")
_MAX_HEADER_TEXT = 2_000  # characters of a text in the header


def read_file(
    data: Data, *, name: str | None = None, default: str = "file", max_bytes: int = MAX_BYTES
) -> Profile | Graph:
    """A profiler file or an execution trace, whichever it is.

    Raises `TraceFormatError` for anything else, saying what it seems to be.
    """
    source = Source(name=name or name_of(data, default), data=data, max_bytes=max_bytes)
    header: dict[str, object] = {}
    items = Reader(source).items(frozenset({EVENTS, NODES}))
    builder: ProfileBuilder | GraphBuilder | None = None
    for item in _checked(items, source.name):
        if item.index is None:
            if item.key in (EVENTS, NODES) and builder is None:
                builder = _builder(item.key, source.name)
            else:
                header[item.key] = _kept(item)
        elif builder is None:
            builder = _builder(EVENTS, source.name)
            builder.add(item.value)
        else:
            builder.add(item.value)
    if builder is None:
        raise TraceFormatError(_unknown(source.name, header))
    found = builder.finish(header)
    found.repairs.update(source.repairs)
    return found


def _kept(item: Item) -> object:
    """A value of the header; None for long ones, of which only the key is of interest."""
    if item.key in _HEADER_LISTS or isinstance(item.value, int | float):
        return item.value
    return item.value[:_MAX_HEADER_TEXT] if isinstance(item.value, str) else None


def _checked(items: Iterator[Item], name: str) -> Iterator[Item]:
    """The two long arrays must be arrays."""
    for item in items:
        if item.index is None and item.key in (EVENTS, NODES) and not isinstance(item.value, list):
            raise TraceFormatError(
                f"{name}: {item.key} is {type(item.value).__name__}; it should be a list."
            )
        yield item


def _builder(key: str, name: str) -> ProfileBuilder | GraphBuilder:
    return ProfileBuilder(name) if key == EVENTS else GraphBuilder(name)


def _unknown(name: str, header: dict[str, object]) -> str:
    if "workload_graph" in header:
        return (
            f"{name}: a Chakra workload graph, not a PyTorch execution trace; give the file that "
            "ExecutionTraceObserver wrote."
        )
    keys = ", ".join(sorted(header)[:8]) or "nothing"
    if header.get("schema"):
        return f"{name}: an execution trace without nodes (it has {keys[:200]})."
    return (
        f"{name}: neither a profiler file (traceEvents) nor an execution trace (nodes); it has "
        f"{keys[:200]}."
    )

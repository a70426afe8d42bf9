"""Chakra's messages on the wire, as far as they are used here, and files of them.

Field numbers are those of the schema's version 0.0.4 (package ChakraProtoMsg); what is left out
(inputs and outputs of a node, lists as attributes) is passed over. A file is one GlobalMetadata,
then the nodes, each with its length in front as a varint.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple

from triosim.errors import ConfigError, TraceFormatError

VERSION = "0.0.4"
MAX_NODES = 2_000_000


class Kind(IntEnum):
    """NodeType."""

    INVALID = 0
    METADATA = 1
    MEM_LOAD = 2
    MEM_STORE = 3
    COMP = 4
    COMM_SEND = 5
    COMM_RECV = 6
    COMM_COLL = 7


# CollectiveCommType, by the names of operations here; what has no name there is not simulated.
COLLECTIVES: Mapping[str, int] = {
    "all-reduce": 0, "reduce": 1, "all-gather": 2, "broadcast": 5, "all-to-all": 6,
    "reduce-scatter": 7,
}  # fmt: skip

# Kinds of values that an attribute may have, with the numbers of their fields; by protobuf's names.
_SCALARS = {
    "double": 3, "float": 5, "int32": 7, "int64": 9, "uint32": 11, "uint64": 13, "sint32": 15,
    "sint64": 17, "fixed32": 19, "fixed64": 21, "sfixed32": 23, "sfixed64": 25, "bool": 27,
    "string": 29,
}  # fmt: skip


class Messages(NamedTuple):
    """The classes of the messages."""

    metadata: Any
    node: Any
    attribute: Any


@lru_cache(maxsize=1)
def messages() -> Messages:
    """Built once; raises `ConfigError` where protobuf is not installed."""
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        legal = "need protobuf: pip install 'triosim[chakra]'"
        raise ConfigError("chakra", "traces", legal) from None
    file = descriptor_pb2.FileDescriptorProto(
        name="triosim_chakra.proto", package="ChakraProtoMsg", syntax="proto3"
    )

    def add(message: Any, name: str, number: int, kind: str, *, many: bool = False) -> Any:
        field = message.field.add(name=name, number=number, label=3 if many else 1)
        if kind.startswith("."):
            field.type, field.type_name = field.TYPE_MESSAGE, kind
        else:
            field.type = getattr(field, f"TYPE_{kind.upper()}")
        return field

    attribute = file.message_type.add(name="AttributeProto")
    add(attribute, "name", 1, "string")
    attribute.oneof_decl.add(name="value")
    for kind, number in _SCALARS.items():
        add(attribute, f"{kind}_val", number, kind).oneof_index = 0
    metadata = file.message_type.add(name="GlobalMetadata")
    add(metadata, "version", 1, "string")
    add(metadata, "attr", 2, ".ChakraProtoMsg.AttributeProto", many=True)
    node = file.message_type.add(name="Node")
    add(node, "id", 1, "uint64")
    add(node, "name", 2, "string")
    add(node, "type", 3, "int32")  # an enum is a varint as well, and this one may grow
    add(node, "ctrl_deps", 4, "uint64", many=True)
    add(node, "data_deps", 5, "uint64", many=True)
    add(node, "start_time_micros", 6, "uint64")
    add(node, "duration_micros", 7, "uint64")
    add(node, "attr", 10, ".ChakraProtoMsg.AttributeProto", many=True)
    pool = descriptor_pool.DescriptorPool()  # of its own: others may know the same names
    pool.Add(file)
    return Messages(
        *(
            message_factory.GetMessageClass(pool.FindMessageTypeByName(f"ChakraProtoMsg.{name}"))
            for name in ("GlobalMetadata", "Node", "AttributeProto")
        )
    )


def attributes(**values: tuple[str, object]) -> list[Any]:
    """Attribute messages from names with the kind and the value of each."""
    return [
        messages().attribute(name=name, **{f"{kind}_val": value})
        for name, (kind, value) in values.items()
    ]


def values_of(attrs: Iterable[Any]) -> dict[str, Any]:
    """The attributes that have one value, by name."""
    found = {}
    for attr in attrs:
        kind = attr.WhichOneof("value")
        if kind is not None:
            found[attr.name] = getattr(attr, kind)
    return found


def packed(metadata: Any, nodes: Iterable[Any]) -> bytes:
    """A file."""
    from google.protobuf.proto import serialize_length_prefixed

    file = io.BytesIO()
    for message in (metadata, *nodes):
        serialize_length_prefixed(message, file)
    return file.getvalue()


def unpacked(name: str, data: bytes) -> tuple[Any, list[Any]]:
    """The metadata and the nodes of a file; raises `TraceFormatError`."""
    metadata, node, _ = messages()
    from google.protobuf.message import DecodeError
    from google.protobuf.proto import parse_length_prefixed

    file = io.BytesIO(data)
    nodes: list[Any] = []
    try:
        head = parse_length_prefixed(metadata, file)
        while (one := parse_length_prefixed(node, file)) is not None:
            nodes.append(one)
            if len(nodes) > MAX_NODES:
                raise TraceFormatError(f"{name}: more than {MAX_NODES:,} nodes.")
    except (DecodeError, EOFError, OverflowError, ValueError) as error:
        if isinstance(error, TraceFormatError):
            raise
        raise TraceFormatError(
            f"{name}: not a Chakra trace: message {len(nodes) + 1} cannot be read, at byte "
            f"{file.tell()} of {len(data)}."
        ) from None
    if head is None or not nodes:
        raise TraceFormatError(f"{name}: a Chakra trace without nodes.")
    return head, nodes

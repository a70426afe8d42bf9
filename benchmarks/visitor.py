"""A session of the dashboard without a browser: Streamlit's messages over its websocket."""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

PATIENCE_S = 120.0  # before a move counts as lost
MOVABLE = ("slider", "number_input")
ENDED = (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY)


@dataclass(frozen=True, kw_only=True)
class Trip:
    """Where a session goes and what it moves there.

    `moves` are keys of sliders, or of number fields with the numbers to choose from; without any,
    every slider of the page is moved. `press` is a button to press on arrival.
    """

    page: str
    query: str = ""
    moves: dict[str, tuple[float, ...]] = field(default_factory=dict)
    press: str = ""

    @property
    def name(self) -> str:
        return f"{self.page}?{self.query}"[:40].rstrip("?")


@dataclass(frozen=True)
class Widget:
    """A widget as the page sent it, and the fragment that it reruns."""

    kind: str
    proto: Any
    fragment: str

    @property
    def key(self) -> str:
        """The id is "$$ID-", a hash, "-" and the key."""
        return self.proto.id.split("-", 2)[-1]


@dataclass
class Visitor:
    """A session on a page; `run` returns once the script has ended."""

    trip: Trip
    seed: int
    widgets: dict[str, Widget] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    sentences: int = 0
    received_bytes: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._query = {name: texts[0] for name, texts in parse_qs(self.trip.query).items()}
        self._hash = ""
        self._cached: set[str] = set()

    async def open(self, address: str) -> None:
        """Arrive at the page; `address` is host and port."""
        url = f"ws://{address}/_stcore/stream"
        self._socket: ClientConnection = await connect(
            url, subprotocols=["streamlit"], max_size=None, open_timeout=PATIENCE_S
        )
        await self.run()
        if self.trip.press:
            state = WidgetState(trigger_value=True)
            await self.run(state, self._found(self.trip.press))

    async def close(self) -> None:
        await self._socket.close()

    async def move(self) -> None:
        """Put one of the sliders elsewhere and wait until the script has ended."""
        widget = self._chosen()
        state = WidgetState()
        if widget.kind == "number_input":
            value = self._random.choice(self.trip.moves[widget.key])
            state.double_value = value
            text = f"{value:g}"
        elif widget.proto.options:
            text = self._random.choice(widget.proto.options)
            state.string_array_value.data.append(text)
        else:
            values = [self._somewhere(widget.proto) for _ in widget.proto.default]
            state.double_array_value.data.extend(sorted(values))
            text = f"{values[0]:g}"
        if widget.proto.query_param_key and not state.double_array_value.data[1:]:
            self._query[widget.proto.query_param_key] = text
        await self.run(state, widget)

    def _chosen(self) -> Widget:
        keys = self.trip.moves or [k for k, w in self.widgets.items() if w.kind == "slider"]
        found = [self.widgets[key] for key in keys if key in self.widgets]
        if not found:
            raise LookupError(f"{self.trip.name} has nothing to move")
        return self._random.choice(found)

    def _somewhere(self, slider: Any) -> float:
        steps = round((slider.max - slider.min) / slider.step)
        return slider.min + slider.step * self._random.randint(0, steps)

    def _found(self, label: str) -> Widget:
        return next(widget for widget in self.widgets.values() if widget.proto.label == label)

    async def run(self, state: WidgetState | None = None, widget: Widget | None = None) -> float:
        """Run the script as a browser would have it run; how long that took, in seconds."""
        client = ClientState(
            query_string=urlencode(self._query),
            page_script_hash=self._hash,
            page_name="" if self._hash else self.trip.page,
            cached_message_hashes=self._cached,
        )
        if state is not None and widget is not None:
            state.id = widget.proto.id
            client.widget_states.widgets.append(state)
            client.fragment_id = widget.fragment
        began = time.perf_counter()
        await self._socket.send(BackMsg(rerun_script=client).SerializeToString())
        async with asyncio.timeout(PATIENCE_S):
            while not self._read(await self._socket.recv()):
                pass
        return time.perf_counter() - began

    def _read(self, data: str | bytes) -> bool:
        """Take in a message; whether it says that the script has ended."""
        assert isinstance(data, bytes)
        self.received_bytes += len(data)
        message = ForwardMsg.FromString(data)
        if message.metadata.cacheable:
            self._cached.add(message.hash)
        kind = message.WhichOneof("type")
        if kind == "new_session":
            if not message.metadata.run.fragment_ids:
                self.widgets.clear()
        elif kind == "navigation":
            self._hash = message.navigation.page_script_hash
        elif kind == "page_info_changed":
            texts = parse_qs(message.page_info_changed.query_string)
            self._query = {name: each[0] for name, each in texts.items()}
        elif kind == "page_not_found":
            self.problems.append("page not found")
        elif kind == "delta":
            self._take(message.delta)
        return kind == "script_finished" and message.script_finished in ENDED

    def _take(self, delta: Any) -> None:
        element = delta.new_element
        kind = element.WhichOneof("type")
        if kind == "exception":
            self.problems.append(f"{element.exception.type}: {element.exception.message}")
        elif kind == "alert" and element.alert.format == element.alert.ERROR:
            self.sentences += 1
        elif kind in (*MOVABLE, "button"):
            widget = Widget(kind, getattr(element, kind), delta.fragment_id)
            self.widgets[widget.key] = widget

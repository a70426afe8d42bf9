"""What a profiler file (Kineto, `export_chrome_trace`) says, one row per event that matters here.

Times become whole nanoseconds. Stack rows (`python_function`) and flow arrows are passed over while
reading; the collector's ranges around modules are kept apart. Nothing is required of a kernel but
its name and its time.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_MICROSECONDS = 4e15  # the year 2096; beyond it nanoseconds leave 64 bits
MAX_ROWS = 20_000_000
MODULE_RANGE = "triosim module: "  # and the path: how the collector names its ranges
_OPERATORS = frozenset({"cpu_op", "operator"})
_ANNOTATIONS = frozenset({"user_annotation"})
_KERNELS = frozenset({"kernel"})
_COPIES = frozenset({"gpu_memcpy", "gpu_memset", "memcpy", "memset"})
_TIME = "rows without a usable time were left out"


@dataclass(slots=True, eq=False)
class Row:
    """One row of a CPU thread: an operator or an annotation. `parent` is found by nesting."""

    name: str
    thread: int
    start: int  # ns
    end: int  # ns
    order: int  # position in the file
    annotation: bool
    index: int  # "Ev Idx"; -1: none
    external_id: int
    rf_id: int  # "Record function id"; 0: none
    sequence: int  # "Sequence number"; -1: none
    forward_thread: int  # "Fwd thread id"
    dims: Any = None
    types: Any = None
    collective: Mapping[str, Any] | None = None
    parent: Row | None = None


@dataclass(slots=True, eq=False)
class Launch:
    """A call of the CUDA or HIP runtime or driver."""

    name: str
    thread: int
    start: int
    end: int
    row: Row | None = None


@dataclass(slots=True, eq=False)
class Kernel:
    """A kernel on the GPU. `row` is the innermost operator or annotation that launched it."""

    name: str
    start: int
    end: int
    correlation: int  # 0: none
    external_id: int
    stream: str
    collective: Mapping[str, Any] | None = None
    launch: Launch | None = None
    row: Row | None = None
    reason: str = ""  # why `row` is None


@dataclass(kw_only=True)
class Profile:
    """A profiler file. `header` holds the values beside traceEvents."""

    name: str
    header: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    module_ranges: list[Row] = field(default_factory=list)
    launches: dict[int, Launch] = field(default_factory=dict)
    kernels: list[Kernel] = field(default_factory=list)
    copy_ns: int = 0  # gpu_memcpy and gpu_memset
    copies: int = 0
    events: int = 0
    unusable_kernels: int = 0
    whole_microseconds: bool = True
    threads: dict[tuple[str, str], int] = field(default_factory=dict)
    repairs: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)

    @property
    def gpu(self) -> str:
        """The name of the GPU that the kernels ran on; "" where the file does not say."""
        devices = self.header.get("deviceProperties")
        if isinstance(devices, list) and devices and isinstance(devices[0], dict):
            return str(devices[0].get("name", ""))
        return ""


class ProfileBuilder:
    """Takes the events of a file one by one."""

    def __init__(self, name: str) -> None:
        self.profile = Profile(name=name)
        self._seen: set[tuple[object, ...]] = set()

    def add(self, event: object) -> None:
        profile = self.profile
        profile.events += 1
        if not isinstance(event, dict):
            profile.repairs["events that are no objects were left out"] += 1
            return
        if event.get("ph") != "X":
            return
        category = str(event.get("cat", "")).lower()
        add: Callable[[dict[str, Any], int, int], None]
        if category in _OPERATORS or category in _ANNOTATIONS:
            add = self._row
        elif category in _KERNELS:
            add = self._kernel
        elif category.endswith(("runtime", "driver")):
            add = self._launch
        elif category in _COPIES:
            add = self._copy
        else:
            return
        start = self._nanoseconds(event.get("ts"), signed=True)
        duration = self._nanoseconds(event.get("dur"), signed=False)
        if start is None or duration is None:
            profile.repairs[_TIME] += 1
            profile.unusable_kernels += category in _KERNELS
            return
        add(event, start, start + duration)

    def finish(self, header: dict[str, Any]) -> Profile:
        self.profile.header = header
        self._seen.clear()
        return self.profile

    def _nanoseconds(self, value: object, *, signed: bool) -> int | None:
        if type(value) is str:
            try:
                value = float(value)
            except ValueError:
                return None
            self.profile.repairs["times written as text were read as numbers"] += 1
        if type(value) is int:
            if not -MAX_MICROSECONDS < value < MAX_MICROSECONDS or (value < 0 and not signed):
                return None
            return value * 1000
        if type(value) is not float or not math.isfinite(value):
            return None
        if not -MAX_MICROSECONDS < value < MAX_MICROSECONDS or (value < 0 and not signed):
            return None
        self.profile.whole_microseconds &= value == int(value)
        return round(value * 1000)

    def _is_new(self, *key: object) -> bool:
        if key in self._seen:
            self.profile.repairs["events that stand twice were taken once"] += 1
            return False
        if len(self._seen) >= MAX_ROWS:
            return True
        self._seen.add(key)
        return True

    def _thread(self, event: dict[str, Any]) -> int:
        key = (str(event.get("pid", "")), str(event.get("tid", "")))
        return self.profile.threads.setdefault(key, len(self.profile.threads))

    def _row(self, event: dict[str, Any], start: int, end: int) -> None:
        args = _args(event)
        name = _name(event)
        thread = self._thread(event)
        index = _integer(args.get("Ev Idx"), -1)
        external = _integer(args.get("External id", args.get("external id")), 0)
        if (index >= 0 or external) and not self._is_new(name, thread, start, end, index, external):
            return
        ranges = self.profile.module_ranges
        rows = ranges if name.startswith(MODULE_RANGE) else self.profile.rows
        rows.append(
            Row(
                name=name,
                thread=thread,
                start=start,
                end=end,
                order=len(self.profile.rows) + len(ranges),
                annotation=event["cat"].lower() in _ANNOTATIONS,
                index=index,
                external_id=external,
                rf_id=_integer(args.get("Record function id"), 0),
                sequence=_integer(args.get("Sequence number"), -1),
                forward_thread=_integer(args.get("Fwd thread id"), 0),
                dims=args.get("Input Dims", args.get("Input dims")),
                types=args.get("Input type"),
                collective=args if "Collective name" in args else None,
            )
        )

    def _kernel(self, event: dict[str, Any], start: int, end: int) -> None:
        args = _args(event)
        correlation = _integer(args.get("correlation"), 0)
        stream = f"{event.get('pid')}/{args.get('stream', event.get('tid'))}"
        name = _name(event)
        if not self._is_new(name, stream, start, end, correlation):
            return
        self.profile.kernels.append(
            Kernel(
                name=name,
                start=start,
                end=end,
                correlation=correlation,
                external_id=_integer(args.get("External id", args.get("external id")), 0),
                stream=stream,
                collective=args if "Collective name" in args else None,
            )
        )

    def _launch(self, event: dict[str, Any], start: int, end: int) -> None:
        correlation = _integer(_args(event).get("correlation"), 0)
        if correlation:
            self.profile.launches.setdefault(
                correlation, Launch(_name(event), self._thread(event), start, end)
            )

    def _copy(self, event: dict[str, Any], start: int, end: int) -> None:
        self.profile.copies += 1
        self.profile.copy_ns += end - start


def _args(event: dict[str, Any]) -> dict[str, Any]:
    args = event.get("args")
    return args if isinstance(args, dict) else {}


def _name(event: dict[str, Any]) -> str:
    """Names repeat, so each text is kept once."""
    return sys.intern(str(event.get("name", "")))


def _integer(value: object, default: int) -> int:
    return value if type(value) is int else default

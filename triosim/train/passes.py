"""One pass of one part of the model, simulated on its own: kernels, their launches, transfers.

A pass is written twice, one after the other, and the second one is measured: by then the CPU is as
far ahead of the GPU (or behind it) as it stays over many layers. Transfers inside a pass take their
planned time on quiet links; what the rest of the step moves meanwhile is the step's program.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from triosim.analysis.breakdown import ROUNDING, SLOWDOWN, break_down
from triosim.engine.executor import execute
from triosim.engine.program import LAUNCH_PHASE, Part, Program, RankClass
from triosim.engine.timeline import Timeline
from triosim.network.links import Load
from triosim.train.costs import Costs
from triosim.train.network import Wires

_EPSILON = 1e-12
Kind = tuple[str, tuple[str, str]]  # class of the breakdown, and the key of a `Part`


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """Transfers of one kind inside a pass: how many, what a rank sends, how long they take."""

    transfers: int = 0
    sent_bytes: float = 0.0
    busy_s: float = 0.0

    def plus(self, sent_bytes: float, busy_s: float) -> Moved:
        return Moved(
            transfers=self.transfers + 1,
            sent_bytes=self.sent_bytes + sent_bytes,
            busy_s=self.busy_s + busy_s,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Pass:
    """What one pass takes. `parts` sum to `seconds`; tasks from `first` on are it in `timeline`."""

    seconds: float
    parts: tuple[Part, ...]
    moved: Mapping[tuple[str, str], Moved]
    kernels: int
    timeline: Timeline | None
    first: int
    begin_s: float

    def rows(self) -> Iterator[tuple[str, str, str, float, float]]:
        """Stream, name, phase, start and end of what the pass runs, from its begin on."""
        timeline = self.timeline
        if timeline is None:
            return
        program = timeline.program
        for t in range(self.first, len(program)):
            start, end = (float(x[t]) - self.begin_s for x in (timeline.start_s, timeline.end_s))
            stream = program.streams[program.stream[t]].name
            yield stream, program.name[t], program.phase[t], start, end


NO_PASS = Pass(seconds=0.0, parts=(), moved={}, kernels=0, timeline=None, first=0, begin_s=0.0)


class Step(Protocol):
    """One item of a pass: it writes kernels and transfers."""

    def write(self, writer: PassWriter, costs: Costs, wires: Wires) -> None: ...


class PassWriter:
    """Appends kernels and transfers of one rank; each kernel waits for all transfers before it.

    A transfer waits for the kernel before it unless told otherwise. Two writers `beside` each other
    share the rank and its streams, and wait for their own work only.
    """

    def __init__(self, program: Program, costs: Costs, beside: PassWriter | None = None) -> None:
        self.program = program
        self._costs = costs
        self._class: int = (
            program.add_class(RankClass(members=(0,))) if beside is None else beside._class
        )
        self.before: tuple[int, ...] = ()
        """What a transfer that starts now has to wait for."""
        self._graph: tuple[int, ...] = ()
        self._pending: list[int] = []
        self.kernels = 0

    def begin(self) -> None:
        """A pass: as a CUDA graph its launch is one for all kernels."""
        if self._costs.cuda_graphs:
            self._graph = (self.program.launch(self._class, "graph", self._costs.graph_s),)

    def resume(self, seconds: float) -> None:
        """A graph has ended; the CPU is busy until it has called the next one."""
        self.program.launch(self._class, "graph break", seconds)
        self.begin()

    def _launched(self, name: str, seconds: float) -> tuple[int, ...]:
        if self._costs.cuda_graphs:
            return self._graph
        return (self.program.launch(self._class, name, seconds),)

    def calls(self, seconds: float) -> None:
        """Modules, views and autograd's nodes keep the CPU busy and launch nothing."""
        if seconds and not self._costs.cuda_graphs:
            self.program.launch(self._class, "calls", seconds)

    def kernel(self, name: str, phase: str, seconds: float, waits: Iterable[int] = ()) -> int:
        """A kernel at the end of the compute stream."""
        self.kernels += 1
        launched = self._launched(name, self._costs.launch_s)
        waits = (*launched, *self._pending, *waits)
        self._pending.clear()
        task = self.program.compute(self._class, name, phase, seconds, waits)
        self.before = (task,)
        return task

    def transfer(
        self,
        name: str,
        phase: str,
        purpose: str,
        seconds: float,
        *,
        size_bytes: float,
        sent_bytes: float,
        waits: Iterable[int] | None = None,
        awaited: bool = True,
    ) -> int:
        """A collective on the stream of its purpose."""
        launched = self._launched(name, self._costs.collective_s)
        after = self.before if waits is None else tuple(waits)
        load = Load(bytes_by_link=(), latency_s=seconds, sent_bytes=sent_bytes)
        [task] = self.program.communicate(
            [(self._class, purpose, phase)], name, purpose, size_bytes, load, [(*launched, *after)]
        )
        if awaited:
            self.await_transfer(task)
        return task

    @property
    def waiting(self) -> bool:
        """Whether the next kernel has to wait for a transfer."""
        return bool(self._pending)

    def await_transfer(self, task: int) -> None:
        """Let the next kernel wait for a transfer."""
        self._pending.append(task)

    def end(self) -> None:
        """What is still moving must have arrived before the next pass begins."""
        self.before = (*self.before, *self._pending)

    def meet(self, other: PassWriter) -> None:
        """The same for two writers: neither goes on before both have ended."""
        self._pending += other._pending
        other._pending = list(self._pending)
        self.before = other.before = (*self.before, *other.before, *self._pending)


def simulate_pass(steps: Sequence[Step], costs: Costs, wires: Wires) -> Pass:
    """The second of two equal passes."""
    if not steps:
        return NO_PASS
    program = Program(overlap_slowdown=costs.stack.overlap_slowdown.value)
    writer = PassWriter(program, costs)
    first = 0
    for _ in range(2):
        first = len(program)
        writer.kernels = 0
        writer.begin()
        for step in steps:
            step.write(writer, costs, wires)
        writer.end()
    return measure(execute(program), first, writer.kernels)


def measure(timeline: Timeline, first: int, kernels: int) -> Pass:
    """Cut the second pass out of the timeline: from the last end of the first one's work."""
    program = timeline.program
    work = [t for t in range(first) if program.phase[t] != LAUNCH_PHASE]
    begin = float(timeline.end_s[work].max())
    sums: dict[Kind, float] = {}
    for gap in break_down(timeline, 0).gaps:
        if gap.start_s >= begin - _EPSILON and gap.seconds > 0:
            exposed = gap.kind == "exposed_communication"
            _add(
                sums,
                (gap.kind, _kind_of(timeline, gap.cause) if exposed else ("", "")),
                gap.seconds,
            )
    moved: dict[tuple[str, str], Moved] = {}
    for t in range(first, len(program)):
        seconds = float(timeline.end_s[t] - timeline.start_s[t])
        if program.transfer[t] >= 0:
            kind = _kind_of(timeline, t)
            moved[kind] = moved.get(kind, Moved()).plus(program.sent_bytes[t], seconds)
        elif program.phase[t] != LAUNCH_PHASE:
            alone = program.duration_s[t] if program.overlap_slowdown else seconds
            _add(sums, ("compute", (program.phase[t], "")), alone)
            if seconds - alone > ROUNDING * timeline.total_s:
                _add(sums, ("compute", (SLOWDOWN, "")), seconds - alone)
    return Pass(
        seconds=sum(sums.values()),
        parts=tuple(Part(*kind, seconds) for kind, seconds in sums.items()),
        moved=moved,
        kernels=kernels,
        timeline=timeline,
        first=first,
        begin_s=begin,
    )


def _add(sums: dict[Kind, float], kind: Kind, seconds: float) -> None:
    sums[kind] = sums.get(kind, 0.0) + seconds


def _kind_of(timeline: Timeline, task: int) -> tuple[str, str]:
    program = timeline.program
    return program.phase[task], program.purpose[program.transfer[task]]

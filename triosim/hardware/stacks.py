"""The software stacks of data/stacks.toml: constants with a range and a source, validated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

from triosim.catalogue import check_keys, inherited, read_data, source
from triosim.errors import ConfigError

RANGED = (
    "gemm", "attention", "attention_backward", "memory", "fp8_rowwise", "launch_us",
    "compiled_launch_us", "layer_calls", "collective_us", "hop_us", "graph_us", "cpu_jitter",
    "host_gb_per_s", "overhead_gib", "overlap_slowdown", "reserved",
)  # fmt: skip
# Shares of a rate. Of these, the clock and the host link more is faster, of the others less; memory
# does not change the time.
SHARES = ("gemm", "attention", "attention_backward", "memory", "fp8_rowwise")
_RATES = (*SHARES, "clock", "host_gb_per_s")
_TIMELESS = ("overhead_gib", "reserved")
_PLAIN: Mapping[str, type] = {
    "compile": bool, "implementation": str, "compiled_implementation": str,
    "parameter_bytes": int, "gradient_bytes": int, "optimizer_bytes": int, "reduce_bytes": int,
    "persistent_gradients": bool, "keep_gathered": bool, "fused_optimizer": bool,
    "fp8_gather": bool, "split_sends": bool, "compiled_ends": bool, "compiled_loss": bool,
    "ring_in_turn": bool, "receive_buffers": bool, "accumulate_bytes": int,
    "async_input_gradients": bool, "overlapped_reduction": bool,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Constant:
    """A number that is known to lie between two others."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Stack:
    """What a code base makes of a GPU; see data/stacks.toml for what each constant means.

    `sources` says where the numbers are from; "bytes" is for all of the *_bytes per parameter.
    """

    name: str
    about: str
    compile: bool
    implementation: str
    compiled_implementation: str
    gemm: Constant
    attention: Constant
    attention_backward: Constant
    memory: Constant
    fp8_rowwise: Constant
    launch_us: Constant
    compiled_launch_us: Constant
    layer_calls: Constant
    collective_us: Constant
    hop_us: Constant
    graph_us: Constant
    cpu_jitter: Constant
    host_gb_per_s: Constant
    overhead_gib: Constant
    overlap_slowdown: Constant
    reserved: Constant
    parameter_bytes: int
    gradient_bytes: int
    optimizer_bytes: int
    reduce_bytes: int
    persistent_gradients: bool
    keep_gathered: bool
    fused_optimizer: bool
    fp8_gather: bool
    split_sends: bool
    compiled_ends: bool
    compiled_loss: bool
    ring_in_turn: bool
    receive_buffers: bool
    accumulate_bytes: int
    async_input_gradients: bool
    overlapped_reduction: bool
    clock: Mapping[str, Constant] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)

    def clock_of(self, gpu: str) -> float:
        """The share of a GPU's peak that its power limit leaves in long runs."""
        return self.clock[gpu].value if gpu in self.clock else 1.0

    @property
    def unidentified(self) -> Mapping[str, str]:
        """Constants whose fit ended on a bound, or that the rows hardly tell, and why."""
        mark = "fitted, unidentified: "
        return {n: s.removeprefix(mark) for n, s in self.sources.items() if s.startswith(mark)}

    def changed(self, constants: Mapping[str, float]) -> Stack:
        """The same stack with some constants known to be other values."""
        exact: dict[str, Any] = {
            name: Constant(value, value, value) for name, value in constants.items()
        }
        return replace(self, **exact)

    def at_end(self, *, fast: bool) -> Stack:
        """The same stack with every constant that changes the time at one end of its range."""

        def end(name: str, constant: Constant) -> Constant:
            high = fast == (name in _RATES)
            return replace(constant, value=constant.high if high else constant.low)

        moved: dict[str, Any] = {
            name: end(name, getattr(self, name)) for name in RANGED if name not in _TIMELESS
        }
        clock = {gpu: end("clock", constant) for gpu, constant in self.clock.items()}
        return replace(self, **moved, clock=clock)


def load_stack(name: str) -> Stack:
    """The stack of that name; `ConfigError` on field "stack" names the known ones."""
    found = _catalogue().get(name.strip().casefold()) if isinstance(name, str) else None
    if found is None:
        raise ConfigError("stack", name, f"no such stack; known are {', '.join(_catalogue())}")
    return found


def stack_names() -> dict[str, str]:
    """Every stack's name with a line on what it is, in the order of the data file."""
    return {name: stack.about for name, stack in _catalogue().items()}


@lru_cache(maxsize=1)
def _catalogue() -> dict[str, Stack]:
    return read_stacks(read_data("triosim.hardware", "stacks.toml"))


def read_stacks(entries: Mapping[str, Any]) -> dict[str, Stack]:
    """Stacks by name from the parsed data file.

    Raises `ConfigError` naming the stack and the entry that is missing, unknown or out of range.
    """
    return {name: _stack(name, inherited("stacks.toml", entries, name)) for name in entries}


def _stack(name: str, entry: Mapping[str, Any]) -> Stack:
    place = f"stacks.toml [{name}]"
    needed = [f.name for f in fields(Stack) if f.name not in ("name", "clock")]
    check_keys(place, entry, needed, "clock")
    values: dict[str, Any] = {key: _constant(place, key, entry[key]) for key in RANGED}
    for key, kind in _PLAIN.items():
        if type(entry[key]) is not kind:
            raise ConfigError(place, f"{key} = {entry[key]}", f"must be of type {kind.__name__}")
        values[key] = entry[key]
    clock = {gpu: _constant(place, "clock", value) for gpu, value in entry.get("clock", {}).items()}
    for key in ("compile", "implementation", *RANGED, "bytes", "clock"):
        if not key.startswith("compiled"):
            source(place, entry["sources"], key)
    sources = {key: str(value) for key, value in entry["sources"].items()}
    return Stack(name=name, about=str(entry["about"]), clock=clock, sources=sources, **values)


def _constant(place: str, key: str, given: Any) -> Constant:
    most = 1.0 if key in (*SHARES, "clock") else math.inf
    whole = isinstance(given, list) and len(given) == 3
    if not whole or not all(isinstance(x, (int, float)) for x in given):
        raise ConfigError(place, f"{key} = {given}", "must be [value, low, high]")
    value, low, high = (float(x) for x in given)
    if not (0 <= low <= value <= high <= most) or (key in SHARES and low <= 0):
        raise ConfigError(place, f"{key} = {given}", f"needs 0 <= low <= value <= high <= {most:g}")
    return Constant(value, low, high)

"""The address of the page Traces: the trace, and what is being looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from dashboard.address import Raw, here, put_right, read_parameters
from dashboard.links import Link, Parameters, shipped_traces
from dashboard.settings import VERSION
from dashboard.traces_store import absent, is_upload
from triosim.errors import ConfigError
from triosim.hardware import KINDS, gpu_names
from triosim.scenario import DEFAULT_TRACE
from triosim.trace import PHASES

TABS = ("Operators", "Where time goes", "Roofline", "Memory", "Tensors", "Where it is from")
GROUPINGS = ("kind", "module", "name")
SHOWN_KINDS = KINDS[: KINDS.index("conv_direct")]  # those that names give
# The first trace to look at: one with modules, shapes and a GPU.
FIRST_TRACE = "gpt2"
MAX_FIND = 100
CHOICES: Mapping[str, Sequence[str]] = {
    "view": TABS, "by": GROUPINGS, "phase": PHASES, "kind": SHOWN_KINDS, "roof": gpu_names(),
}  # fmt: skip
MANY = ("phase", "kind")
# Not "trace": while that is bound to a widget of one page, links to the other lose it.
SHOWN = "inspect"
NAMES = (SHOWN, "find", *CHOICES)


def default_trace() -> str:
    return FIRST_TRACE if FIRST_TRACE in shipped_traces() else DEFAULT_TRACE


def read_view(raw: Raw, traces: Sequence[str]) -> Link:
    """What an address means; parts that are not accepted count as absent, with a sentence each."""
    return read_parameters(raw, partial(_value, traces))


def _value(traces: Sequence[str], name: str, texts: Sequence[str]) -> str | list[str]:
    shown = " and ".join(texts) or "(empty)"
    if name not in NAMES:
        raise ConfigError(name, shown, "this page has no such setting")
    if name not in MANY and len(texts) != 1:
        raise ConfigError(name, shown, "a setting has one value")
    if name == "find":
        if len(texts[0]) > MAX_FIND:
            raise ConfigError(name, shown, f"must have at most {MAX_FIND} characters")
        return texts[0]
    if name == SHOWN and is_upload(texts[0]) and texts[0] not in traces:
        raise ConfigError(name, shown, absent(texts[0]))
    legal = traces if name == SHOWN else CHOICES[name]
    for text in texts:
        if text not in legal:
            raise ConfigError(name, text or "(empty)", f"must be {' or '.join(legal)}")
    return list(texts) if name in MANY else texts[0]


def set_to() -> Mapping[str, Sequence[str]]:
    """What is being looked at, as the address has it."""
    return {name: texts for name, texts in here().items() if name in NAMES}


def parameters_here() -> Parameters:
    """The address of this view."""
    return {"v": VERSION, **{name: list(texts) for name, texts in set_to().items()}}


def read_address(traces: Sequence[str], arrived: bool) -> None:
    """Note what is wrong with the address and put it right, before the first widget."""
    put_right("traces", read_view(here(), traces), NAMES, arrived=arrived)

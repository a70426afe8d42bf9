"""Links: the address of a page holds the scenario, its version and what is being looked at.

`read_link` says one sentence for each part of an address that the page does not accept. Streamlit's
bound widgets would drop those silently.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from dashboard.described import MAX_TEXT, read_description, write_description
from dashboard.frame import FRAME, frame_value
from dashboard.settings import DESCRIBED, SETTINGS, VERSION, Setting, label_of
from dashboard.topologies import check_network, read_name
from dashboard.traces_store import SHIPPED, absent, folder_of, is_upload
from triosim.errors import ConfigError
from triosim.network.topology.description import Description
from triosim.scenario import Scenario

TABS = (
    "Timeline",
    "Where time goes",
    "Communication",
    "Memory",
    "Network",
    "Checks and assumptions",
)
Parameters = dict[str, str | list[str]]
WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """An address, read. `parameters` is what it should say, `rejected` what it said wrongly."""

    values: Mapping[str, Any]
    parameters: Parameters
    rejected: Sequence[str]


def shipped_traces() -> list[str]:
    """The trace folders that stand beside the program, by name."""
    return list(SHIPPED)


def read_link(
    raw: Mapping[str, Sequence[str]], traces: Sequence[str], *, own: bool = False
) -> Link:
    """What an address means. Parts that are not accepted count as absent.

    `own` says that the page's widgets wrote it. A number may then be out of range, and what they
    say about each other at odds for a moment (the case has changed, the micro-batch still stands
    there); that is the page's business and not the link's.
    """
    version = raw.get("v", [VERSION])
    if list(version) != [VERSION]:
        sentence = f"v {_shown(version)}: this page reads links of version {VERSION}, so nothing "
        return _link({}, {}, [sentence + "in this link is used."])
    rejected: list[str] = []
    given: dict[str, Any] = {}
    view: Parameters = {}
    for name, texts in raw.items():
        if name == "v":
            continue
        try:
            if name in SETTINGS:
                given[name] = _value(SETTINGS[name], texts, traces)
            elif name in VIEW:
                view[name] = VIEW[name](texts)
            elif name in FRAME:
                frame_value(name, texts)
                view[name] = texts[0]
            elif name not in SETTINGS:
                rejected.append(f"{name}: this page has no such setting.")
        except ConfigError as error:
            if not (own and _is_typed(name, texts)):
                rejected.append(error.named(error.field))
    if not own:
        rejected += _drop_absent_gpus(view, given.get("gpus", SETTINGS["gpus"].default))
        rejected += _drop_what_does_not_matter(given)
        rejected += _fit_mesh(given)
        rejected += _drop_what_does_not_fit(given)
    return _link(given, view, rejected)


def _is_typed(name: str, texts: Sequence[str]) -> bool:
    """Whether a field of the page takes such text, right or wrong, and answers beside itself."""
    kind = "whole" if name in RANKS else SETTINGS[name].kind if name in SETTINGS else ""
    if kind in ("whole", "number"):
        return len(texts) == 1 and NUMBER.fullmatch(texts[0]) is not None
    return kind == "text"


def _link(given: Mapping[str, Any], view: Parameters, rejected: Sequence[str]) -> Link:
    values = {name: given.get(name, s.default) for name, s in SETTINGS.items()}
    return Link(values=values, parameters={**parameters_of(values), **view}, rejected=rejected)


def parameters_of(values: Mapping[str, Any]) -> Parameters:
    """The shortest address of some settings: defaults are left out."""
    said = {
        name: text_of(values[name])
        for name, setting in SETTINGS.items()
        if name != "mesh_cols" and values[name] != setting.default and setting.matters(values)
    }
    return {"v": VERSION, **said}


def scenario_of(values: Mapping[str, Any]) -> Scenario:
    """The scenario of some settings; those that do not matter keep the engine's defaults."""
    fields = {s.field: values[name] for name, s in SETTINGS.items() if s.matters(values)}
    fields["trace_dir"] = str(folder_of(values["trace"]))
    fields["rank_speed"] = read_speeds(values["rank_speed"] or "") or None
    if "dead_links" in fields:
        fields["dead_links"] = tuple(listed(values["dead_links"] or ""))
    fields.pop("own_network", None)
    if "topology" in fields:
        fields["topology"] = network_of(values)
    fields.pop("mesh_cols", None)  # they follow from the rows
    if fields.get("mesh_rows") == 1:
        fields["mesh_rows"] = None
    return Scenario(**fields)


def network_of(values: Mapping[str, Any]) -> str | Description | None:
    """The network of some settings as the engine takes it; raises `ConfigError`."""
    name = values["topology"]
    if name == DESCRIBED:
        return read_description(values["own_network"] or "", "own_network")
    return None if name is None else read_name(name)


def values_of(scenario: Scenario) -> dict[str, Any]:
    """The settings of a scenario on a shipped or uploaded trace: the inverse of `scenario_of`.

    Raises `ConfigError` for a network whose description is too long for a page.
    """
    values = {name: getattr(scenario, s.field, None) for name, s in SETTINGS.items()}
    if isinstance(scenario.topology, Description):
        values["own_network"] = write_description(scenario.topology, "topology")
        values["topology"] = DESCRIBED
    values["trace"] = Path(scenario.trace_dir).name
    values["rank_speed"] = write_speeds(scenario.speeds) or None
    values["dead_links"] = ", ".join(scenario.dead_links) or None
    values["mesh_rows"] = scenario.mesh[0] if scenario.interconnect == "optical" else 1
    values["mesh_cols"] = None
    return values


def query(scenario: Scenario) -> str:
    """The query string of a scenario."""
    return urlencode(parameters_of(values_of(scenario)), doseq=True)


def read_speeds(text: str) -> dict[int, float]:
    """Ranks and speeds from "3=0.5, 5=0.8"."""
    speeds: dict[int, float] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        rank, _, speed = item.partition("=")
        try:
            speeds[int(rank)] = float(speed)
            if math.isnan(speeds[int(rank)]):
                raise ValueError(speed)
        except ValueError:
            raise ConfigError("rank_speed", item, "must be rank=speed, as in 3=0.5") from None
    return speeds


def write_speeds(speeds: Mapping[int, float]) -> str:
    return ", ".join(f"{rank}={text_of(speed)}" for rank, speed in speeds.items())


def listed(text: str) -> list[str]:
    """What stands between the commas of a text."""
    return [part.strip() for part in text.split(",") if part.strip()]


def read_faults(text: str) -> dict[str, float]:
    """Connections and the share left of each from "3-4, 0-1=0.5"; raises `ConfigError`."""
    return Scenario(dead_links=tuple(listed(text))).faults


def write_faults(faults: Mapping[str, float]) -> str:
    return ", ".join(f"{name}={text_of(left)}" if left else name for name, left in faults.items())


def _value(setting: Setting, texts: Sequence[str], traces: Sequence[str]) -> Any:
    if setting.name == "dead_links":
        return ", ".join(listed(",".join(texts))) or None  # each is checked beside the others
    if len(texts) != 1:
        raise ConfigError(setting.name, _shown(texts), "a setting has one value")
    text = texts[0].strip()
    if setting.name == "trace":
        if is_upload(text) and text not in traces:
            raise ConfigError("trace", text, absent(text))
        return _choice("trace", text, traces)
    if setting.name == "topology":
        return DESCRIBED if text.casefold() == DESCRIBED else read_name(text)
    if setting.name == "own_network":
        if len(text) > MAX_TEXT:
            raise ConfigError("own_network", text, f"must have at most {MAX_TEXT:,} characters")
        return text
    if setting.name == "rank_speed":
        return write_speeds(read_speeds(text)) or None
    if setting.kind == "choice":
        return _choice(setting.name, text, setting.choices)
    if setting.kind == "switch":
        return _choice(setting.name, text.lower(), ("true", "false")) == "true"
    return number_of(setting, text)


def _choice(name: str, text: str, choices: Sequence[str]) -> str:
    if text not in choices:
        raise ConfigError(name, text or "(empty)", f"must be {' or '.join(choices)}")
    return text


def number_of(setting: Setting, text: str) -> int | float:
    """A number of an address, in the range of its setting."""
    whole = setting.kind == "whole"
    legal = f"must be a {'whole ' if whole else ''}number from {setting.range_text}"
    if whole:  # Streamlit writes a number that it has kept for a field out of sight as 4.0
        text = text.removesuffix(".0")
    if not (WHOLE if whole else NUMBER).fullmatch(text):
        raise ConfigError(setting.name, text or "(empty)", legal)
    number = int(text) if whole else float(text)
    if not math.isfinite(number) or not setting.low <= number <= setting.high:
        raise ConfigError(setting.name, text, legal)
    return number


def _drop_absent_gpus(view: Parameters, gpus: int) -> list[str]:
    """GPUs to look at that the scenario does not have; they go, with a sentence each."""
    absent = [name for name in RANKS if int(str(view.get(name, 0))) >= gpus]
    legal = f"GPUs go from 0 to {gpus - 1:,}" if gpus > 1 else "there is only GPU 0"
    return [f"{name} {view.pop(name)}: {legal}." for name in absent]


def _drop_what_does_not_matter(given: dict[str, Any]) -> list[str]:
    """Settings that the chosen case and interconnect do not have; they go, with a sentence each."""
    values = {name: given.get(name, s.default) for name, s in SETTINGS.items()}
    unused = [name for name in given if not SETTINGS[name].matters(values)]
    return [
        f"{name} {text_of(given.pop(name))}: {SETTINGS[name].reason}, so it is not used."
        for name in unused
    ]


def _fit_mesh(given: dict[str, Any]) -> list[str]:
    """Check the mesh against the number of GPUs; columns turn into rows."""
    rows, cols = given.pop("mesh_rows", None), given.pop("mesh_cols", None)
    if rows is None and cols is None:
        return []
    gpus = given.get("gpus", SETTINGS["gpus"].default)
    try:
        rows, _ = Scenario(gpus=gpus, interconnect="optical", mesh_rows=rows, mesh_cols=cols).mesh
    except ConfigError as error:
        return [error.named(error.field)]
    if rows > 1:
        given["mesh_rows"] = rows
    return []


def _drop_what_does_not_fit(given: dict[str, Any]) -> list[str]:
    """Settings that are legal alone and not beside the others; they go, with a sentence each."""
    sentences = []
    while True:
        try:
            values = {name: given.get(name, s.default) for name, s in SETTINGS.items()}
            check_network(scenario_of(values))
        except ConfigError as error:
            # What is wrong with a description is said beside it, where it can be put right.
            if error.field not in given or error.field == "own_network":
                return sentences
            given[error.field] = _without(given[error.field], error)
            if given[error.field] is None:
                del given[error.field]
            sentences.append(error.named(error.field))
        else:
            return sentences


def _without(value: Any, error: ConfigError) -> Any:
    """What is left of a setting: of a list what the error is not about, of others nothing."""
    if error.field != "dead_links":
        return None
    wrong = str(error.value)
    kept = [part for part in listed(value) if wrong not in (part, part.partition("=")[0].strip())]
    return ", ".join(kept) if kept and len(kept) < len(listed(value)) else None


def _one(texts: Sequence[str], name: str, legal: str) -> str:
    if len(texts) != 1:
        raise ConfigError(name, _shown(texts), legal)
    return texts[0]


def _tab(texts: Sequence[str]) -> str:
    return _choice("tab", _one(texts, "tab", "one tab is open"), TABS)


def window_of(name: str, texts: Sequence[str]) -> tuple[float, float]:
    """A part of the step, in percent of it; raises `ConfigError`."""
    legal = "must be two numbers from 0 to 100 (percent of the step), the smaller first"
    try:
        low, high = (float(text) for text in texts)
    except ValueError:
        raise ConfigError(name, _shown(texts), legal) from None
    if not 0 <= low <= high <= 100:
        raise ConfigError(name, _shown(texts), legal)
    return low, high


def _window(texts: Sequence[str]) -> list[str]:
    return [text_of(edge) for edge in window_of("window", texts)]


def _rank(name: str) -> Callable[[Sequence[str]], str]:
    def check(texts: Sequence[str]) -> str:
        legal = "must be the number of a GPU, from 0"
        text = _one(texts, name, legal)
        if not re.fullmatch(r"\d{1,7}", text, re.ASCII):
            raise ConfigError(name, text or "(empty)", legal)
        return str(int(text))

    return check


def _switch(name: str) -> Callable[[Sequence[str]], str]:
    def check(texts: Sequence[str]) -> str:
        text = _one(texts, name, "must be true or false").lower()
        return _choice(name, text, ("true", "false"))

    return check


WHOLE_STEP = (0.0, 100.0)  # percent
RANKS = ("first_rank", "memory_rank")
VIEW: Mapping[str, Callable[[Sequence[str]], Any]] = {
    "tab": _tab,
    "window": _window,
    **{name: _switch(name) for name in ("all_ranks", "critical_path")},
    **{name: _rank(name) for name in RANKS},
}
VIEW_DEFAULTS: Mapping[str, Any] = {
    "tab": TABS[0], "window": WHOLE_STEP, "all_ranks": False, "critical_path": False,
    **dict.fromkeys(RANKS, 0),
}  # fmt: skip


def _shown(texts: Sequence[str]) -> str:
    return " and ".join(texts) or "(empty)"


def text_of(value: object) -> str:
    """A value as Streamlit writes it into the address."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def parameter_of(value: object) -> str | list[str]:
    """The same for a parameter that may have several parts: a window has two."""
    return [text_of(part) for part in value] if isinstance(value, tuple) else text_of(value)


def named(error: ConfigError) -> str:
    """The sentence with the page's label for the setting."""
    return error.named(label_of(error.field))

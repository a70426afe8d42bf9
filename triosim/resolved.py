"""One step asked for, with nothing left open: what is hashed, pinned, linked, swept and compared.

`Scenario` and `TrainScenario` are two doors to it. What a door leaves open (an axis of -1, a batch
that follows from others, the machine of a GPU) is filled in, so that two ways of asking for the
same step are equal, and a trace counts by its content and not by its folder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from triosim.errors import ConfigError
from triosim.hardware.stacks import Stack
from triosim.legal import read_json
from triosim.network.topology.describe import Description, is_file_name
from triosim.result import Result
from triosim.scenario import Scenario
from triosim.simulate import simulate
from triosim.trace import load_trace, trace_digest
from triosim.train import TrainScenario, make_plan, train
from triosim.workload import Transformer

AnyScenario = Scenario | TrainScenario
Settings = tuple[tuple[str, Any], ...]

SECTIONS = ("workload", "cluster", "plan", "assumptions")
# Where settings belong; what is not named here is part of the plan.
_TRACE_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "workload": ("batch_size", "batch_size_sim", "micro_batch_size", "accumulate"),
    "cluster": (
        "gpu", "gpus", "topology", "interconnect", "ptp_bandwidth_gb_per_s", "ptp_convention",
        "latency_us", "bandwidth_gb_per_s", "capacity_log2", "mesh_rows", "mesh_cols",
        "optical_gb_per_s", "hop_latency_ns", "circuit_setup_ms", "circuit_teardown_ms",
        "wavelengths", "dead_links", "rank_speed", "slow_every",
    ),
    "assumptions": ("trace_gpu", "protocol", "overlap_slowdown", "jitter", "seed", "fold"),
}  # fmt: skip
_TRAIN_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "workload": ("seq_len", "micro_batch_size", "global_batch", "precision", "prefill"),
    "cluster": ("gpu", "gpus", "machine", "rank_speed"),
    "assumptions": ("stack", "expert_skew", "extra_ms_per_step"),
}
# What the model, the trace and the stack say in their own words.
_SAID = {"trace_dir", "model", "config", "constants", *(f.name for f in fields(Transformer))}


@dataclass(frozen=True, kw_only=True)
class Resolved:
    """A step: what is computed, on what, laid out how, and what is assumed.

    Each section is a tuple of settings and values; equality and hash are theirs. `scenario` is the
    door it came through with everything filled in, `kind` says which: "trace" or "train".
    """

    kind: str
    workload: Settings
    cluster: Settings
    plan: Settings
    assumptions: Settings
    scenario: AnyScenario = field(compare=False)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """All settings by name; names mean the same in both kinds."""
        return {name: value for section in SECTIONS for name, value in getattr(self, section)}

    @cached_property
    def digest(self) -> str:
        """SHA-256 over kind, settings and values, in hexadecimal."""
        text = json.dumps([self.kind, self.settings], sort_keys=True, default=_plain)
        return sha256(text.encode()).hexdigest()

    def run(self) -> Result:
        """Simulate it."""
        return run(self.scenario)


def is_chosen(name: str, value: object) -> bool:
    """Whether a setting says more than that it was left as it comes."""
    return name not in _STACK_ONLY and value not in _DEFAULTS.get(name, (None,))


def resolve(scenario: AnyScenario) -> Resolved:
    """Fill in what a scenario leaves open.

    Raises `ConfigError` or `TraceFormatError` where it cannot be.
    """
    _check_kind(scenario)
    if isinstance(scenario, TrainScenario):
        return _resolve_train(scenario)
    return _resolve_trace(scenario)


def _check_kind(scenario: object) -> None:
    if not isinstance(scenario, (Scenario, TrainScenario)):
        legal = "must be a Scenario or a TrainScenario"
        raise ConfigError("scenario", type(scenario).__name__, legal)


def run(scenario: AnyScenario | Resolved) -> Result:
    """`simulate` or `train`, whichever it is for."""
    if isinstance(scenario, Resolved):
        scenario = scenario.scenario
    _check_kind(scenario)
    return train(scenario) if isinstance(scenario, TrainScenario) else simulate(scenario)


def _resolve_trace(scenario: Scenario) -> Resolved:
    own = load_trace(scenario.trace_dir).batch_size
    batch = scenario.batch_size or own
    simulated = scenario.batch_size_sim or batch
    rows, cols = scenario.mesh
    optical = scenario.interconnect == "optical"
    filled = replace(
        scenario,
        batch_size=batch,
        batch_size_sim=simulated,
        micro_batch_size=scenario.micro_batch_size or simulated,
        mesh_rows=rows if optical else None,
        mesh_cols=cols if optical else None,
    )
    topology = _content(filled.topology)
    workload = (_trace(filled.trace_dir),)
    return _made("trace", filled, _TRACE_SECTIONS, workload, {"topology": topology})


def _resolve_train(scenario: TrainScenario) -> Resolved:
    plan = make_plan(scenario)
    filling: dict[str, Any] = {name: size for name, size in plan.sizes.items() if name != "ep"}
    filling |= {
        "zero": plan.zero,
        "global_batch": plan.global_batch,
        "machine": scenario.machine or plan.machine,
        "compile": scenario.compiled,
    }
    if scenario.trace_dir is None:
        filling["seq_len"] = plan.seq
    filled = replace(scenario, **filling)
    workload = _model(plan.model) if scenario.trace_dir is None else (_trace(scenario.trace_dir),)
    made = _made("train", filled, _TRAIN_SECTIONS, workload, {"machine": _content(filled.machine)})
    return replace(made, assumptions=(*made.assumptions, *_stack(plan.stack)))


def _model(model: Transformer) -> Settings:
    shape = asdict(model)
    del shape["seq_len"]  # the scenario says how long sequences are
    return (("model", shape.pop("name")), *shape.items())


def _stack(stack: Stack) -> Settings:
    """A stack's constants, ranges included; its name and mode the scenario says."""
    constants = asdict(stack)
    for name in ("name", "about", "sources", "compile"):
        del constants[name]
    return tuple((name, _frozen(value)) for name, value in constants.items())


def _trace(folder: str) -> tuple[str, str]:
    return "trace", f"{Path(folder).name} ({trace_digest(folder)[:12]})"


def _made(
    kind: str,
    scenario: AnyScenario,
    sections: Mapping[str, tuple[str, ...]],
    workload: Settings,
    instead: Mapping[str, Any],
) -> Resolved:
    def part(names: Sequence[str]) -> Settings:
        return tuple((name, _frozen(instead.get(name, getattr(scenario, name)))) for name in names)

    placed = {name for names in sections.values() for name in names}
    rest = [f.name for f in fields(scenario) if f.name not in placed | _SAID]
    return Resolved(
        kind=kind,
        workload=(*workload, *part(sections["workload"])),
        cluster=part(sections["cluster"]),
        plan=part(rest),
        assumptions=part(sections["assumptions"]),
        scenario=scenario,
    )


def _content(name: str | Description | None) -> str | dict[str, Any] | None:
    """A description, a file by what it says (name and digest), other names as they are."""
    if isinstance(name, Description):
        return name.to_dict()
    if name is None or not is_file_name(name):
        return name
    try:
        digest = sha256(Path(name).read_bytes()).hexdigest()
    except OSError:  # described by now, so it has gone in between
        return name
    return f"{Path(name).name} ({digest[:12]})"


def _frozen(value: Any) -> Any:
    """A hashable value that says the same."""
    if isinstance(value, Mapping):
        if value.keys() == {"value", "low", "high"}:  # a constant with its range
            return value["value"], value["low"], value["high"]
        return tuple(sorted((str(k), _frozen(v)) for k, v in value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(_frozen(v) for v in value)
    return value


def _plain(value: object) -> Any:
    to_dict = getattr(value, "to_dict", None)
    return to_dict() if callable(to_dict) else str(value)


_NAMES, _TRAIN_NAMES, _STACK_NAMES = (
    {f.name for f in fields(kind)} for kind in (Scenario, TrainScenario, Stack)
)
_ONLY_TRACE = _NAMES - _TRAIN_NAMES
_STACK_ONLY = _STACK_NAMES - _TRAIN_NAMES  # these come with the stack's name
_DEFAULTS: dict[str, list[object]] = {}
for _field in (f for kind in (Scenario, TrainScenario, Transformer) for f in fields(kind)):
    _DEFAULTS.setdefault(_field.name, [None]).append(_field.default)


def scenario_from(values: object) -> AnyScenario:
    """A saved scenario of either kind, which its fields tell.

    Fields that both have, alone, make one of training a language model. Raises `ConfigError`.
    """
    return Scenario.from_dict(values) if is_traced(values) else TrainScenario.from_dict(values)


def is_traced(values: object) -> bool:
    """Whether saved fields are those of a trace's scenario, which has some of its own."""
    return isinstance(values, Mapping) and not _ONLY_TRACE.isdisjoint(values)


def read_any_scenario(path: str | Path) -> AnyScenario:
    """A saved scenario file of either kind, or the scenario inside a saved result."""
    values = read_json("scenario", path)
    if isinstance(values, Mapping) and isinstance(values.get("scenario"), Mapping):
        values = values["scenario"]
    return scenario_from(values)

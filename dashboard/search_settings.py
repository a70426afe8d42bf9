"""Every setting of a search: its name in the address, label, default and legal values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.settings import Setting, number_setting, whole_setting
from dashboard.settings import choice_setting as _choice
from dashboard.settings import text_setting as _text
from dashboard.train_settings import NAMED
from triosim.errors import ConfigError
from triosim.hardware import gpu_names
from triosim.hardware.stacks import stack_names
from triosim.schedules import SCHEDULES
from triosim.search import Limits, Space
from triosim.search.space import DEFAULT_TOKENS, MICRO_BATCHES
from triosim.search.space import RECOMPUTE as USUAL_RECOMPUTE
from triosim.search.space import SCHEDULES as USUAL_SCHEDULES
from triosim.search.space import ZERO as USUAL_ZERO
from triosim.train import TrainScenario
from triosim.train.scenario import PRECISIONS
from triosim.workload import model_names

MAX_GPUS = 1024
MAX_LAYOUTS = 1500  # those of 512 GPUs are 715
MAX_MICRO = 8
RECOMPUTE = ("none", "selective-op", "attention", "full")
ZERO = ("1", "2", "3")


def _number(name: str, label: str, low: float, high: float) -> Setting:
    return number_setting(name, label, None, low, high)


def _whole(name: str, label: str, default: int | None, high: int) -> Setting:
    return whole_setting(name, label, default, 1, high)


SETTINGS: Mapping[str, Setting] = {
    setting.name: setting
    for setting in (
        _choice("find_model", "Model", "llama3-70b", tuple(model_names())),
        _choice("find_gpu", "GPU type", "h100-sxm", tuple(gpu_names())),
        _choice("find_machine", "Machine", "auto", tuple(NAMED["machine"])),
        _whole("find_gpus", "GPUs", 64, MAX_GPUS),
        _choice("find_stack", "Software stack", "torchtitan-compile", tuple(stack_names())),
        _whole("find_batch", "Global batch (sequences)", None, 10**6),
        _whole("find_seq", "Sequence (tokens)", None, 2**24),
        _choice("find_precision", "Precision", "bf16", PRECISIONS),
        _number("find_memory", "Memory per GPU (GiB)", 0.1, 1e5),
        _number("find_tokens", "Tokens of the run (billion)", 1e-6, 1e9),
        _number("find_price", "Price of a GPU hour", 1e-6, 1e6),
        _number("find_cost", "Cost of the run at most", 1e-6, 1e15),
        _number("find_energy", "Energy at most (MWh)", 1e-6, 1e12),
        _number("find_days", "Days at most", 1e-6, 1e6),
        _whole("find_cp", "Context parallel at most", None, MAX_GPUS),
        _text("find_micro", "Micro-batches to try", ", ".join(map(str, MICRO_BATCHES))),
        _text("find_recompute", "Recompute to try", ", ".join(USUAL_RECOMPUTE)),
        _text("find_schedules", "Pipeline schedules to try", ", ".join(USUAL_SCHEDULES)),
        _text("find_zero", "ZeRO stages to try", ", ".join(map(str, USUAL_ZERO))),
    )
}
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "find_recompute": RECOMPUTE, "find_schedules": tuple(SCHEDULES), "find_zero": ZERO,
}  # fmt: skip
_CONTROLS: Mapping[str, str] = {
    "model": "find_model", "gpu": "find_gpu", "machine": "find_machine", "topology": "find_machine",
    "gpus": "find_gpus", "stack": "find_stack", "global_batch": "find_batch",
    "seq_len": "find_seq", "precision": "find_precision", "memory_gib": "find_memory",
    "tokens": "find_tokens", "gpu_hour_price": "find_price", "cost": "find_cost",
    "energy_kwh": "find_energy", "days": "find_days", "most_cp": "find_cp",
    "micro_batch_sizes": "find_micro", "recompute": "find_recompute",
    "schedules": "find_schedules", "schedule": "find_schedules", "zero": "find_zero",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is searched: equal questions have one answer."""

    base: TrainScenario
    micro_batch_sizes: tuple[int, ...]
    recompute: tuple[str, ...]
    schedules: tuple[str, ...]
    zero: tuple[int, ...]
    most_cp: int | None
    limits: Limits

    @property
    def space(self) -> Space:
        return Space(
            base=self.base, micro_batch_sizes=self.micro_batch_sizes, recompute=self.recompute,
            schedules=self.schedules, zero=self.zero, most_cp=self.most_cp,
        )  # fmt: skip


def control_of(field: str) -> str:
    """The control of a field of the engine; "" where the page has none."""
    return _CONTROLS.get(field, "")


def default_batch(sequence: int) -> int:
    """Sequences of a step where none are given."""
    return max(1, DEFAULT_TOKENS // sequence)


def _check_limits(known: Mapping[str, Any]) -> None:
    """As `Limits` does, in the units and words of the page."""
    for field, name in (
        ("cost", "find_cost"),
        ("energy_kwh", "find_energy"),
        ("days", "find_days"),
    ):
        for needed in ("find_tokens", "find_price") if field == "cost" else ("find_tokens",):
            if known[name] is not None and not known[needed]:
                problem = f"needs {SETTINGS[needed].label} as well"
                raise ConfigError(field, f"{known[name]:.15g}", problem)


def question_of(values: Mapping[str, Any]) -> Question:
    """What the controls ask; raises `ConfigError` naming the engine's field."""
    known = {name: values.get(name, setting.default) for name, setting in SETTINGS.items()}
    base = TrainScenario(
        model=known["find_model"],
        gpu=known["find_gpu"],
        machine=NAMED["machine"][known["find_machine"]],
        gpus=known["find_gpus"],
        stack=known["find_stack"],
        global_batch=known["find_batch"],
        seq_len=known["find_seq"],
        precision=known["find_precision"],
    )
    tokens, energy = known["find_tokens"], known["find_energy"]
    _check_limits(known)
    limits = Limits(
        memory_gib=known["find_memory"],
        tokens=None if tokens is None else tokens * 1e9,
        gpu_hour_price=known["find_price"],
        cost=known["find_cost"],
        energy_kwh=None if energy is None else energy * 1e3,
        days=known["find_days"],
    )
    question = Question(
        base=base,
        micro_batch_sizes=_sizes(known["find_micro"] or ""),
        recompute=_names("recompute", known["find_recompute"] or ""),
        schedules=_names("schedules", known["find_schedules"] or ""),
        zero=tuple(map(int, _names("zero", known["find_zero"] or ""))),
        most_cp=known["find_cp"],
        limits=limits,
    )
    count = layouts(question)
    if count > MAX_LAYOUTS:
        legal = f"these have {count:,} layouts and the page stops at {MAX_LAYOUTS:,}; the command "
        raise ConfigError("gpus", base.gpus, legal + "line has no such limit")
    return question


def layouts(question: Question) -> int:
    """How many layouts there are, legal or not."""
    return sum(1 for _ in question.space.layouts())


def _sizes(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    for part in parts:
        if not (part.isascii() and part.isdecimal()) or not 1 <= int(part) <= 10**6:
            legal = "must be whole numbers from 1 to 1,000,000, as in 1, 2, 4"
            raise ConfigError("micro_batch_sizes", part, legal)
    if not 1 <= len(parts) <= MAX_MICRO:
        raise ConfigError("micro_batch_sizes", text or "(empty)", f"needs 1 to {MAX_MICRO} numbers")
    return tuple(dict.fromkeys(int(part) for part in parts))


def _names(field: str, text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    legal = OPTIONS[control_of(field)]
    for name in names or ("(empty)",):
        if name not in legal:
            raise ConfigError(field, name, f"must be of {', '.join(legal)}")
    return names

"""Amounts and tasks as a sentence says them."""

from __future__ import annotations

from triosim.engine.timeline import Timeline

_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def time_words(seconds: float) -> str:
    """A duration in the unit that suits it."""
    for limit, unit_s, unit in ((1e-6, 1e-9, "ns"), (1e-3, 1e-6, "us"), (1.0, 1e-3, "ms")):
        if 0 < seconds < limit * 0.9995:
            return f"{_short(seconds / unit_s)} {unit}"
    return f"{_short(seconds)} s" if seconds else "0 ms"


def bytes_words(size: float) -> str:
    """Bytes in powers of 1000."""
    power = 0
    while size >= 999.5 and power < len(_UNITS) - 1:
        size, power = size / 1000, power + 1
    return f"{_short(size)} {_UNITS[power]}"


def rate_words(bytes_per_s: float) -> str:
    return f"{_short(bytes_per_s / 1e9)} GB/s"


def share_words(part: float, whole: float) -> str:
    """A part of a whole in per cent."""
    return f"{part / whole * 100:.3g} %" if whole > 0 else "0 %"


def _short(value: float) -> str:
    """Three significant digits without an exponent."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"


def place_words(timeline: Timeline, rank_class: int) -> str:
    """A group of equal ranks: by its stage where there are several, else by its GPU."""
    own = timeline.program.classes[rank_class]
    stages = {other.stage for other in timeline.program.classes}
    if len(stages) > 1 and own.stage is not None:
        alike = [other for other in timeline.program.classes if other.stage == own.stage]
        return f"stage {own.stage}" if len(alike) == 1 else f"stage {own.stage}, GPU {own.rank}"
    return f"GPU {own.rank}"


def name_words(timeline: Timeline, task: int) -> str:
    """A task's name, without what autograd puts before each of its nodes."""
    return timeline.program.name[task].removeprefix("autograd::engine::evaluate_function: ")


def task_words(timeline: Timeline, task: int, seen_from: int) -> str:
    """A task by its name, with its place where that is not the class it is seen from."""
    name, own = name_words(timeline, task), timeline.class_list[task]
    return name if own == seen_from else f"{name} on {place_words(timeline, own)}"

"""Tasks and places as a sentence says them."""

from __future__ import annotations

from triosim.engine.timeline import Timeline


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

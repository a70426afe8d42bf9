"""Where a question is asked: its lab, the page, and the address that opens it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from dashboard.lab import (
    collectives,
    compiling,
    context,
    data_parallel,
    fsdp,
    llama,
    mesh,
    pipeline,
    recompute,
    tensor,
)
from dashboard.lab.lab import Lab, setting_key
from dashboard.links import Parameters, text_of
from dashboard.seminar.presets import Step
from dashboard.settings import VERSION
from triosim.lab import question

LABS: tuple[Lab, ...] = (
    data_parallel.LAB, fsdp.LAB, mesh.LAB, tensor.LAB, pipeline.LAB, context.LAB, recompute.LAB,
    compiling.LAB, llama.LAB,
)  # fmt: skip
# Labs that ask beside the pictures of another page.
STRIPS: tuple[Lab, ...] = (collectives.LAB,)


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A page and the address of what is to be seen there."""

    page: str
    address: Parameters


@lru_cache(maxsize=1)
def lab_of_question() -> Mapping[str, Lab]:
    """The lab that asks a question, by the question's id."""
    return {name: lab for lab in (*LABS, *STRIPS) for name in lab.questions}


def place_of_question(name: str, settings: Mapping[str, str] | None = None) -> Place:
    """Where a question is asked; `settings` are those of its lab."""
    lab = lab_of_question()[name]
    own = settings or {}
    if lab in STRIPS:
        scene = {key: text_of(value) for key, value in collectives.SCENES[name].items()}
        return Place(page=lab.page, address={"v": VERSION, "ask": name, **scene, **own})
    asked = question(name)
    keys = {setting_key(asked, key): value for key, value in own.items()}
    return Place(page=lab.page, address={"v": VERSION, lab.question_key: name, **keys})


def place_of_step(step: Step) -> Place:
    """Where a step of a preset is shown."""
    if step.question:
        return place_of_question(step.question, step.settings)
    return Place(page=f"pages/{step.page}.py", address={"v": VERSION, **step.settings})

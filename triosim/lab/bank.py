"""The seminar's question bank: all questions by their id."""

from __future__ import annotations

from collections.abc import Mapping

from triosim.errors import ConfigError
from triosim.lab import (
    collectives,
    compiling,
    context,
    data_parallel,
    fsdp,
    mesh,
    pipeline,
    recompute,
    tensor,
    training,
)
from triosim.lab.question import Question

QUESTIONS: Mapping[str, Question] = {
    question.id: question
    for part in (
        data_parallel, fsdp, mesh, tensor, pipeline, context, recompute, compiling, collectives,
        training,
    )
    for question in part.QUESTIONS
}  # fmt: skip


def question(name: str) -> Question:
    """A question by its id, in any case; raises `ConfigError` on field "question"."""
    found = QUESTIONS.get(name.strip().upper())
    if found is None:
        raise ConfigError("question", name, f"no such question; known are {', '.join(QUESTIONS)}")
    return found

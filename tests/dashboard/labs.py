"""What the labs' tests share: the labs, and how to open one."""

from __future__ import annotations

from google.protobuf import text_format
from google.protobuf.message import Message
from streamlit.testing.v1 import AppTest

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
from dashboard.lab.lab import Lab
from tests.dashboard.reading import open_page
from triosim.lab import Question

LABS: tuple[Lab, ...] = (
    data_parallel.LAB, fsdp.LAB, recompute.LAB, compiling.LAB, mesh.LAB, tensor.LAB, context.LAB,
    llama.LAB, pipeline.LAB,
)  # fmt: skip
STRIPS: tuple[Lab, ...] = (collectives.LAB,)
CASES = [(lab, asked) for lab in LABS for asked in lab.asked]


def open_question(lab: Lab, asked: Question, **parameters: str) -> AppTest:
    """A lab with one of its questions open."""
    at = open_page(lab.page, v="1", **{lab.question_key: asked.id}, **parameters)
    assert not at.exception
    return at


def open_play(lab: Lab, asked: Question, **parameters: str) -> AppTest:
    """The same with its answer shown, so that Play is there."""
    at = press(open_question(lab, asked, **parameters), "Show me")
    assert not at.exception
    return at


def words(at: AppTest) -> str:
    """Everything that the main part of the page was sent, whatever draws it."""
    texts = []
    for element in at.main:
        proto = getattr(element, "proto", None)
        if isinstance(proto, Message):
            texts.append(text_format.MessageToString(proto, as_utf8=True).replace("\\\\", "\\"))
    return "\n".join(texts)


def charts(at: AppTest) -> list[str]:
    """The figures on the page, as JSON."""
    return [chart.proto.spec for chart in at.get("plotly_chart")]


def press(at: AppTest, label: str) -> AppTest:
    """Press a button by its label."""
    return next(button for button in at.button if button.label == label).click().run()


def commit_number(at: AppTest, asked: Question, value: float) -> AppTest:
    """Type a number and commit it."""
    at.number_input(key=f"guess_{asked.id}").set_value(value)
    return press(at, "Commit")

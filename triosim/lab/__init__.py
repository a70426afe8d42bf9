"""The seminar's questions: frozen scenarios with a formula, the engine's answer and known slips.

>>> from triosim.lab import grade, question
>>> grade(question("P1"), 33.0).slip.name
'no chunks'
"""

from triosim.lab.bank import QUESTIONS, question
from triosim.lab.grade import CLOSE, RIGHT, WRONG, Grade, grade
from triosim.lab.question import (
    CHOICE,
    NUMBER,
    RANKING,
    Parameter,
    Quantity,
    Question,
    Slip,
    Value,
)

__all__ = [
    "CHOICE", "CLOSE", "NUMBER", "QUESTIONS", "RANKING", "RIGHT", "WRONG",
    "Grade", "Parameter", "Quantity", "Question", "Slip", "Value",
    "grade", "question",
]  # fmt: skip

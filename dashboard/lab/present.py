"""What a lab needs to know of the screen that it is on: whose it is, and how figures look there."""

from dashboard.frame import current, presenting
from dashboard.timeline import style
from triosim.lab import Question

__all__ = ["class_of", "presenting", "style"]


def class_of(asked: Question) -> str:
    """The preset for which an answer to the question counts; empty outside a class.

    A class has the questions of its preset; whoever looks at another one does so alone.
    """
    found = current()
    return found.name if found is not None and asked.id in found.questions else ""

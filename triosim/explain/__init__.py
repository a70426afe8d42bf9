"""Why is this GPU idle? Gaps, tasks, the critical path and what-ifs of a finished step."""

from triosim.explain.explanation import Explanation, Span, explain
from triosim.explain.inner import Inside
from triosim.explain.path import PathStep
from triosim.explain.transfers import LinkUse, Move, Sharer
from triosim.explain.waits import Wait
from triosim.explain.whatif import WhatIf

__all__ = [
    "Explanation",
    "Inside",
    "LinkUse",
    "Move",
    "PathStep",
    "Sharer",
    "Span",
    "Wait",
    "WhatIf",
    "explain",
]

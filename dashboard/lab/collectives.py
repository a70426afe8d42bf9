"""The questions on collectives, which the Network page asks beside its step player."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.lab.lab import Cause, Lab

NO_QUESTION = "none"
# What the Network page is set to under a question; everything else has its default.
SCENES: Mapping[str, Mapping[str, Any]] = {
    "C1": {
        "net": "ring", "ranks": 8, "link": 100.0, "alpha": 0.0, "algo": "ring", "size": 1000.0,
        "show": "Step by step",
    },
    "C2": {
        "net": "switch", "ranks": 8, "link": 100.0, "alpha": 5.0, "size": 0.94,
        "show": "Time and size",
    },
    "C3": {
        "net": "seminar-h100", "ranks": 16, "algo": "hierarchical", "size": 1000.0,
        "show": "Step by step",
    },
}  # fmt: skip
LAB = Lab(
    code="collectives",
    page="pages/network.py",
    title="Collectives",
    idea="GPUs share sums and arrays by collectives. In a ring all-reduce each GPU sends an n-th "
    "of the array to its neighbour, n \u2212 1 times to add everything up and n \u2212 1 times to "
    "hand it round. Large messages are limited by the slowest link, small ones by the number of "
    "steps.",
    formula=r"t=2(n-1)\,\alpha+2\,\frac{n-1}{n}\cdot\frac{S}{B}",
    source="Patarasu and Yuan, JPDC 2009. busbw and algbw as nccl-tests defines them.",
    questions=("C1", "C2", "C3"),
    quick=("C1", "C3"),
    explain=(
        Cause(
            "Latency",
            "C1 and C3 have none. The page's machines have their own, and pay it in every step.",
        ),
        Cause(
            "Protocol",
            "a communication library reaches less than the data sheet; \"calibrated\" on the page "
            "has what was measured.",
        ),
        Cause(
            "One level after the other",
            "C3's formula adds the levels up. Where chunks are in all of them at once "
            "(hierarchical-pipelined on the page), the slowest level is what counts.",
        ),
        Cause(
            "Levels of a tree",
            "\u2113 is a whole number: 9 to 16 GPUs have the same four levels.",
            lambda values: "latency_us" in values and values["ranks"] % 2 > 0,
        ),
    ),
    not_modelled=(
        "Adding up takes no time on the GPU.",
        "Nothing else is on the links: the tab Two at once shows two collectives.",
        "The unpipelined tree sends whole arrays; libraries cut them into pieces.",
    ),
)  # fmt: skip

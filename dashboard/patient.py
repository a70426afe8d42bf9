"""Runs a function so that the rest of the machine goes first. Workers import this: no Streamlit."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

NICENESS = 10


def run_patiently(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns; its process gives way to others from now on."""
    if hasattr(os, "nice"):  # not on Windows
        os.nice(max(0, NICENESS - os.nice(0)))
    return function(*arguments)

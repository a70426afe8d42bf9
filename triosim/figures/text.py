"""Numbers and names as a reader sees them in hovers and labels."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

MIDDLE_DOT = "\u00b7"
TIMES = "\u00d7"
MICRO = "\u00b5"
DASH = "\u2013"

_DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
MAX_NAME = 90
READABLE = 1e-9, 1e15  # without an exponent


def digits(value: float, count: int = 3) -> str:
    """A number with about `count` significant digits; beyond `READABLE` with a power of ten."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if not READABLE[0] <= abs(value) < READABLE[1]:
        return f"{value:.{count}g}"
    if value == round(value):
        return f"{value:,.0f}"
    decimals = max(0, count - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{min(decimals, 9)}f}"


def short(value: float, count: int = 4) -> str:
    """The same without zeros at the end."""
    text = digits(value, count)
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def time_text(ms: float) -> str:
    """Milliseconds in the unit that suits their size."""
    for limit, factor, unit in ((1e-3, 1e6, "ns"), (1.0, 1e3, f"{MICRO}s"), (1e3, 1.0, "ms")):
        if 0 < abs(ms) < limit:
            return f"{digits(ms * factor)} {unit}"
    return f"{digits(ms / 1e3)} s" if ms else "0 ms"


def bytes_text(size: float) -> str:
    """Bytes in powers of 1000, as messages and bandwidths are counted."""
    return _scaled(size, 1000.0, _DECIMAL)


def memory_text(size: float) -> str:
    """Bytes in powers of 1024, as memory is counted."""
    return _scaled(size, 1024.0, _BINARY)


def _scaled(size: float, base: float, units: Sequence[str]) -> str:
    power = 0
    while abs(size) >= base and power < len(units) - 1:
        size /= base
        power += 1
    return f"{size:,.0f} {units[power]}" if power == 0 else f"{digits(size)} {units[power]}"


def share_text(part: float, whole: float) -> str:
    """A part of a whole in per cent."""
    if whole <= 0:
        return f"{DASH} %"
    share = part / whole * 100
    return f"{share:.1f} %" if share >= 0.05 or share == 0 else "<0.1 %"


def safe(name: str) -> str:
    """A name from a user's file: Plotly reads tags in text, so they are written out."""
    short = name if len(name) <= MAX_NAME else name[: MAX_NAME - 3] + "..."
    return html.escape(short, quote=False)


def operator_text(name: str) -> str:
    """An operator's name without what autograd puts before each of its nodes."""
    return name.removeprefix("autograd::engine::evaluate_function: ")


def words(kind: str) -> str:
    """A class's name in English."""
    return kind.replace("_", " ")

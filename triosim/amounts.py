"""Amounts as a sentence says them: three digits and the unit that suits the size."""

from __future__ import annotations

import math
from collections.abc import Sequence

_DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_LONG = (("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0))
_YEAR_S = 365.25 * 86_400.0


def time_words(seconds: float) -> str:
    """A duration in seconds or less."""
    for limit, unit_s, unit in ((1e-6, 1e-9, "ns"), (1e-3, 1e-6, "us"), (1.0, 1e-3, "ms")):
        if 0 < seconds < limit * 0.9995:
            return f"{_short(seconds / unit_s)} {unit}"
    return f"{_short(seconds)} s" if seconds else "0 ms"


def long_time_words(seconds: float) -> str:
    """A duration of any length: from a minute on in minutes, hours, days or years, 1.94 hours."""
    if not seconds < math.inf:
        return "for ever"
    if seconds >= 10 * _YEAR_S:
        return f"{_short(seconds / _YEAR_S)} years"
    for unit, size_s in _LONG:
        if seconds >= size_s:
            return f"{seconds / size_s:,.2f} {unit}"
    return f"{seconds:.2f} s" if seconds >= 1 else time_words(seconds)


def bytes_words(size: float) -> str:
    """Bytes in powers of 1000, as messages are counted."""
    return _scaled(size, 1000, _DECIMAL)


def memory_words(size: float) -> str:
    """Bytes in powers of 1024, as memory is counted."""
    return _scaled(size, 1024, _BINARY)


def rate_words(bytes_per_s: float) -> str:
    return f"{_short(bytes_per_s / 1e9)} GB/s"


def share_words(part: float, whole: float) -> str:
    """A part of a whole in per cent."""
    return f"{part / whole * 100:.3g} %" if whole > 0 else "0 %"


def _scaled(size: float, base: int, units: Sequence[str]) -> str:
    power = 0
    while size >= base - 0.5 and power < len(units) - 1:
        size, power = size / base, power + 1
    return f"{_short(size)} {units[power]}"


def _short(value: float) -> str:
    """Three significant digits, without an exponent below a million."""
    return f"{value:,.0f}" if 99.95 <= value < 1e6 else f"{value:.3g}"

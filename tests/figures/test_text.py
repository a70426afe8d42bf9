"""Numbers in words."""

from __future__ import annotations

import pytest

from triosim.figures.text import (
    bytes_text,
    digits,
    memory_text,
    safe,
    share_text,
    short,
    time_text,
)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (2.5e-6, "2.50 ns"),
        (0.0123, "12.3 \u00b5s"),
        (0.2, "200 \u00b5s"),
        (1.0, "1 ms"),
        (12.345, "12.3 ms"),
        (999.0, "999 ms"),
        (1234.5, "1.23 s"),
    ],
)
def test_time(ms, text):
    assert time_text(ms) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5e300, "1.5e+300"), (-2e15, "-2e+15"), (1e-10, "1e-10"), (3.14159e-300, "3.14e-300"),
        (1e-9, "0.000000001"), (999e12, "999,000,000,000,000"), (-0.25, "-0.250"), (0, "0"),
    ],
)  # fmt: skip
def test_a_number_stays_readable_however_large_or_small(value, text):
    assert digits(value) == text


def test_a_power_of_ten_keeps_its_zeros():
    assert (short(1.5e300), short(1e-20), short(2.50)) == ("1.5e+300", "1e-20", "2.5")
    assert (time_text(1.5e303), time_text(1e-300)) == ("1.5e+300 s", "1e-294 ns")


def test_bytes():
    assert [bytes_text(n) for n in (0, 999, 1000, 231_937_024)] == [
        "0 B",
        "999 B",
        "1 kB",
        "232 MB",
    ]
    assert [memory_text(n) for n in (1023, 2**20, 2**40, 1.5 * 2**30)] == [
        "1,023 B", "1 MiB", "1 TiB", "1.50 GiB",
    ]  # fmt: skip


def test_shares():
    assert [share_text(p, w) for p, w in ((1, 4), (0, 1), (1, 1e6), (1, 0))] == [
        "25.0 %", "0.0 %", "<0.1 %", "\u2013 %",
    ]  # fmt: skip


def test_names_from_files():
    assert safe("a<b>&c") == "a&lt;b&gt;&amp;c"
    assert safe("x" * 500) == "x" * 87 + "..."

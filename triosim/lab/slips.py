"""Slips that several questions share; each takes where the wrong road leads."""

from __future__ import annotations

from triosim.lab.question import Answer, Slip

GIB = 2**30


def gb_for_gib(right_gib: Answer) -> Slip:
    """The right answer in the other unit."""
    return Slip(
        name="GB for GiB",
        closed=lambda **values: float(right_gib(**values)) * GIB / 1e9,  # type: ignore[arg-type]
        hint="That is in GB. A GiB is 1.074 GB.",
    )


def no_own_part(closed: Answer) -> Slip:
    """The whole array, though each rank has a part of it."""
    return Slip(
        name="no (n\u22121)/n",
        closed=closed,
        hint="The factor (n \u2212 1)/n is missing: a rank already has its own part.",
    )


def four_bytes(right: Answer) -> Slip:
    """The right answer for elements of 2 bytes, as if they had 4."""
    return Slip(
        name="4 bytes",
        closed=lambda **values: 2 * float(right(**values)),  # type: ignore[arg-type]
        hint="That is fp32. In bf16 an element has 2 bytes.",
    )


def elements_for_bytes(right: Answer) -> Slip:
    """The right answer for elements of 2 bytes, as if they had 1."""
    return Slip(
        name="elements for bytes",
        closed=lambda **values: float(right(**values)) / 2,  # type: ignore[arg-type]
        hint="That counts elements. In bf16 each has 2 bytes.",
    )

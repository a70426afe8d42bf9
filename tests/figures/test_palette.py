"""Colours: complete, told apart by everyone, the same everywhere."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from triosim.analysis.breakdown import CLASSES, SLOWDOWN
from triosim.analysis.memory import CATEGORIES
from triosim.engine.program import COMPUTE_PHASES, TRANSFER_PHASES
from triosim.figures import CATEGORY_COLOURS, CLASS_COLOURS, PHASE_COLOURS, Style
from triosim.figures.palette import channels, contrast, text_on, translucent

TABLES = {"phases": PHASE_COLOURS, "classes": CLASS_COLOURS, "categories": CATEGORY_COLOURS}
# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB.
VISION = {
    "all cones": np.eye(3),
    "no red cones": [
        [0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "no green cones": [
        [0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "no blue cones": [
        [1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}  # fmt: skip
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(colour, vision):
    """CIE Lab of a colour as someone with that vision sees it."""
    share = np.array(channels(colour)) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(np.array(VISION[vision]) @ linear, 0, 1) / (0.9505, 1.0, 1.089)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_every_phase_class_and_category_has_a_colour():
    assert tuple(PHASE_COLOURS) == COMPUTE_PHASES + TRANSFER_PHASES
    assert set(CLASS_COLOURS) == {*COMPUTE_PHASES, SLOWDOWN, *CLASSES} - {"compute"}
    assert set(CATEGORY_COLOURS) == set(CATEGORIES)


def test_the_same_thing_has_the_same_colour_in_every_table():
    for phase in COMPUTE_PHASES:
        assert CLASS_COLOURS[phase] == PHASE_COLOURS[phase]
    assert CATEGORY_COLOURS["optimizer"] == PHASE_COLOURS["optimizer"]


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("table", TABLES)
def test_colours_are_told_apart(table, vision):
    """A distance of 2 is just noticeable side by side; 15 is plain across a room."""
    for one, other in combinations(TABLES[table], 2):
        seen = (lab(TABLES[table][name], vision) for name in (one, other))
        distance = float(np.linalg.norm(next(seen) - next(seen)))
        assert distance >= 15, f"{one} and {other} with {vision}: {distance:.1f}"


@pytest.mark.parametrize("dark", [False, True])
def test_colours_stand_out_from_the_page_and_text_can_be_read(dark):
    style = Style(dark=dark)
    for table in TABLES.values():
        assert all(contrast(colour, style.surface) >= 1.8 for colour in table.values())
    assert contrast(style.text, style.surface) >= 7
    assert contrast(style.muted, style.surface) >= 4.5


@pytest.mark.parametrize("table", TABLES)
def test_text_on_a_colour_can_be_read(table):
    assert all(contrast(text_on(c), c) >= 4.5 for c in TABLES[table].values())


def test_known_values():
    """WCAG: black on white is 21 to 1."""
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)
    assert translucent("#FF8000", 0.5) == "rgba(255,128,0,0.5)"

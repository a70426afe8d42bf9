"""What tells steps that are compared apart: a letter, a colour and a way to draw lines."""

from __future__ import annotations

from triosim.figures.style import Style

LETTERS = "ABCD"  # as many as `triosim.compare` puts side by side
_DASHES = ("solid", "dash", "dot", "dashdot")
# In no other figure's colours; the first is that of text. Each for a light and for a dark page.
_COLOURS = (("#0B5EA8", "#6DB6F2"), ("#8A6100", "#D9A93A"), ("#00695C", "#4DC7B4"))


def letter_colour(letter: str, style: Style) -> str:
    """The colour of the step with that letter; the baseline, A, has that of text."""
    index = LETTERS.index(letter)
    return style.text if index == 0 else _COLOURS[index - 1][style.dark]


def letter_dash(letter: str) -> str:
    """How its lines are drawn."""
    return _DASHES[LETTERS.index(letter)]

"""One colour for one thing in every figure.

Families first: blues and green compute, pinks and violet move data between GPUs, orange and brown
talk to remote memory, vermillion and dark red are time lost to communication, greys and yellow are
other waiting. Most hues are those of Okabe and Ito (2008); all can be told apart without red,
green or blue cones.
"""

from __future__ import annotations

from collections.abc import Mapping

PHASE_COLOURS: Mapping[str, str] = {
    "forward": "#56B4E9",
    "backward": "#0072B2",
    "optimizer": "#009E73",
    "fetch": "#E69F00",
    "store": "#8C5A1E",
    "all-reduce": "#CC79A7",
    "send": "#8A35E6",
    "recv": "#B0307A",
}
CLASS_COLOURS: Mapping[str, str] = {
    "forward": PHASE_COLOURS["forward"],
    "backward": PHASE_COLOURS["backward"],
    "optimizer": PHASE_COLOURS["optimizer"],
    "slowdown": "#880022",
    "launch_wait": "#A655F6",
    "exposed_communication": "#D55E00",
    "bubble": "#757D88",
    "imbalance": "#D1BC00",
    "idle": "#B9C0C9",
}
# What a phase leaves in memory has the colour of the phase.
CATEGORY_COLOURS: Mapping[str, str] = {
    "parameters": "#5E6B7B",
    "gradients": PHASE_COLOURS["backward"],
    "optimizer": PHASE_COLOURS["optimizer"],
    "inputs": PHASE_COLOURS["fetch"],
    "activations": PHASE_COLOURS["forward"],
}


def channels(colour: str) -> tuple[int, int, int]:
    """Red, green and blue, 0 to 255, of "#RRGGBB"."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return red, green, blue


def translucent(colour: str, opacity: float) -> str:
    """The colour as Plotly writes one that lets the page shine through."""
    red, green, blue = channels(colour)
    return f"rgba({red},{green},{blue},{opacity:g})"


def mixed(colour: str, other: str, share: float) -> str:
    """The colour with `share` of the other mixed in."""
    pairs = zip(channels(colour), channels(other), strict=True)
    return "#" + "".join(f"{round(a + (b - a) * share):02X}" for a, b in pairs)


def luminance(colour: str) -> float:
    """Relative luminance after WCAG 2.1, 0 (black) to 1 (white)."""
    shares = [c / 255 for c in channels(colour)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio after WCAG 2.1, 1 to 21."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def text_on(colour: str) -> str:
    """Black or white, whichever reads better on the colour."""
    return max(("#000000", "#FFFFFF"), key=lambda text: contrast(text, colour))

"""Text from addresses and files on the page."""

from __future__ import annotations

import re
from collections.abc import Iterable

# What Markdown, or Streamlit's :directives:, would read as more than a character.
_SPECIAL = re.compile(r"[\\`*_\[\]<>~$|&#]|:(?=\S)|!(?=\[)|^[-+=]|(?<=\d)\.(?=\s)|(?<=\bwww)\.")

_MICROSECONDS = re.compile(r"(?<=\d) us\b")


def plain(text: str) -> str:
    """The text on one line, written so that none of it is read as Markdown."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return _SPECIAL.sub(lambda match: f"\\{match.group()}", line)


def bullets(lines: Iterable[str]) -> str:
    """A list in Markdown, each line as it is written."""
    return "\n".join(f"- {plain(line)}" for line in lines)


def micro(text: str) -> str:
    """The engine's text, which has to fit any terminal, with the sign of microseconds."""
    return _MICROSECONDS.sub(" \u00b5s", text)


def short(text: str, limit: int = 60) -> str:
    """The beginning of a name that may be of any length."""
    return text if len(text) <= limit else text[: limit - 3] + "..."

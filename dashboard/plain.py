"""Text from addresses and files on the page."""

from __future__ import annotations

import re

# What Markdown, or Streamlit's :directives:, would read as more than a character.
_SPECIAL = re.compile(r"[\\`*_\[\]<>~$|&#]|:(?=\S)|!(?=\[)|^[-+=]|(?<=\d)\.(?=\s)|(?<=\bwww)\.")


def plain(text: str) -> str:
    """The text on one line, written so that none of it is read as Markdown."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return _SPECIAL.sub(lambda match: f"\\{match.group()}", line)


def short(text: str, limit: int = 60) -> str:
    """The beginning of a name that may be of any length."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def counted(count: int, noun: str) -> str:
    """A number of things."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"

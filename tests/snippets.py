"""The examples in a page of Markdown, and how to run them."""

from __future__ import annotations

import re
import shlex
import textwrap
from pathlib import Path

import pytest

from triosim.cli import main

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.M | re.S)
_COMMAND = re.compile(r"^\$ python -m triosim (.+)$", re.M)


def blocks(text: str, *languages: str) -> list[tuple[str, str]]:
    """Fenced blocks in those languages, in order: language and content."""
    found = [(m[2], textwrap.dedent(m[3])) for m in _BLOCK.finditer(text)]
    return [(language, content) for language, content in found if language in languages]


def commands(text: str) -> list[str]:
    """What follows `python -m triosim` in a console."""
    return _COMMAND.findall(text)


def enter_workplace(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if in the repository, but what is written stays in `folder`."""
    monkeypatch.chdir(folder)
    for name in ("sample_trace", "examples"):
        (folder / name).symlink_to(ROOT / name)


def run_command(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It succeeds and says something."""
    if "--help" in words:
        with pytest.raises(SystemExit) as end:
            main(shlex.split(words))
        assert end.value.code == 0
    else:
        assert main(shlex.split(words)) == 0
    assert capsys.readouterr().out

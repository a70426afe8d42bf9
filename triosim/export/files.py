"""Files that are either the old one or the new one, never half of it."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path


def write_atomically(path: str | Path, text: str) -> None:
    """Write beside the target, then put it in its place; a link is followed.

    A file that exists keeps its permissions; a new one gets those of the umask. Raises `OSError`
    with the name in `path`.
    """
    try:
        if Path(path).exists() and not Path(path).is_file():  # a terminal, a pipe
            Path(path).write_text(text, encoding="utf-8")
        else:
            _replace(Path(os.path.realpath(path)), text)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def _replace(target: Path, text: str) -> None:
    beside = target.with_name(f".triosim-{secrets.token_hex(8)}")
    try:
        with beside.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
        if target.exists():
            shutil.copymode(target, beside)
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise

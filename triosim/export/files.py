"""Files that are either the old one or the new one, never half of it."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable
from pathlib import Path

from triosim.errors import ConfigError
from triosim.files import replace_files

GZIP = ".gz"


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write beside the target, then put it in its place; a link is followed.

    Text goes out as UTF-8, and packed where the name ends with .gz. A file that exists keeps its
    permissions; a new one gets those of the umask. Raises `OSError` with the name in `path`.
    """
    data = _bytes(Path(path).name, content)
    try:
        if Path(path).exists() and not Path(path).is_file():  # a terminal, a pipe
            Path(path).write_bytes(data)
        else:
            replace_files({Path(os.path.realpath(path)): data})
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def write_folder(
    field: str, folder: str | Path, files: Iterable[tuple[str, str | bytes]]
) -> list[Path]:
    """Write files into a folder that is new, empty or holds only files of these names.

    Programs that read a folder read all that is in it, so what is left of another export would be
    taken for a part of this one: that is a `ConfigError` on `field`.
    """
    place, contents = Path(folder), dict(files)
    present = {p.name for p in place.iterdir()} if place.is_dir() else set()
    strangers = sorted(n for n in present - contents.keys() if not n.startswith("."))
    if strangers:
        raise ConfigError(
            field, str(folder), f"the folder must be empty or new, and {strangers[0]} is in it"
        )
    try:
        place.mkdir(parents=True, exist_ok=True)
        replace_files({place / name: _bytes(name, content) for name, content in contents.items()})
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from None
    return [place / name for name in contents]


def _bytes(name: str, content: str | bytes) -> bytes:
    if isinstance(content, bytes):
        return content
    data = content.encode()
    # Without a date the same text gives the same file.
    return gzip.compress(data, mtime=0) if name.endswith(GZIP) else data

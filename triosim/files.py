"""Files that are the old ones or the new ones, also where the process is killed."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(*targets: Path) -> Iterator[tuple[Path, ...]]:
    """Paths beside `targets` to write to, each in the folder of its target.

    When all are written they take the places of their targets in that order; where the block
    raises, nothing changes. A file that exists keeps its permissions. A process that is killed
    leaves at most hidden files, .triosim-*, behind.
    """
    beside = tuple(target.with_name(f".triosim-{secrets.token_hex(8)}") for target in targets)
    try:
        yield beside
        for path in beside:
            _to_disk(path, os.O_RDWR)
        for path, target in zip(beside, targets, strict=True):
            if target.exists():
                shutil.copymode(target, path)
            os.replace(path, target)
    finally:
        for path in beside:
            path.unlink(missing_ok=True)
    for folder in {target.parent for target in targets}:
        with contextlib.suppress(OSError):  # not all systems let a folder be opened
            _to_disk(folder, os.O_RDONLY)


def replace_files(files: Mapping[Path, bytes]) -> None:
    """Write files that belong together: all of them are written before the first is replaced."""
    with replacing(*files) as beside:
        for path, data in zip(beside, files.values(), strict=True):
            with path.open("xb") as file:
                file.write(data)


def _to_disk(path: Path, mode: int) -> None:
    """Without this, a power failure could leave the new name with nothing in it."""
    opened = os.open(path, mode)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)

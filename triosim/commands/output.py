"""What all commands share: the parser, standard output, and one line to standard error."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from typing import NoReturn

from triosim.errors import ConfigError
from triosim.export.files import write_atomically
from triosim.legal import MAX_WORKERS

WHOLE = re.compile(r"\d{1,18}", re.ASCII)


class FlagError(Exception):
    """A flag cannot be read; exit status 2."""


class UnknownWordError(FlagError):
    """A word that is neither a flag nor a flag's value."""

    def __init__(self, word: str) -> None:
        super().__init__(f"{word}: no such flag; --help lists them.")
        self.word = word


class Parser(argparse.ArgumentParser):
    """`python -m triosim NAME ...`; a mistake is one sentence instead of a usage text."""

    def __init__(self, name: str, description: str, examples: str) -> None:
        super().__init__(
            prog=f"python -m triosim {name}".rstrip(),
            description=description,
            epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        raise FlagError(f"{message}; --help lists the flags.")


def say(sentence: str) -> None:
    """One line to standard error, also where a path or a value holds line breaks."""
    print("triosim:", " ".join(sentence.splitlines()), file=sys.stderr)


def print_text(text: str) -> None:
    """To standard output, whatever its encoding; a reader that has seen enough is no error."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        print(text.encode(encoding, "backslashreplace").decode(encoding), end="", flush=True)
    except OSError as error:
        # Python writes what is left once more when it exits: to nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            raise OSError(error.errno, error.strerror, "standard output") from None


def read_topology(text: str, field: str = "topology") -> str | dict[str, object]:
    """A name or a file as it is, a description in JSON as a table.

    Raises `ConfigError` on the field where what begins with a brace is no JSON.
    """
    if not text.lstrip().startswith("{"):
        return text
    try:
        described: dict[str, object] = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(field, text, f"not a description in JSON ({error})") from None
    return described


def read_number(name: str, text: str) -> float:
    """A number that was typed for the field `name`."""
    try:
        return float(text)
    except ValueError:
        raise ConfigError(name, text, "must be a number") from None


def read_whole(name: str, text: str, most: int) -> int:
    """A whole number from 1 that was typed for the field `name`."""
    typed = text.strip()
    if not (WHOLE.fullmatch(typed) and 1 <= int(typed) <= most):
        raise ConfigError(name, typed, f"must be a whole number from 1 to {most:,}")
    return int(typed)


def read_workers(text: str | None) -> int | None:
    return None if text is None else read_whole("workers", text, MAX_WORKERS)


def write_json(place: str, text: str) -> None:
    """To a file, or to standard output for "-"."""
    if place == "-":
        print_text(text)
    else:
        write_atomically(place, text)

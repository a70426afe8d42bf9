"""The command line: python -m triosim -trace-dir FOLDER -GPUnumber 4 -case 1

A first word that names a command runs that; everything else is `commands/simulate`. Results go to
standard output, messages to standard error. Exit status 0; 1 for a trace that cannot be read, a
scenario without an answer, a sweep or search without a result or a simulation error; 2 for a flag.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches

from triosim.commands import (
    collective,
    compare,
    explain,
    goodput,
    listing,
    overlay,
    pipeline,
    replay,
    search,
    simulate,
    sweep,
    train,
    train_flags,
    validate,
)
from triosim.commands.output import FlagError, UnknownWordError, say
from triosim.errors import ConfigError, TrioSimError

COMMANDS: Mapping[str, Callable[[Sequence[str]], None]] = {
    "collective": collective.run,
    "pipeline": pipeline.run,
    "train": train.run,
    "compare": compare.run,
    "explain": explain.run,
    "overlay": overlay.run,
    "replay": replay.run,
    "sweep": sweep.run,
    "search": search.run,
    "goodput": goodput.run,
    "validate": validate.run,
    "list": listing.run,
}
_OF_TRAINING = (train.run, search.run)  # whose flags are the fields of a `TrainScenario`
# Flags of the commands that are shorter than what they set.
SHORTER = {
    "operation": "op",
    "size_bytes": "bytes",
    "link_gb_per_s": "bandwidth",
    **{name: f"most_{name}" for name in ("memory_gib", "cost", "energy_kwh", "days")},
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    run: Callable[[Sequence[str]], None] = simulate.run
    if words and words[0] in COMMANDS:
        run = COMMANDS[words.pop(0)]
    try:
        run(words)
    except UnknownWordError as error:
        return _fail(2, _meant(error))
    except FlagError as error:
        return _fail(2, str(error))
    except ConfigError as error:
        return _fail(2, _in_flags(error, train_flags.flag_of if run in _OF_TRAINING else str))
    except TrioSimError as error:
        return _fail(1, str(error))
    except OSError as error:
        return _fail(1, f"{error.filename}: {error.strerror}.")
    return 0


def _fail(status: int, sentence: str) -> int:
    say(sentence)
    return status


def _in_flags(error: ConfigError, other: Callable[[str], str]) -> str:
    """The sentence with flags, and the value as it is typed."""
    value = error.value
    if value is None or isinstance(value, bool):
        value = str(value).lower()
    elif value == "":
        value = '""'
    flag = SHORTER.get(error.field, error.field).replace("_", "-")
    return ConfigError(error.field, value, error.rule, error.near).named(f"--{flag}", other)


def _meant(error: UnknownWordError) -> str:
    """A word that is no flag may be meant as a command."""
    word = error.word
    meant = [] if word.startswith("-") else get_close_matches(word, COMMANDS)
    if not meant:
        return str(error)
    if word in COMMANDS:
        return f"{word}: a command comes first, as in python -m triosim {word} --help."
    return f"{word}: no such command; did you mean {' or '.join(meant)}?"

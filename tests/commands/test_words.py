"""A word that is nearly a command is met with that command."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("word", "command"),
    [("collectiv", "collective"), ("colective", "collective"), ("pipelines", "pipeline"),
     ("lists", "list"), ("godput", "goodput")],
)  # fmt: skip
def test_a_misspelt_command(refused, word, command):
    assert refused(word, "--ranks", "8") == f"{word}: no such command; did you mean {command}?"


def test_a_command_after_flags(refused):
    assert refused("-case", "1", "list") == (
        "list: a command comes first, as in python -m triosim list --help."
    )


def test_a_word_that_is_nothing_like_a_command(refused):
    assert refused("xyz") == "xyz: no such flag; --help lists them."


@pytest.mark.parametrize("command", ["collective", "goodput", "pipeline", "list"])
def test_help(command):
    run = subprocess.run(
        [sys.executable, "-m", "triosim", command, "--help"],
        capture_output=True, text=True, cwd=ROOT, check=True, timeout=60,
    )  # fmt: skip
    assert run.stdout.startswith(f"usage: python -m triosim {command} ")
    assert "examples:" in run.stdout
    assert run.stderr == ""

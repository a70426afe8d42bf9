"""What the README shows must work as it stands there."""

import re
import tomllib

import pytest

from tests.snippets import ROOT, blocks, commands, enter_workplace, run_command
from triosim import Description, collective

README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("words", commands(README))
def test_every_command_runs(words, tmp_path, monkeypatch, capsys):
    enter_workplace(tmp_path, monkeypatch)
    run_command(words, capsys)


def test_the_topology_is_one():
    [(_, text)] = blocks(README, "toml")
    description = Description.from_dict(tomllib.loads(text))
    assert collective(topology=description, ranks=64).time_ms > 0


def test_every_picture_is_there():
    for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", README):
        assert (ROOT / picture).is_file()

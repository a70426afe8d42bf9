"""What the README shows must work as it stands there."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from triosim import Description, collective
from triosim.cli import main

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ python -m triosim (.+)$", README, re.M)


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_runs(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for folder in ("sample_trace", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    if "--help" in words:
        with pytest.raises(SystemExit) as end:
            main(shlex.split(words))
        assert end.value.code == 0
    else:
        assert main(shlex.split(words)) == 0
    assert capsys.readouterr().out


def test_the_topology_is_one():
    [text] = re.findall(r"^```toml\n(.*?)^```", README, re.M | re.S)
    description = Description.from_dict(tomllib.loads(text))
    assert collective(topology=description, ranks=64).time_ms > 0


def test_every_picture_is_there():
    for picture in re.findall(r"!\[[^]]*\]\(([^)]+)\)", README):
        assert (ROOT / picture).is_file()

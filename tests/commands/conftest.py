"""Run a command in this process."""

import pytest

from triosim.cli import main


@pytest.fixture
def printed(capsys):
    """What a command that succeeds prints."""

    def run(*arguments):
        assert main(list(arguments)) == 0
        out, err = capsys.readouterr()
        assert err == ""
        return out

    return run


@pytest.fixture
def refused(capsys):
    """The one sentence that a command is refused with."""

    def run(*arguments, status=2):
        assert main(list(arguments)) == status
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("triosim: ")
        assert err.count("\n") == 1
        return err.removeprefix("triosim: ").strip()

    return run

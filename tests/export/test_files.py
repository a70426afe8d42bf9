"""Files that are the old one or the new one."""

from __future__ import annotations

import gzip
import os
import stat
import threading

import pytest

from triosim.errors import ConfigError
from triosim.export.files import write_atomically, write_folder

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_writes_and_replaces(tmp_path):
    target = tmp_path / "a.json"
    for text in ("one\n", "", "\u00e9\r\n"):
        write_atomically(str(target), text)
        assert target.read_bytes() == text.encode()
    assert os.listdir(tmp_path) == ["a.json"]


def test_names_that_end_with_gz_are_packed(tmp_path):
    for _ in range(2):  # the same text is the same file, whenever it is written
        write_atomically(tmp_path / "a.json.gz", "text")
        assert gzip.decompress((tmp_path / "a.json.gz").read_bytes()) == b"text"
        assert (tmp_path / "a.json.gz").read_bytes()[4:8] == bytes(4)  # no time in the header


def test_a_folder_has_nothing_else_in_it(tmp_path):
    place = tmp_path / "new" / "folder"
    for text in ("one", "two"):
        paths = write_folder("hta", place, [("a.json", text), ("b.et", b"\x00")])
        assert [path.read_bytes() for path in paths] == [text.encode(), b"\x00"]
    with pytest.raises(ConfigError, match=r"empty or new, and b\.et is in it"):
        write_folder("hta", place, [("a.json", "three")])
    assert (place / "a.json").read_text() == "two"


def test_an_interrupted_write_leaves_the_old_file(tmp_path):
    target = tmp_path / "a.json"
    target.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(target, "new" * 100_000 + "\ud800")
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.json"]


@posix
def test_permissions(tmp_path):
    target = tmp_path / "a.json"
    old = os.umask(0o027)
    try:
        write_atomically(target, "new")
        assert mode(target) == 0o640
        target.chmod(0o600)
        write_atomically(target, "newer")
        assert mode(target) == 0o600
    finally:
        os.umask(old)


@posix
def test_a_link_is_followed(tmp_path):
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "a.json", tmp_path / "link"
    for text in ("one", "two"):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        write_atomically(link, text)
        assert link.is_symlink()
        assert target.read_text() == text


@posix
def test_a_pipe_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_atomically(pipe, "text")
    reader.join(timeout=10)
    assert read == ["text"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_name_as_long_as_the_system_allows(tmp_path):
    target = tmp_path / ("x" * 250)
    write_atomically(target, "text")
    assert target.read_text() == "text"


@pytest.mark.parametrize("name", ["no/file", "folder", "x" * 300, "file/below"])
def test_errors_name_the_file(tmp_path, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    target = tmp_path / name
    with pytest.raises(OSError, match=r"directory|too long") as caught:
        write_atomically(target, "text")
    assert caught.value.filename == str(target)
    assert caught.value.strerror
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


@posix
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_names_the_file():
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_atomically("/dev/full", "text")
    assert caught.value.filename == "/dev/full"

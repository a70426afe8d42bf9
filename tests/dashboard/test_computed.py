import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from dashboard.computed import known, once


def slowly(path: str) -> str:
    """What a worker runs: notes that it did."""
    with open(path, "a") as file:
        file.write("ran\n")
    time.sleep(0.5)
    return path


def test_a_class_that_asks_for_the_same_has_it_computed_once(tmp_path: Path) -> None:
    path = str(tmp_path / "runs")
    assert known(slowly, path) is None
    with ThreadPoolExecutor(8) as sessions:
        asked = [sessions.submit(once, "Working", slowly, path) for _ in range(8)]
        assert {one.result(60) for one in asked} == {path}
    assert once("Working", slowly, path) == known(slowly, path) == path
    assert Path(path).read_text() == "ran\n"


def test_what_an_answer_depends_on_is_part_of_its_key(tmp_path: Path) -> None:
    path = str(tmp_path / "runs")
    for stamp in (1, 2, 1):
        once("Working", slowly, path, of=stamp, here=True)
    assert Path(path).read_text() == "ran\n" * 2

"""Preset files: what they mean, and one sentence for each thing that is wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.seminar.library import MAX_UPLOADS, Library
from dashboard.seminar.presets import (
    MAX_BYTES,
    MAX_STEPS,
    Step,
    name_of_file,
    read_folder,
    read_preset,
)
from triosim.errors import ConfigError
from triosim.lab import QUESTIONS

GOOD = """
title = "Pipelines"
minutes = 10

[scenarios.rack]
title = "Two hosts"
page = "network"
settings = { net = "seminar-h100", ranks = 16, size = 0.5, lanes = true }

[[steps]]
scenario = "rack"
note = "Which links cross?"

[[steps]]
question = "P1"
settings = { view = "Grid" }
reveal = ["answer"]

[[steps]]
question = "P2"
"""


def test_a_file_is_a_title_and_steps_in_order() -> None:
    preset = read_preset("tuesday", GOOD.encode())
    assert (preset.name, preset.title, preset.minutes) == ("tuesday", "Pipelines", 10)
    rack, first, second = preset.steps
    assert rack == Step(
        title="Two hosts",
        page="network",
        settings={"net": "seminar-h100", "ranks": "16", "size": "0.5", "lanes": "true"},
        note="Which links cross?",
    )
    assert first == Step(title="P1", question="P1", settings={"view": "Grid"}, reveal=("answer",))
    assert second.reveal == ("class", "answer", "picture")
    assert preset.questions == ("P1", "P2")


def test_a_file_may_begin_with_a_byte_order_mark() -> None:
    assert read_preset("tuesday", b"\xef\xbb\xbf" + GOOD.encode()).minutes == 10


STEP = '[[steps]]\nquestion = "P1"\n'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "steps (missing): must be 1 to 99 tables [[steps]]."),
        ("steps = []", "steps 0: must be 1 to 99 tables [[steps]]."),
        ("steps = 3", "steps 3: must be 1 to 99 tables [[steps]]."),
        ("steps = [3]", "step 1 3: must be a table."),
        ("nonsense", "file tuesday: is no TOML ("),
        ("x = " + "[" * 5000, "file tuesday: is no TOML ("),
        (f"colour = 1\n{STEP}", "preset colour: has no such field; known are title, minutes,"),
        (f"title = 3\n{STEP}", "title 3: must be a text of at most 80 characters."),
        (f"minutes = true\n{STEP}", "minutes True: must be a whole number from 0 to 1000."),
        (f"minutes = -1\n{STEP}", "minutes -1: must be a whole number from 0 to 1000."),
        (f"scenarios = 1\n{STEP}", "scenarios 1: must be a table."),
        (f"[scenarios.a]\n{STEP}", "scenario a, page (missing): must be one of simulate, train,"),
        (
            f'[scenarios.a]\npage = "../../etc/passwd"\n{STEP}',
            "scenario a, page ../../etc/passwd: must be one of simulate, train,",
        ),
        (
            f'[scenarios.a]\npage = "train"\nsettings = {{ model = [1] }}\n{STEP}',
            "scenario a, setting model [1]: must be a short text, a number, true or false.",
        ),
        (f'{STEP}scenario = "a"', "step 1 with a scenario and a question: must have one of"),
        ('[[steps]]\nnote = "x"', "step 1 with neither scenario nor question: must have"),
        (
            '[[steps]]\nscenario = "a"',
            "step 1, scenario a: must be the name of a scenario of this file, which has none.",
        ),
        ("[[steps]]\nscenario = [1]", "step 1, scenario [1]: must be the name of a scenario"),
        (f'{STEP}[[steps]]\nquestion = "P9"', "step 2, question P9: must be one of D1, D2,"),
        ("[[steps]]\nquestion = 1", "step 1, question 1: must be one of D1, D2,"),
        (
            f'{STEP}reveal = ["all"]',
            "step 1, reveal ['all']: must be a list of class, answer, picture.",
        ),
        (
            f"{STEP}reveal = [[1]]",
            "step 1, reveal [[1]]: must be a list of class, answer, picture.",
        ),
        (
            f'{STEP}reveal = ["class", "class"]',
            "step 1, reveal ['class', 'class']: has a part twice.",
        ),
        (
            '[scenarios.a]\npage = "train"\n[[steps]]\nscenario = "a"\nreveal = ["class"]',
            "step 1, reveal ['class']: is for a question.",
        ),
        (f'{STEP}note = "{"x" * 2001}"', "step 1, note xxx"),
        (STEP * (MAX_STEPS + 1), "steps 100: must be 1 to 99 tables [[steps]]."),
        (f"# {'x' * MAX_BYTES}\n{STEP}", "file of 64,"),
    ],
)
def test_what_is_wrong_gets_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_preset("tuesday", text.encode())
    said = str(caught.value)
    assert said.startswith(sentence)
    assert said.endswith(".")
    assert "\n" not in said


def test_bytes_that_are_no_text_are_no_preset() -> None:
    with pytest.raises(ConfigError, match="is no TOML"):
        read_preset("tuesday", b"\xff\xfe\x00")


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("tuesday.toml", "tuesday"),
        ("../../etc/passwd", "passwd"),
        ("C:\\class\\my week.toml", "my-week"),
        ("???.toml", "uploaded"),
        ("x" * 90 + ".toml", "x" * 60),
    ],
)
def test_an_uploaded_files_name_becomes_a_presets(file: str, name: str) -> None:
    assert name_of_file(file) == name


def test_a_folder_gives_its_presets_and_what_is_wrong_with_the_rest(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text(GOOD)
    (tmp_path / "a.toml").write_text(GOOD.replace("minutes = 10", "minutes = 30"))
    (tmp_path / "broken.toml").write_text("steps = 1")
    (tmp_path / "my week.toml").write_text(GOOD)
    (tmp_path / "readme.txt").write_text("no preset")
    found, wrong = read_folder(tmp_path)
    assert list(found) == ["b", "a"]
    assert wrong == [
        "broken.toml: steps 1: must be 1 to 99 tables [[steps]].",
        "my week.toml: name my week: must be letters, digits, - and _, at most 60.",
    ]


def test_the_seminar_ships_in_three_lengths() -> None:
    found, wrong = read_folder()
    assert not wrong
    assert [preset.minutes for preset in found.values()] == [10, 30, 75]
    for preset in found.values():
        assert all(step.note for step in preset.steps)
        assert set(preset.questions) <= set(QUESTIONS)


def uploaded(name: str, title: str = "Mine"):
    return read_preset(name, f'title = "{title}"\n[[steps]]\nquestion = "P1"\n'.encode())


def test_a_name_is_one_presets_whoever_uploads() -> None:
    library = Library({"seminar-10": uploaded("seminar-10")})
    library.add(uploaded("my-week"))
    library.add(uploaded("my-week"))  # the same file again
    for name in ("seminar-10", "my-week"):
        with pytest.raises(ConfigError, match=f"name {name}: must not be the name of another"):
            library.add(uploaded(name, "Another"))
    assert [preset.title for preset in library.presets().values()] == ["Mine", "Mine"]


def test_the_oldest_upload_goes_where_there_are_too_many() -> None:
    library = Library({"seminar-10": uploaded("seminar-10")})
    for number in range(MAX_UPLOADS + 1):
        library.add(uploaded(f"week-{number}"))
    names = list(library.presets())
    assert names[:2] == ["seminar-10", "week-1"]
    assert len(names) == MAX_UPLOADS + 1

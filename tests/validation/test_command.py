"""python -m triosim validate"""

import json

import pytest

from triosim.commands.validate import run
from triosim.errors import ConfigError


def test_a_source_is_shown_with_its_citation_and_what_it_leaves_out(capsys):
    run(["--source", "torchgpipe"])
    text = capsys.readouterr().out
    assert "kakaobrain/torchgpipe" in text
    assert "left out: rows 10-18: AmoebaNet-D" in text
    assert "known failure" in text
    assert "the worst rows" in text


def test_rows_and_json(tmp_path, capsys):
    place = tmp_path / "validation.json"
    run(["--source", "torchgpipe", "--rows", "--json", str(place)])
    assert capsys.readouterr().out.count("->") == 8
    found = json.loads(place.read_text())["torchgpipe"]
    assert len(found["rows"]) == 8
    row = found["rows"][0]
    assert row["calibrated_time_error"] == pytest.approx(
        row["calibrated_s"] / row["published_s"] - 1
    )
    assert row["generic_s"] is None


def test_json_to_standard_output_is_only_json(capsys):
    run(["--source", "bubbles", "--json", "-"])
    assert len(json.loads(capsys.readouterr().out)["bubbles"]) == 48


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--source", "nobody"], "no such source; known are"),
        (["--jobs", "none"], "must be a whole number"),
        (["--source", "simumax-b200", "--published", "/nowhere"], "simumax_b200.csv is not there"),
    ],
)
def test_a_mistake_is_one_sentence(flags, sentence):
    with pytest.raises(ConfigError, match=sentence):
        run(flags)

"""The command explain, on saved scenarios of both kinds."""

import json
from itertools import pairwise

import pytest

import triosim as ts
from triosim.analysis.breakdown import CLASSES


@pytest.fixture
def saved(tmp_path):
    """The path of a saved scenario."""

    def save(scenario):
        path = tmp_path / "scenario.json"
        path.write_text(scenario.to_json())
        return str(path)

    return save


TRACE = ts.Scenario(case=2, gpus=8, rank_speed={3: 0.5})
TRAINING = ts.TrainScenario(
    layers=4, hidden=1024, heads=16, ffn=4096, vocab=16_000, seq_len=1024, pp=2, global_batch=8
)


@pytest.mark.parametrize("scenario", [TRACE, TRAINING])
def test_json_holds_what_the_result_says(printed, saved, scenario):
    found = json.loads(printed("explain", saved(scenario), "--rank", "3", "--json", "-"))
    result = ts.run(scenario)
    breakdown = result.breakdowns[result.class_of(3)]
    assert found["step_ms"] == pytest.approx(result.total_ms)
    for kind in CLASSES[1:]:
        assert found["waits_ms"][kind] == pytest.approx(breakdown.classes_s[kind] * 1e3)
    assert sum(found["critical_totals_ms"].values()) == pytest.approx(result.total_ms)
    path = found["critical_path"]
    assert all(a["end_ms"] == b["start_ms"] for a, b in pairwise(path))
    gaps = [gap["ms"] for gap in found["longest_gaps"]]
    assert gaps == sorted(gaps, reverse=True)
    assert all(gap["why"] for gap in found["longest_gaps"])
    assert {row["base_ms"] for row in found["what_if"]} == {found["step_ms"]}
    assert type(scenario).from_dict(found["scenario"]) == scenario


def test_the_text_says_why_and_what_would_help(printed, saved):
    text = printed("explain", saved(TRACE), "--longest", "1")
    assert "GPU 0 computes nothing for" in text
    assert "waits for another GPU" in text
    assert "GPU 3 runs at 0.5 of full speed" in text
    assert "slow GPUs" in text
    short = printed("explain", saved(TRACE), "--longest", "0", "--no-what-if")
    assert "what if" not in short
    assert "computes nothing" not in short


def test_a_written_result_is_read_too(printed, tmp_path):
    path = str(tmp_path / "result.json")
    printed("-case", "1", "-GPUnumber", "4", "-quiet", "--json", path)
    assert "critical path" in printed("explain", path, "--no-what-if")


def test_what_cannot_be_is_refused(refused, saved, tmp_path):
    path = saved(TRACE)
    assert "ranks go from 0 to 7" in refused("explain", path, "--rank", "8")
    assert refused("explain", path, "--rank", "x") == "--rank x: must be a whole number."
    assert "from 0 to 10,000" in refused("explain", path, "--longest", "-1")
    assert "--scenario" in refused("explain", str(tmp_path / "none.json"))

"""Results read back from `--json`: the same figures, and a sentence for whatever is odd."""

import json
import math
import pickle

import pandas as pd
import pytest

import triosim as ts
from triosim.cli import main
from triosim.errors import ConfigError


@pytest.fixture(scope="module")
def traced():
    return ts.simulate(ts.Scenario(case=4, gpus=4, micro_batch_size=2, jitter=0.02))


@pytest.fixture(scope="module")
def trained():
    return ts.train(ts.TrainScenario(model="llama3-8b", layers=2, gpus=4))


@pytest.fixture
def write(tmp_path):
    """Writes values as JSON; the path."""

    def written(values):
        path = tmp_path / "result.json"
        path.write_text(json.dumps(values), encoding="utf-8")
        return path

    return written


@pytest.mark.parametrize("kind", ["traced", "trained"])
def test_what_is_read_is_what_was_written(kind, request, write):
    result = request.getfixturevalue(kind)
    saved = ts.read_result(write(result.to_dict()))
    assert saved.to_dict() == json.loads(result.to_json())
    assert saved.scenario == result.scenario
    assert saved.checks == result.checks
    assert saved.step_times == result.step_times
    assert saved.breakdown == pytest.approx(result.breakdown)
    for name in saved.tables:
        if name == "ranks":  # up to 64 GPUs the file has every one, the result one of each class
            continue
        pd.testing.assert_frame_equal(saved.table(name), result.table(name), rtol=1e-12)
    for mine, theirs in zip(saved.communication, result.communication, strict=True):
        assert (mine.kind, mine.purpose, mine.transfers) == (
            theirs.kind, theirs.purpose, theirs.transfers,
        )  # fmt: skip
        assert mine.exposed_s == pytest.approx(theirs.exposed_s)
    assert saved.figure("communication") == result.figure("communication")
    assert saved.run().total_ms == result.total_ms == saved.total_ms
    assert pickle.loads(pickle.dumps(saved)).total_ms == saved.total_ms


def test_the_breakdown_is_drawn_from_the_file(traced, trained, write):
    saved = ts.read_result(write(traced.to_dict()))
    assert saved.figure("breakdown") == traced.figure("breakdown")
    [stage] = {bar.y[0] for bar in ts.read_result(write(trained.to_dict())).figure().data}
    assert stage == "mean over GPUs"


def test_many_gpus_are_groups(write):
    result = ts.simulate(ts.Scenario(case=1, gpus=100, rank_speed={3: 0.5}))
    saved = ts.read_result(write(result.to_dict()))
    assert saved.table("ranks")["members"].tolist() == [99, 1]
    assert saved.figure().layout.yaxis.categoryarray == ("GPU 0 (\u00d799)", "GPU 3 (\u00d71)")


def test_the_command_line_writes_it(tmp_path, capsys):
    path = tmp_path / "r.json"
    flags = ["--model", "llama3-8b", "--layers", "2", "--gpus", "4", "--measured-ms", "100"]
    assert main(["train", *flags, "--json", str(path)]) == 0
    capsys.readouterr()
    saved = ts.read_result(path)
    assert saved.difference == pytest.approx(saved.step_ms / 100 - 1)
    with pytest.raises(AttributeError, match="has no timeline; run\\(\\) simulates it again"):
        saved.timeline  # noqa: B018 - reading it is the test


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"schema_version": 2}, "schema_version 2: this program reads version 1."),
        ({"schema_version": None}, "schema_version None: this program reads version 1."),
        ({"schema_version": True}, "schema_version True: this program reads version 1."),
        ({"total_ms": "12"}, "total_ms 12: must be a number"),
        ({"total_ms": math.nan}, "total_ms nan: must be a number"),
        ({"total_ms": 10**400}, "total_ms .*: must be a number"),
        ({"per_rank": None}, "per_rank None: must be a list."),
        ({"per_rank": [7]}, "per_rank 7: must be an object."),
        ({"per_rank": [{"rank": 0}]}, "compute_ms None: must be a number"),
        ({"communication": [{"kind": 3}]}, "kind 3: must be text."),
        ({"checks": [{"id": "a", "detail": "", "passed": 1}]}, "passed 1: must be true or false."),
        ({"step_times": {"steps": 2}}, "mean_ms None: must be a number"),
        ({"provenance": []}, r"provenance \[\]: must be an object."),
        ({"scenario": 5}, "must be a result of simulate or train"),
        ({"scenario": {"case": 9, "gpus": 4}}, "case 9: "),
        ({"scenario": {"case": 1, "gpu5": 4}}, "scenario gpu5: no such field"),
    ],
)
def test_odd_files(traced, write, change, sentence):
    with pytest.raises(ConfigError, match=sentence):
        ts.read_result(write({**traced.to_dict(), **change}))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"breakdown": {}}, "compute None: must be a number"),
        ({"plan": {"model": "x", "machine": 1, "sizes": {}}}, "machine 1: must be text."),
        ({"band": []}, r"band \[\]: must be an object."),
    ],
)
def test_odd_files_of_training(trained, write, change, sentence):
    with pytest.raises(ConfigError, match=sentence):
        ts.read_result(write({**trained.to_dict(), **change}))


def test_other_files(tmp_path, write):
    with pytest.raises(ConfigError, match=r"result .*: No such file"):
        ts.read_result(tmp_path / "none.json")
    with pytest.raises(ConfigError, match="must be a JSON object"):
        ts.read_result(write([1]))
    (tmp_path / "text").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match="not a JSON file"):
        ts.read_result(tmp_path / "text")
    pipeline = tmp_path / "pipeline.json"
    pipeline.write_text(ts.pipeline().to_json(), encoding="utf-8")
    with pytest.raises(ConfigError, match="schema_version None"):
        ts.read_result(pipeline)
    swept = ts.sweep(ts.Scenario(), {"gpus": [1]})
    with pytest.raises(ConfigError, match="must be a result of simulate or train"):
        ts.read_result(write(swept.to_dict()))

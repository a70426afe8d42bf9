import shutil
from dataclasses import fields, replace

import pytest

import triosim as ts
from triosim.resolved import read_any_scenario, scenario_from
from triosim.scenario import SAMPLE_TRACES


def test_what_is_left_open_is_filled_in():
    asked = ts.resolve(ts.TrainScenario(model="llama3-8b", gpus=16, tp=2, dp_shard=-1))
    # 16 GPUs / tp 2 = 8 shards, each with one micro-batch of one sequence.
    said = {"dp_shard": 8, "global_batch": 8, "zero": 3, "seq_len": 8192, "machine": "dgx-h100"}
    assert {name: asked.settings[name] for name in said} == said


def test_two_ways_to_ask_for_a_step_are_one():
    short = ts.TrainScenario()
    spelled = ts.TrainScenario(
        model="Llama3-8B", dp_shard=8, zero=3, seq_len=8192, global_batch=8, compile=False
    )
    assert ts.resolve(short) == ts.resolve(spelled)
    assert hash(ts.resolve(short)) == hash(ts.resolve(spelled))
    assert ts.resolve(short).digest == ts.resolve(spelled).digest


@pytest.mark.parametrize(
    "change", [{"gpus": 16}, {"recompute": "full"}, {"constants": {"gemm": 0.8}}, {"layers": 30}]
)
def test_any_change_is_another_step(change):
    assert ts.resolve(ts.TrainScenario(**change)).digest != ts.resolve(ts.TrainScenario()).digest


def test_a_trace_counts_by_its_content(tmp_path):
    copy = tmp_path / "transformer"
    shutil.copytree(SAMPLE_TRACES / "transformer", copy)
    scenario = ts.Scenario(case=2)
    moved = replace(scenario, trace_dir=str(copy))
    assert ts.resolve(scenario) == ts.resolve(moved)
    with (copy / "trace.csv").open("a") as file:
        file.write("\n")
    assert ts.resolve(scenario) != ts.resolve(moved)


def test_resolving_again_changes_nothing():
    for scenario in (ts.Scenario(case=4, gpus=2), ts.TrainScenario(pp=2, global_batch=8)):
        once = ts.resolve(scenario)
        assert ts.resolve(once.scenario) == once


@pytest.mark.parametrize("scenario", [ts.Scenario(case=1), ts.TrainScenario(gpus=2)])
def test_it_runs_as_its_door_does(scenario):
    by_hand = ts.train if isinstance(scenario, ts.TrainScenario) else ts.simulate
    assert ts.run(ts.resolve(scenario)).total_ms == by_hand(scenario).total_ms
    assert ts.resolve(scenario).run().total_ms == by_hand(scenario).total_ms


def test_a_saved_scenario_or_result_tells_its_kind(tmp_path):
    for scenario in (ts.Scenario(gpus=2), ts.TrainScenario(gpus=2)):
        assert scenario_from(scenario.to_dict()) == scenario
        path = tmp_path / "saved.json"
        path.write_text(scenario.to_json())
        assert read_any_scenario(path) == scenario
        path.write_text(ts.run(scenario).to_json())
        assert read_any_scenario(path) == scenario


def test_what_is_no_scenario_gets_one_sentence(tmp_path):
    path = tmp_path / "list.json"
    path.write_text("[1, 2]")
    with pytest.raises(ts.ConfigError, match="must be a JSON object"):
        read_any_scenario(path)
    with pytest.raises(ts.ConfigError, match="must be a Scenario or a TrainScenario"):
        ts.resolve("llama3-8b")
    with pytest.raises(ts.ConfigError, match="must be a Scenario or a TrainScenario"):
        ts.run({})


@pytest.mark.parametrize("scenario", [ts.Scenario(case=1), ts.TrainScenario()])
def test_no_field_is_forgotten(scenario):
    """Whatever a front door takes changes the digest, or is said by model, trace or stack."""
    said = {"trace_dir", "model", "config", "constants"}
    model = {f.name for f in fields(scenario.transformer())} if hasattr(scenario, "tp") else set()
    listed = ts.resolve(scenario).settings.keys()
    assert {f.name for f in fields(scenario)} - said - model <= listed


@pytest.mark.parametrize("name", ["config", "machine", "trace_dir"])
@pytest.mark.parametrize("value", [["a"], {"ring"}, 3, "", "a\0b"])
def test_what_must_be_text_is_refused_at_once(name, value):
    with pytest.raises(ts.ConfigError, match="must be a name or a path, as text"):
        ts.TrainScenario(**{name: value})

"""The number of tasks counted beforehand is the number that a program gets."""

from importlib import import_module

import pytest

from triosim import ConfigError, Infeasible, Scenario, load_trace, simulate
from triosim.engine.program import MAX_TASKS
from triosim.scenario import SAMPLE_TRACES
from triosim.size import size_of

MLP = str(SAMPLE_TRACES / "mlp")


def sizes(**settings):
    scenario = Scenario(**settings)
    counted = size_of(scenario, load_trace(scenario.trace_dir)).tasks
    return counted, len(simulate(scenario).tasks.program)


@pytest.mark.parametrize("resident", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {"case": 0},
        {"case": 0, "gpus": 2, "rank_speed": {0: 0.5, 1: 2.0}},
        {"case": 1, "accumulate": 3},
        {"case": 1, "gpus": 1},
        {"case": 2, "bucket_mb": 1, "rank_speed": {1: 0.5}},
        {"case": 2, "gpus": 3, "fold": False},
        {"case": 3},
        {"case": 3, "gpus": 3, "fold": False},
        {"case": 4, "gpus": 1, "micro_batch_size": 2},
    ],
)
@pytest.mark.parametrize("trace", ["mlp", "transformer"])
def test_the_count_is_exact_with_unlimited_memory(trace, settings, resident):
    counted, written = sizes(trace_dir=str(SAMPLE_TRACES / trace), resident=resident, **settings)
    assert counted == written


@pytest.mark.parametrize("cut", ["time", "count"])
def test_the_count_of_a_pipeline_is_close(cut):
    """Stages without a part of the optimizer, and cuts that nothing crosses, are not looked at."""
    counted, written = sizes(case=4, gpus=4, micro_batch_size=1, stage_cut=cut)
    assert counted == pytest.approx(written, rel=0.1)


@pytest.fixture
def nothing_written(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("a task was written")

    monkeypatch.setattr("triosim.engine.program.Program._append", refuse)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"case": 2, "gpus": 2**20, "fold": False},
            "1,048,576 GPUs simulated one by one need about .* more than 2,000,000; let identical",
        ),
        (
            {"case": 0, "gpus": 2**20, "rank_speed": {r: 1 / (2 + r / 1e3) for r in range(99_999)}},
            "GPUs of 100,000 different speeds need about .*; use at most [0-9,]+ different speeds",
        ),
        (
            {"case": 4, "gpus": 4, "micro_batch_size": 1, "batch_size_sim": 10**9},
            "1,000,000,000 micro-batches of 1 need about .*; use micro-batches of at least ",
        ),
        (
            {"case": 1, "accumulate": 4096, "gpus": 200, "fold": False},
            "4,096 accumulated batches need about .*; accumulate at most [0-9,]+",
        ),
    ],
)
def test_too_large_a_step_is_refused_before_it_is_written(nothing_written, settings, sentence):
    with pytest.raises(Infeasible, match=sentence):
        simulate(Scenario(trace_dir=MLP, **settings))


def test_a_pipeline_of_too_many_stages_is_refused_before_its_network_is_built(monkeypatch):
    monkeypatch.setattr(import_module("triosim.simulate"), "network_of", None)
    with pytest.raises(ConfigError, match="gpus 131072: case 4 needs a forward operator for every"):
        simulate(Scenario(trace_dir=MLP, case=4, gpus=131_072))


def test_what_the_sentence_recommends_is_accepted():
    """The recommended number fits, and one more does not."""
    trace = load_trace(MLP)
    size = size_of(Scenario(trace_dir=MLP, case=2, gpus=2**20, fold=False), trace)
    for gpus, fits in ((size.most_classes, True), (size.most_classes + 1, False)):
        scenario = Scenario(trace_dir=MLP, case=2, gpus=gpus, fold=False)
        assert (size_of(scenario, trace).tasks <= MAX_TASKS) is fits

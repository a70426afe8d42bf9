"""Any legal scenario has a result or none, the same every time, for what it was said to cost."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from triosim import Infeasible, Scenario, TrainScenario, load_trace, resolve, run
from triosim.errors import ConfigError
from triosim.scenario import SAMPLE_TRACES
from triosim.size import size_of
from triosim.train import make_plan
from triosim.train.size import size_of as train_size

few = settings(max_examples=40, derandomize=True, database=None)
counts = st.sampled_from([1, 2, 3, 4, 6, 8, 16, 64])
speeds = st.dictionaries(st.integers(0, 3), st.sampled_from([0.5, 0.9, 2.0]), max_size=2)
TRACED = {
    "trace_dir": st.sampled_from([str(SAMPLE_TRACES / name) for name in ("mlp", "transformer")]),
    "case": st.integers(0, 4), "gpus": counts, "batch_size_sim": st.none() | counts,
    "micro_batch_size": st.none() | st.sampled_from([1, 2, 8]), "accumulate": st.integers(1, 3),
    "ptp_bandwidth_gb_per_s": st.floats(1e-6, 1e9), "latency_us": st.floats(0, 1e9),
    "interconnect": st.sampled_from(["electrical", "optical"]),
    "mesh_rows": st.sampled_from([None, 1, 2]), "wavelengths": st.none() | st.integers(1, 3),
    "circuit_setup_ms": st.sampled_from([0, 0.1, 1e6]),
    "topology": st.sampled_from([None, "ring", "torus:2x2", "seminar-h100", "fat-tree"]),
    "algorithm": st.sampled_from([None, "auto", "ring", "tree"]), "protocol": st.booleans(),
    "overlap_slowdown": st.none() | st.floats(0, 10),
    "capacity_log2": st.sampled_from([10, 25, 40, 60]),
    "resident": st.booleans(), "bucket_mb": st.sampled_from([1e-6, 1, 1e6]),
    "schedule": st.sampled_from(["gpipe", "1f1b"]), "stage_cut": st.sampled_from(["time", "count"]),
    "rank_speed": speeds, "jitter": st.sampled_from([0, 0.05, 1]), "fold": st.booleans(),
    "dead_links": st.sampled_from([(), ("0-1",), ("0-1=0.5",)]),
}  # fmt: skip
TRAINED = {
    "gpus": counts, "tp": st.sampled_from([1, 2, 3]), "pp": st.sampled_from([1, 2, 4]),
    "cp": st.sampled_from([1, 2]), "dp_replicate": st.sampled_from([1, 2, -1]),
    "layers": st.integers(1, 5), "hidden": st.sampled_from([64, 100]),
    "heads": st.sampled_from([2, 4]),
    "ffn": st.sampled_from([64, 128]), "vocab": st.just(100), "seq_len": st.sampled_from([1, 64]),
    "micro_batch_size": st.integers(1, 3), "global_batch": st.none() | counts,
    "schedule": st.sampled_from(["1f1b", "gpipe", "interleaved", "zb-h1", "zb-v", "dualpipe"]),
    "chunks": st.integers(1, 2), "recompute": st.sampled_from(["none", "full", "selective-op"]),
    "zero": st.sampled_from([None, 0, 1, 2, 3]), "experts": st.sampled_from([None, 0, 4]),
    "top_k": st.sampled_from([None, 1, 2]), "ep": st.sampled_from([1, 2]), "rank_speed": speeds,
    "tied": st.booleans(), "optimizer_sync": st.sampled_from(["global", "stage"]),
    "reshard": st.booleans(), "fsdp": st.sampled_from([1, 2]),
    "offload": st.booleans(), "prefill": st.booleans(), "extra_ms_per_step": st.floats(0, 1e9),
}  # fmt: skip


def outcome(scenario):
    """The file of its result, or the sentence why there is none.

    That settings are not legal together, only the trace or the network may show: a pipeline of more
    stages than operators, a dead link that is not there. That is a `ConfigError` of `run`.
    """
    try:
        result = run(scenario)
    except (Infeasible, ConfigError) as error:
        return str(error)
    assert [check for check in result.checks if not check.passed] == []
    if scenario_fits(scenario):
        assert len(result.tasks.program) <= 5 * estimate(scenario)
    return result.to_json()


def scenario_fits(scenario):
    """What is evicted and fetched again comes on top of the estimate."""
    return isinstance(scenario, TrainScenario) or scenario.capacity_log2 >= 40


def estimate(scenario):
    """Tasks, before any is written."""
    if isinstance(scenario, TrainScenario):
        return train_size(make_plan(scenario)).tasks
    trace = load_trace(scenario.trace_dir)
    return size_of(scenario, trace.at_batch(scenario.batch_size or trace.batch_size)).tasks


@pytest.mark.parametrize(("kind", "choices"), [(Scenario, TRACED), (TrainScenario, TRAINED)])
@few
@given(data=st.data())
def test_it_runs_or_is_infeasible_and_so_again(kind, choices, data):
    given = data.draw(st.fixed_dictionaries({}, optional=choices))
    try:
        scenario = kind(**given)
        resolve(scenario)
    except ConfigError:
        return  # not legal
    assert outcome(scenario) == outcome(kind.from_dict(scenario.to_dict()))

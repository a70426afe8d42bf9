"""`python -m triosim list`: the names that other commands take."""

import pytest

import triosim as ts
from triosim import TrainScenario
from triosim.network.topology.describe import machine_names
from triosim.workload import load_model


def names(text):
    lines = text.splitlines()
    assert all(len(line.split("  ", 1)) == 2 for line in lines)
    return [line.split(" ")[0] for line in lines]


def test_every_listed_topology_and_machine_is_legal(printed):
    listed = names(printed("list", "topologies"))
    assert listed[-1] == "FILE"
    for name in listed[:-1]:
        assert ts.Scenario(topology=name).topology == name
    assert set(machine_names()) < set(listed)
    machines = printed("list", "machines")
    assert names(machines) == list(machine_names())
    assert "Assumed: " in machines


def test_every_listed_algorithm_is_legal(printed):
    listed = printed("list", "algorithms")
    assert names(listed)[0] == "auto"
    for name in names(listed):
        assert ts.collective("all-reduce", algorithm=name, ranks=4).time_ms > 0


def test_every_listed_gpu_is_legal(printed):
    for name in names(printed("list", "gpus")):
        assert ts.Scenario(gpu=name).gpu == name


def test_every_listed_schedule_is_legal(printed):
    listed = names(printed("list", "schedules"))
    for name in listed[:-1]:
        assert printed("pipeline", "--schedule", name, "--microbatches", "8", "--chunks",
                       "2" if name in ("interleaved", "looped-bfs", "zb-v") else "1")  # fmt: skip


@pytest.mark.parametrize("words", [["topology"], ["GPUS"], [""]])
def test_what_cannot_be_listed(refused, words):
    said = " ".join(["list", *words])
    assert refused("list", *words) == (
        f"{said}: what to list must be one of topologies, machines, algorithms, gpus, schedules, "
        "models, stacks, recompute, contexts."
    )


def test_what_there_is_to_list(printed):
    lines = printed("list").splitlines()
    assert "python -m triosim list topologies" in lines
    for line in lines:
        assert printed(*line.split()[3:])


def test_every_listed_model_stack_and_recomputation_is_legal(printed):
    recompute = [name.replace(":N", ":2") for name in names(printed("list", "recompute"))]
    models = names(printed("list", "models"))
    assert len(models) > 50
    for model in models:
        assert load_model(model)
    for stack in names(printed("list", "stacks")):
        assert TrainScenario(stack=stack).stack == stack
    for mode in recompute:
        assert TrainScenario(recompute=mode).recompute == mode

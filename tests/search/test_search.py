"""The search against simulating everything."""

import json
from dataclasses import replace

import pytest

import triosim as ts
from triosim.cli import main
from triosim.search import Limits, Space, search
from triosim.search.found import BEST, BOUNDED, ILLEGAL, NO_MEMORY, OVER_LIMIT, SLOWER
from triosim.train import make_plan

KNOBS = {"micro_batch_sizes": (1, 2), "recompute": ("none", "full"), "schedules": ("1f1b",)}


@pytest.fixture(scope="module")
def base():
    # 4 GPUs of 24 GiB: some layouts fit, some do not.
    return ts.TrainScenario(
        model="llama3-8b", layers=4, vocab=32_000, gpu="l4", gpus=4, seq_len=2048, global_batch=8
    )


@pytest.fixture(scope="module")
def everything(base):
    """Every legal plan of the space, simulated."""
    space = Space(base=base, **KNOBS)
    runs = {}
    for sizes in space.layouts():
        try:
            for scenario in space.choices(sizes):
                try:
                    make_plan(scenario)
                except ts.ConfigError:
                    continue
                runs.setdefault(tuple(sizes.items()), []).append(ts.train(scenario))
        except ts.ConfigError:
            continue
    return runs


def best_step(runs):
    return min((r.step_ms for r in runs if r.fits), default=None)


def test_the_layouts_are_all_ordered_factorisations(base):
    # 2^k GPUs over five axes: C(k + 4, 4) layouts.
    assert len(list(Space(base=base).layouts())) == 15


def test_it_finds_what_simulating_everything_finds(base, everything):
    found = search(base, workers=1, top=100, **KNOBS)
    steps = {key: best_step(runs) for key, runs in everything.items()}
    fastest = min(step for step in steps.values() if step is not None)
    assert found.best.step_ms == fastest
    for one in found.ranked:
        expected = steps.get(tuple(one.sizes.items()))
        assert one.step_ms == expected or one.outcome in (NO_MEMORY, ILLEGAL)
        if one.outcome == NO_MEMORY:
            assert expected is None
        if one.outcome == ILLEGAL:
            assert tuple(one.sizes.items()) not in everything


@pytest.mark.parametrize("top", [1, 3])
def test_no_layout_that_was_left_out_beats_the_winner(base, everything, top):
    found = search(base, workers=1, top=top, **KNOBS)
    steps = {key: best_step(runs) for key, runs in everything.items()}
    order = sorted(step for step in steps.values() if step is not None)
    assert [one.step_ms for one in found.ranked[:top]] == order[:top]
    for one in found.ranked:
        if one.outcome == BOUNDED:
            true = steps[tuple(one.sizes.items())]
            assert true is None or true >= one.at_least_ms * (1 - 1e-9)
            assert true is None or true >= found.best.step_ms
    assert found.simulated < found.plans


def test_a_less_sharded_plan_is_found_where_it_is_faster(base):
    """ZeRO-1 gathers nothing: where it fits, it is what a layout with FSDP is best at."""
    few = {**KNOBS, "micro_batch_sizes": (1,), "top": 100}
    found = search(base, workers=1, zero=(3,), **few)
    more = search(base, workers=1, **few)
    assert more.plans > found.plans
    steps = {tuple(one.sizes.items()): one.step_ms for one in found.ranked if one.step_ms}
    now = {tuple(one.sizes.items()): one.step_ms for one in more.ranked if one.step_ms}
    assert steps.keys() <= now.keys()
    assert all(now[key] <= step for key, step in steps.items())
    assert any(now[key] < step for key, step in steps.items())


def test_processes_find_the_same(base, monkeypatch):
    monkeypatch.setattr(__import__("sys").modules["triosim.search.run"], "FEW", 0)
    few = {**KNOBS, "micro_batch_sizes": (1,), "top": 3}
    here, there = (search(base, workers=n, **few) for n in (1, 2))
    assert [(o.sizes, o.outcome, o.step_ms) for o in here.ranked[: here.exact]] == [
        (o.sizes, o.outcome, o.step_ms) for o in there.ranked[: there.exact]
    ]


def test_memory_and_cost_are_limits(base):
    free = search(base, workers=1, top=100, **KNOBS)
    sizes = sorted(o.figures.peak_memory_bytes for o in free.ranked if o.figures)
    tight = sizes[0] / 2**30 * 1.001
    found = search(base, workers=1, top=100, limits=Limits(memory_gib=tight), **KNOBS)
    placed = [o for o in found.ranked if o.outcome in (BEST, SLOWER)]
    assert placed
    assert all(o.figures.peak_memory_bytes <= tight * 2**30 for o in placed)
    # One step of the winner is one GPU second times the price; a cent less is too little.
    tokens = free.best.scenario.global_batch * 2048
    price = 3600.0 / base.gpus  # a step of 1 s costs 1
    cost = free.best.step_ms / 1e3
    dear = Limits(cost=cost * 0.99, tokens=tokens, gpu_hour_price=price)
    found = search(base, workers=1, limits=dear, **KNOBS)
    assert found.best is None
    assert {o.outcome for o in found.ranked} <= {OVER_LIMIT, NO_MEMORY, ILLEGAL}
    enough = Limits(cost=cost * 1.01, tokens=tokens, gpu_hour_price=price)
    assert search(base, workers=1, limits=enough, **KNOBS).best.sizes == free.best.sizes


def test_layouts_that_do_not_fit_say_where():
    base = ts.TrainScenario(model="llama3-70b", layers=8, gpu="l4", gpus=4, seq_len=2048)
    found = search(
        base, workers=1, recompute=["full"], micro_batch_sizes=[1], schedules=["1f1b"], top=1
    )
    reasons = {tuple(o.sizes.items()): o.reason for o in found.ranked if o.outcome == NO_MEMORY}
    for sizes, reason in reasons.items():
        assert reason.startswith("out of memory")
        assert (" at stage " in reason) == (dict(sizes)["pp"] > 1)
        assert reason.endswith(" of 24 GiB")
    assert reasons


def test_a_mixture_has_expert_parallel_layouts():
    base = ts.TrainScenario(model="mixtral-8x7b", gpus=8)
    degrees = {sizes["ep"] for sizes in Space(base=base).layouts()}
    assert degrees == {1, 2, 4, 8}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"micro_batch_sizes": []}, "micro_batch_sizes"),
        ({"recompute": "full"}, "recompute"),
        ({"micro_batch_sizes": [0]}, "micro_batch_sizes 0"),
        ({"micro_batch_sizes": ["a"]}, "micro_batch_sizes a"),
        ({"recompute": ["foo"]}, "recompute foo"),
        ({"schedules": ["foo"]}, "schedules foo"),
        ({"most_cp": 0}, "most_cp 0"),
        ({"chunks": "x"}, "chunks x"),
        ({"zero": [0]}, "zero 0"),
        ({"top": 0}, "top 0"),
    ],
)
def test_wrong_questions_get_one_sentence(base, wrong, sentence):
    with pytest.raises(ts.ConfigError, match=sentence):
        search(base, workers=1, **wrong)


def test_limits_say_what_they_need():
    with pytest.raises(ts.ConfigError, match="needs tokens"):
        Limits(days=3)
    with pytest.raises(ts.ConfigError, match="needs gpu_hour_price"):
        Limits(cost=3, tokens=1e9)


def test_the_command(capsys):
    model = ["--model", "llama3-8b", "--layers", "2", "--gpus", "4", "--global-batch", "8"]
    choices = ["--micro-batch-sizes", "1", "--recompute-modes", "none", "--schedules", "1f1b"]
    arguments = ["search", *model, *choices, "--quiet"]
    assert main([*arguments, "--workers", "1", "--top", "2"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "the fastest that fits" in shown.out
    assert main([*arguments, "--workers", "1", "--json", "-"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["layouts"][0]["outcome"] == "best"
    best = ts.TrainScenario.from_dict(plain["layouts"][0]["scenario"])
    assert ts.train(best).step_ms == plain["layouts"][0]["step_ms"]


def test_a_wrong_scenario_is_no_empty_table(base):
    with pytest.raises(ts.ConfigError, match="machine nope"):
        search(replace(base, machine="nope"), workers=1)
    with pytest.raises(ts.ConfigError, match="search needs a TrainScenario"):
        search(ts.Scenario())


def test_one_host_is_not_across_hosts(base):
    found = search(base, workers=1, top=100, **KNOBS)
    assert not any("across hosts" in one.reason for one in found.ranked)


@pytest.mark.parametrize(
    ("flag", "value", "legal"),
    [
        ("--most-cost", "5", "5: needs tokens as well, how many the run has"),
        ("--recompute-modes", "foo", "must be none, full"),
        ("--schedules", "foo", "must be one of gpipe"),
        ("--micro-batch-sizes", "1,0", "must be a whole number from 1 to 1,073,741,824"),
        ("--top", "2.5", "must be a whole number from 1 to 1,048,576"),
        ("--workers", "9" * 5000, "must be a whole number from 1 to 1,024"),
    ],
)
def test_the_command_names_its_own_flags(capsys, flag, value, legal):
    assert main(["search", "--gpus", "2", flag, value]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"triosim: {flag} ")
    assert legal in said


def test_the_command_fails_where_no_layout_can_be_used(capsys):
    """No step is in memory of 1 MiB; 3 sequences are no multiple of 2 x 2 or 4."""
    few = ["search", "--model", "gpt2", "--gpus", "2", "--quiet", "--workers", "1"]
    assert main([*few, "--most-memory-gib", "0.001"]) == 1
    assert "triosim: No layout can be used; the nearest: out of memory" in capsys.readouterr().err
    assert main([*few, "--global-batch", "3", "--micro-batch-sizes", "2"]) == 1
    shown = capsys.readouterr()
    assert "the nearest: global_batch 3: is no multiple of" in shown.err
    assert shown.out.startswith("0 legal layouts")

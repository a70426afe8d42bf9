"""Expected sums are those of the steps themselves; texts are checked against the numbers."""

import json
import random

import pytest

import triosim as ts
from triosim.cli import main
from triosim.compare import Delta

TRACE = [
    dict(case=case, gpus=gpus, **more)
    for case in (0, 1, 2, 3, 4)
    for gpus in (1, 4)
    for more in ({}, {"rank_speed": {0: 0.5}})
]
TRAIN = [
    {},
    {"gpus": 16, "recompute": "full"},
    {"tp": 4, "sequence_parallel": True},
    {"pp": 4, "global_batch": 32, "schedule": "gpipe"},
    {"pp": 2, "tp": 2, "global_batch": 16, "optimizer_sync": "stage"},
    {"cp": 2, "context": "ulysses"},
    {"zero": 1, "offload": True},
]


@pytest.fixture(scope="module")
def results():
    small = {"layers": 4}
    return [ts.simulate(ts.Scenario(**one)) for one in TRACE] + [
        ts.train(ts.TrainScenario(**small, **one)) for one in TRAIN
    ]


def test_the_waterfall_sums_to_the_difference_for_any_pair(results):
    chance = random.Random(1)
    for _ in range(60):
        before, after = chance.choices(results, k=2)
        found = ts.compare(before, after)
        total = sum(delta.ms for delta in found.waterfall(1))
        scale = max(before.total_ms, after.total_ms)
        assert total == pytest.approx(after.total_ms - before.total_ms, abs=1e-9 * scale)


def test_a_step_and_itself_have_no_difference(results):
    for result in (results[0], results[-1]):
        found = ts.compare(result, result)
        assert found.waterfall(1) == []
        assert found.differences == []
        assert found.paragraph(1) == "A step takes as long."


def test_the_table_has_what_was_changed_and_what_follows():
    found = ts.compare(ts.TrainScenario(gpus=8), ts.TrainScenario(gpus=16, recompute="full"))
    assert {d.setting: d.values for d in found.differences} == {
        "global_batch": (8, 16),
        "gpus": (8, 16),
        "dp_shard": (8, 16),
        "recompute": ("none", "full"),
    }


def test_of_mixed_kinds_only_what_was_chosen_is_listed():
    found = ts.compare(ts.Scenario(case=2), ts.TrainScenario())
    listed = {d.setting for d in found.differences}
    assert {"trace", "model", "case", "machine"} <= listed
    assert listed.isdisjoint({"jitter", "offload", "gemm", "dead_links", "async_tp"})


def test_the_paragraph_says_the_largest_differences_first():
    # Half the speed everywhere: compute doubles, and nothing else is as large.
    slow = ts.Scenario(case=0, gpus=1, rank_speed={0: 0.5})
    found = ts.compare(ts.Scenario(case=0, gpus=1), slow)
    ratio = found.results[1].total_ms / found.results[0].total_ms
    text = found.paragraph(1)
    assert text.startswith(f"{ratio:.2f}× slower: ")  # noqa: RUF001
    assert "more backward compute" in text.split(",")[0]


def test_the_paragraph_tells_more_work_from_a_slower_step():
    found = ts.compare(ts.Scenario(case=0, gpus=2), ts.Scenario(case=0, gpus=4))
    # Cases 0 to 2 give every GPU a batch of its own; alone they do not wait for each other.
    assert found.paragraph(1) == (
        "A step takes as long. With 32 samples a step instead of 16 it does 2 times as many "
        "samples per second, 1 times per GPU."
    )


def test_two_to_four():
    for count in (1, 5):
        with pytest.raises(ts.ConfigError, match="2 to 4 can be compared"):
            ts.compare(*[ts.Scenario()] * count)


def test_the_command(tmp_path, capsys):
    paths = [tmp_path / "before.json", tmp_path / "after.json"]
    paths[0].write_text(ts.Scenario(case=2).to_json())
    paths[1].write_text(ts.Scenario(case=1).to_json())
    assert main(["compare", *map(str, paths)]) == 0
    said = capsys.readouterr().out
    assert "before" in said
    assert "exposed all-reduce (gradients)" in said
    assert main(["compare", *map(str, paths), "--json", "-"]) == 0
    plain = json.loads(capsys.readouterr().out)
    before, after = plain["steps"]
    total = sum(delta["ms"] for delta in after["waterfall"])
    assert total == pytest.approx(after["step_ms"] - before["step_ms"], abs=1e-9)
    assert main(["compare", str(paths[0])]) == 2
    assert "needs 2 to 4 files, 1 were given" in capsys.readouterr().err


def test_parts_sum_to_each_step_and_rounding_is_no_part(results):
    for result in results:
        found = ts.compare(result, result)
        assert sum(found.parts_ms(0).values()) == pytest.approx(result.total_ms, rel=1e-9)
    # Case 1 and case 2 compute the same: only what is exposed differs.
    found = ts.compare(ts.Scenario(case=1, gpus=4), ts.Scenario(case=2, gpus=4))
    assert [delta.kind for delta in found.waterfall(1)] == ["exposed_communication"]


@pytest.mark.parametrize(
    ("kind", "part", "words"),
    [
        ("compute", "forward", "forward compute"),
        ("compute", "recompute", "recompute"),
        ("compute", "slowdown", "slow-down by transfers"),
        ("exposed_communication", "all-reduce gradients", "exposed all-reduce (gradients)"),
        ("exposed_communication", "fetch", "exposed fetch"),
        ("launch_wait", "launch_wait", "launch wait"),
    ],
)
def test_a_part_in_words(kind, part, words):
    assert Delta(kind=kind, part=part, ms=1.0).words == words


def test_throughput_is_compared_where_the_work_is_the_same():
    small = {"layers": 4, "gpus": 8}
    same = ts.compare(ts.TrainScenario(**small), ts.TrainScenario(**small, micro_batch_size=2))
    assert "times as many samples per second" in same.paragraph(1)
    for other in (ts.Scenario(case=2, gpus=4), ts.TrainScenario(model="gpt2", gpus=16)):
        found = ts.compare(ts.TrainScenario(**small), other)
        assert "samples per second" not in found.paragraph(1)

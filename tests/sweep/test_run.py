"""A sweep has no numbers of its own: each point must be what the step alone gives."""

import json
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import pytest

import triosim as ts
from triosim.cli import main
from triosim.sweep import METRICS, SweepSpec, run_points
from triosim.sweep import run as running
from triosim.sweep.found import without_effect


class Counting(Executor):
    """Runs at once and counts what it was handed."""

    def __init__(self):
        self.scenarios = 0

    def submit(self, function, /, *arguments, **named):
        self.scenarios += len(arguments[0])
        future = Future()
        future.set_result(function(*arguments, **named))
        return future


@pytest.fixture(scope="module")
def small():
    return ts.TrainScenario(layers=2)


def test_each_point_is_the_step_that_it_stands_for(small):
    found = ts.sweep(small, {"gpus": [8, 16], "recompute": ["none", "full"]})
    for point in found.points:
        alone = ts.train(point.scenario)
        assert point.metrics["step_ms"] == alone.step_ms
        assert point.metrics["mfu"] == alone.mfu
        assert point.metrics["peak_memory_gib"] == alone.peak_memory_gib
        assert point.fits == alone.fits


def test_traces_have_the_metrics_that_they_can_have():
    (point,) = ts.sweep(ts.Scenario(case=1), {"gpus": [4]}).points
    alone = ts.simulate(ts.Scenario(case=1, gpus=4))
    assert point.metrics["samples_per_s"] == alone.samples_per_s
    assert point.metrics["mfu"] is None
    assert set(point.metrics) == set(METRICS)


def test_processes_threads_and_here_agree(monkeypatch):
    over = {"gpus": [1, 2, 3, 4], "case": [0, 1, 2]}
    here = ts.sweep(ts.Scenario(), over)
    with ThreadPoolExecutor(2) as threads:
        there = ts.sweep(ts.Scenario(), over, executor=threads)
    monkeypatch.setattr(running, "FEW", 0)
    processes = ts.sweep(ts.Scenario(), over, workers=2)
    assert here.points == there.points == processes.points


def test_equal_steps_are_simulated_once(small):
    counting = Counting()
    # 8 is what -1 stands for.
    found = ts.sweep(small, {"dp_shard": [-1, 8]}, executor=counting)
    assert counting.scenarios == 1
    assert found.points[0].metrics == found.points[1].metrics


def test_points_without_an_answer_say_why(small):
    found = ts.sweep(small, {"tp": [1, 3], "pp": [1]})
    assert found.points[0].feasible
    assert not found.points[1].feasible
    assert "must divide the 8 GPUs" in found.points[1].reason


def test_what_does_not_fit_is_no_best():
    found = ts.sweep(ts.TrainScenario(model="llama3-70b", recompute="full"), {"gpus": [8, 128]})
    tight, wide = found.points
    assert tight.problem is None
    assert tight.reason.startswith("does not fit: needs ")
    assert found.best("step_ms") == wide
    assert found.pareto() == [wide]


def test_what_changes_nothing_is_named(small):
    """Ring or Ulysses: that is one thing without context parallelism."""
    orders = {"context": ["ring", "ulysses"]}
    assert without_effect(ts.sweep(small, orders).points) == ["context"]
    assert without_effect(ts.sweep(small, {**orders, "gpus": [8, 16]}).points) == ["context"]
    # In one of two rows it does change something.
    assert without_effect(ts.sweep(small, {**orders, "cp": [1, 2]}).points) == []
    # One value compares with nothing, and neither does what has no answer.
    assert without_effect(ts.sweep(small, {"context": ["ring"]}).points) == []
    assert without_effect(ts.sweep(small, {"tp": [1, 3, 5]}).points) == []


def test_pareto_has_no_point_that_another_beats(small):
    found = ts.sweep(small, {"micro_batch_size": [1, 2, 4], "recompute": ["none", "full"]})
    front = found.pareto("peak_memory_gib", "tokens_per_s_per_gpu")
    rated = [
        (p.metrics["peak_memory_gib"], p.metrics["tokens_per_s_per_gpu"]) for p in found.points
    ]
    for memory, pace in (
        (p.metrics["peak_memory_gib"], p.metrics["tokens_per_s_per_gpu"]) for p in front
    ):
        assert not any(m <= memory and t >= pace and (m, t) != (memory, pace) for m, t in rated)
    kept = {p.index for p in front}
    for point, (memory, pace) in zip(found.points, rated, strict=True):
        if point.index not in kept:
            assert any(m <= memory and t >= pace for m, t in rated if (m, t) != (memory, pace))


def test_a_store_goes_on_where_it_was_interrupted(tmp_path):
    spec = SweepSpec.made(ts.Scenario(case=1), {"gpus": [1, 2, 3, 4, 5, 6]})
    first = Counting()
    points = run_points(spec, executor=first, store=tmp_path)
    seen = [next(points) for _ in range(2)]
    points.close()
    assert first.scenarios < 6 or len(seen) == 2
    stored = len(running.Store(tmp_path).read())
    second = Counting()
    found = ts.sweep(spec, executor=second, store=tmp_path)
    assert second.scenarios == 6 - stored
    third = Counting()
    again = ts.sweep(spec, executor=third, store=tmp_path)
    assert third.scenarios == 0
    assert again.points == found.points == ts.sweep(spec).points


def test_half_a_file_and_foreign_files_in_a_store_are_passed_over(tmp_path):
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    (tmp_path / ".x.part").write_bytes(b"")
    ts.sweep(ts.Scenario(), {"gpus": [2]}, store=tmp_path)
    assert len(running.Store(tmp_path).read()) == 1


def test_rows_of_another_version_do_not_count(tmp_path, monkeypatch):
    ts.sweep(ts.Scenario(), {"gpus": [2]}, store=tmp_path)
    monkeypatch.setattr(ts, "__version__", "0.0.0-other")
    counting = Counting()
    ts.sweep(ts.Scenario(), {"gpus": [2]}, store=tmp_path, executor=counting)
    assert counting.scenarios == 1


def test_cancelled_work_that_has_not_begun_is_not_done():
    spec = SweepSpec.made(ts.Scenario(case=0), {"gpus": list(range(1, 60))})
    done = []
    with ThreadPoolExecutor(1) as threads:
        submit = threads.submit

        def counted(function, batch):
            return submit(lambda: done.append(len(batch)) or function(batch))

        threads.submit = counted
        points = run_points(spec, executor=threads)
        next(points)
        points.close()
    assert sum(done) < 59


def test_a_store_that_cannot_be_made_gets_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ts.ConfigError, match="store"):
        ts.sweep(ts.Scenario(), {"gpus": [2]}, store=tmp_path / "file")


def test_the_command(tmp_path, capsys):
    path = tmp_path / "spec.toml"
    path.write_text("[scenario]\ncase = 1\n[sweep]\ngpus = [2, 4, 0]\n")
    assert main(["sweep", str(path), "--csv", str(tmp_path / "points.csv"), "--quiet"]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "1 point of 3 left out" in shown.out
    assert "changes nothing" not in shown.out
    assert (tmp_path / "points.csv").read_text().startswith("gpus,step_ms,")
    assert main(["sweep", str(path), "--json", "-"]) == 0
    shown = capsys.readouterr()
    points = json.loads(shown.out)["points"]
    alone = ts.simulate(ts.Scenario(case=1, gpus=4)).total_ms
    assert points[1]["metrics"]["step_ms"] == alone
    assert main(["sweep", str(path), "--metric", "speed"]) == 2
    assert "--metric speed: must be one of step_ms" in capsys.readouterr().err


def test_the_command_says_what_changes_nothing(tmp_path, capsys):
    path = tmp_path / "spec.toml"
    path.write_text('[scenario]\nlayers = 2\n[sweep]\ncontext = ["ring", "ulysses"]\n')
    assert main(["sweep", str(path), "--quiet"]) == 0
    assert "context: this changes nothing in these steps." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("[sweep]\ntp = [3, 5]", [], "No point of 2 has an answer and fits in memory; 1 because: "),
        (
            '[scenario]\nmodel = "llama3-70b"\ngpus = 1\n[sweep]\nmicro_batch_size = [1, 2]',
            [], "No point of 2 has an answer and fits in memory; 2 because: does not fit",
        ),
        ("[scenario]\ncase = 1\n[sweep]\ngpus = [1]", ["--metric", "mfu"], "mfu: no point of"),
    ],
)  # fmt: skip
def test_the_command_fails_where_no_point_has_a_place(tmp_path, capsys, text, options, sentence):
    path = tmp_path / "spec.toml"
    path.write_text(text)
    assert main(["sweep", str(path), "--quiet", *options]) == 1
    shown = capsys.readouterr()
    assert f"triosim: {sentence}" in shown.err
    assert "left out" in shown.out or options

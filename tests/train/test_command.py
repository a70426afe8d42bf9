"""python -m triosim train"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from triosim.cli import main
from triosim.network.topology.machines import load_machine
from triosim.train import TrainScenario, train

RESNET = Path(__file__).parents[2] / "sample_trace/resnet50"
SMALL = [
    "train", "--layers", "2", "--hidden", "512", "--heads", "8", "--ffn", "1024", "--vocab", "4000",
    "--seq-len", "512", "--gpus", "4",
]  # fmt: skip


def run(capsys, *words):
    status = main([*SMALL, *words])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_flags_are_the_fields(capsys, tmp_path):
    saved = tmp_path / "saved.json"
    status, out, _ = run(
        capsys, "--tp", "2", "--recompute", "full", "--sequence-parallel", "--reshard", "false",
        "--rank-speed", "3=0.5", "--constants", "gemm=0.5,launch_us=7", "--dp-shard", "-1",
        "--save-scenario", str(saved),
    )  # fmt: skip
    assert status == 0
    assert "step time" in out
    scenario = TrainScenario.from_dict(json.loads(saved.read_text()))
    assert (scenario.tp, scenario.recompute) == (2, "full")
    assert (scenario.sequence_parallel, scenario.reshard) == (True, False)
    assert scenario.speeds == {3: 0.5}
    assert dict(scenario.constants) == {"gemm": 0.5, "launch_us": 7}
    status, again, _ = main(["train", "--scenario", str(saved)]), *capsys.readouterr()
    assert (status, again) == (0, out)


def test_json_is_the_result_and_nothing_else(capsys):
    status, out, _ = run(
        capsys, "--json", "-", "--tokens", "1e9", "--gpu-hour-price", "2", "--measured-ms", "5"
    )
    assert status == 0
    values = json.loads(out)
    result = train(TrainScenario.from_dict(values["scenario"]))
    assert values["step_ms"] == result.step_ms
    assert values["run"]["days"] == result.run_cost(1e9).days
    assert values["difference"] == pytest.approx(result.step_ms / 5 - 1)


def test_a_schedule_comes_from_a_file(capsys, tmp_path):
    grid = tmp_path / "grid.txt"
    grid.write_text("F0 F1 B0 B1\nF0 B0 F1 B1\n")
    words = ["--pp", "2", "--dp-shard", "2", "--global-batch", "4", "--grid", str(grid)]
    assert run(capsys, *words)[0] == 0
    assert (
        "--grid of 2 micro-batches: must be of 4" in run(capsys, *words, "--global-batch", "8")[2]
    )


def test_a_topology_is_a_name_a_file_or_a_description(capsys, tmp_path):
    """As in `simulate`; a machine's own description is the machine."""
    described = json.dumps(load_machine("dgx-a100").description.to_dict())
    file = tmp_path / "machine.json"
    file.write_text(described)
    times = {
        json.loads(run(capsys, *words, "--json", "-")[1])["step_ms"]
        for words in (
            ("--machine", "dgx-a100"), ("--topology", str(file)), ("--topology", described),
        )
    }  # fmt: skip
    assert len(times) == 1
    assert "--machine {: not a description in JSON" in run(capsys, "--topology", "{")[2]


def test_perfetto_gets_a_trace(capsys, tmp_path):
    place = tmp_path / "trace.json"
    assert run(capsys, "--perfetto", str(place))[0] == 0
    assert json.loads(place.read_text())["traceEvents"]


def test_what_does_not_fit_is_said_with_what_would(capsys):
    status = main(["train", "--model", "llama3-8b", "--dp-replicate", "8", "--dp-shard", "1"])
    captured = capsys.readouterr()
    assert status == 0
    assert "does not fit" in captured.out
    assert "would fit" in captured.out
    assert "None" not in captured.out
    assert "GiB too much" in captured.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--pp", "2", "--schedule", "interleaved", "--global-batch", "6"],
            "--global-batch 6: makes 3 micro-batches of 1 on each of 2 data-parallel ranks; "
            "interleaved on 2 stages needs a multiple of 2 (or fewer than that); 4 or 8 would do.",
        ),
        (
            ["--pp", "2", "--schedule", "zb-h2"],
            "--global-batch 4 (by default): makes 2 micro-batches of 1 on each of 2 data-parallel "
            "ranks; zb-h2 on 2 stages needs at least 2 x 2 - 1; 6 would do.",
        ),
        (
            ["--gpus", "24", "--pp", "3", "--schedule", "dualpipe"],
            "--pp 3: dualpipe needs an even number; 2 or 4 would do.",
        ),
        (["--constants", "gemm=7"], "--constants gemm=7: must be a number from 1e-06 to 1."),
        (["--rank-speed", "1=0"], "--rank-speed 1=0: must be a number from 0.001 to 1000."),
        (
            ["--async-tp", "true", "--tp", "2"],
            "--async-tp true: overlaps the transfers of --sequence-parallel, which is off.",
        ),
        (
            ["--dp-shard", "1", "--dp-replicate", "4", "--zero", "2"],
            "--zero 2: needs --dp-shard of at least 2 to divide something over, it is 1.",
        ),
        (["--tp", "3"], "--tp 3: must divide the 4 GPUs; nearest: 2 or 4."),
        (["--zero", "x"], "--zero x: must be one of none given, 0, 1, 2, 3."),
        (["--reshard", "maybe"], "--reshard maybe: must be true or false."),
        (["--gpu-hour-price", "2"], "--gpu-hour-price 2: needs --tokens beside it."),
        (["--tokens", "many"], "--tokens many: must be a number."),
        (["--rank-speed", "3"], "--rank-speed 3: must be pairs, as in 3=0.5,7=0.8."),
        (["--scenario", "no such.json"], "--scenario no such.json: No such file or directory."),
        (["--micro-batches", "4"], "unrecognized arguments: --micro-batches 4"),
    ],
)
def test_mistakes_are_one_sentence_and_status_2(capsys, words, sentence):
    status, out, err = run(capsys, *words)
    assert (status, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1


def test_what_is_wrong_in_a_config_is_said_with_its_key(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # of a long path only the beginning is said
    config = Path("config.json")
    for text, problem in (
        ('{"model_type": "bert"}', "model_type bert: is not known; known are llama, mistral"),
        (
            '{"model_type": "llama"}',
            "num_hidden_layers (missing): a config.json of llama must have it.",
        ),
    ):
        config.write_text(text)
        assert main(["train", "--config", str(config)]) == 2
        assert f"--config {config}: {problem}" in capsys.readouterr().err


def test_a_trace_without_counted_operations_has_no_utilisation(capsys):
    """What the tracer records has times, and the formulas of its operators are not looked up."""
    recorded = RESNET.parent / "cpu-gpt2"
    assert main(["train", "--trace-dir", str(recorded), "--gpus", "2"]) == 0
    shown = capsys.readouterr().out
    assert "model FLOP/s    not known: the trace counts no operations" in shown
    assert "MFU" not in shown
    assert ", 0 failed" in shown


def test_layers_that_a_named_model_needs(capsys):
    assert main(["train", "--model", "deepseek-v3", "--layers", "2"]) == 2
    assert (
        "--layers 2: must be at least 3, for the first 3 layers of this model are dense."
        in capsys.readouterr().err
    )


def test_a_step_of_pictures_has_samples_and_no_tokens(capsys):
    assert main(["train", "--trace-dir", str(RESNET), "--gpus", "2"]) == 0
    out = capsys.readouterr().out
    assert "dp_shard 2; 2 samples, micro-batches: 1" in out
    assert "samples/s" in out
    assert "token" not in out

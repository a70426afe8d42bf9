"""Addresses, presets and commands of the page Train."""

from __future__ import annotations

import csv
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dashboard.network_settings import SETTINGS as NETWORK
from dashboard.settings import SETTINGS as SIMULATE
from dashboard.traces_links import NAMES as TRACES
from dashboard.train_export import train_command
from dashboard.train_links import link_to, read_train
from dashboard.train_mesh import link_of
from dashboard.train_published import preset, presets, published_for, spelt_out
from dashboard.train_run import check_size
from dashboard.train_settings import CONSTANTS, FIELDS, SETTINGS, control_of
from dashboard.train_values import scenario_of, values_of
from dashboard.validation_links import CHOICES as VALIDATION
from triosim.commands.train import _parser
from triosim.commands.train_flags import scenario_of as scenario_of_flags
from triosim.errors import ConfigError
from triosim.hardware.stacks import RANGED
from triosim.network.topology.machines import load_machine
from triosim.scenario import SAMPLE_TRACES
from triosim.train import TrainScenario, make_plan
from triosim.validation import load_source, rows_of
from triosim.validation.folder import VARIABLE
from triosim.validation.tables import LAYER

TABLE = Path(__file__).parents[2] / "triosim" / "validation" / "data" / "torchtitan.csv"


def published(number: int) -> dict[str, str]:
    with TABLE.open(encoding="utf-8") as table:
        return next(line for line in csv.DictReader(table) if line["row"] == str(number))


def preset_of(number: int) -> str:
    """The label of a row of TorchTitan's table."""
    return next(
        label
        for label, run in presets().items()
        if (run.source.name, run.row.number) == ("torchtitan", number)
    )


def back(scenario: TrainScenario) -> TrainScenario:
    """A scenario that went through an address."""
    link = read_train({key: [str(text)] for key, text in link_to(scenario).items()})
    assert link.rejected == []
    return scenario_of(link.values)


def test_no_name_of_the_address_belongs_to_another_page_too() -> None:
    others = {*SIMULATE, *NETWORK, *TRACES, *VALIDATION, "v", "tab", "window"}
    assert not SETTINGS.keys() & others


@pytest.mark.parametrize("name", presets())
def test_a_preset_survives_controls_and_address(name: str) -> None:
    scenario = preset(name)
    assert back(scenario) == scenario
    assert scenario_of(values_of(scenario)) == scenario
    assert published_for(make_plan(scenario)) is not None


def test_every_published_step_of_a_shipped_table_is_a_preset() -> None:
    rows = {(run.source.name, run.row.number) for run in presets().values()}
    for name, table in (("torchtitan", TABLE), ("zero-bubble", TABLE.with_name("zero_bubble.csv"))):
        with table.open(encoding="utf-8") as lines:
            numbers = {int(line["row"]) for line in csv.DictReader(lines)}
        assert {number for source, number in rows if source == name} == numbers


@pytest.mark.parametrize("number", [0, 1, 2, 4, 8, 10, 11, 12, 13])
def test_a_preset_is_the_published_configuration(number: int) -> None:
    line, plan = published(number), make_plan(preset(preset_of(number)))
    exact = spelt_out(plan)
    assert (exact.gpus, exact.seq_len) == (int(line["gpus"]), int(line["seq_len"]))
    assert exact.global_batch == int(line["global_batch"])
    assert exact.compile == (line["compile"] == "true")
    assert (exact.tp, exact.pp) == (int(line["tp"] or 1), int(line["pp"] or 1))
    found = published_for(plan)
    assert found is not None
    assert found.tokens_per_s_per_gpu == pytest.approx(float(line["tokens_per_s_per_gpu"]))


SINGLE = {
    "source": "a made-up run", "table": "data/ground_truth_single.csv", "model": "GPT h1024 L20",
    "layers": 20, "hidden": 1024, "heads": 16, "kv_heads": 16, "ffn_hidden": 4096, "vocab": 50257,
    "seq_len": 1024, "gpus": 4, "gpu_type": "A100", "dp": 2, "tp": 2, "pp": 1, "cp": 1, "ep": "",
    "micro_batch": 2, "global_batch": 16, "activation_checkpointing": "full",
    "sequence_parallel": "false", "iteration_time_s": 0.25, "memory_gib": "",
}  # fmt: skip


def test_a_run_of_a_data_set_beside_the_project_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with (tmp_path / "vtrain_ground_truth.csv").open("w", encoding="utf-8") as file:
        lines = csv.DictWriter(file, SINGLE)
        lines.writeheader()
        lines.writerows([SINGLE, {**SINGLE, "micro_batch": 4, "iteration_time_s": 0.5}])
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    for row in rows_of(load_source("vtrain-one-node")):
        plan = make_plan(back(row.scenario))
        found = published_for(plan)
        assert found is not None
        assert found.row == row
        # A step of 16 sequences of 1,024 tokens on 4 GPUs.
        assert found.tokens_per_s_per_gpu == 16 * 1024 / 4 / (0.25, 0.5)[row.number]
    assert all(run.source.table for run in presets().values())
    monkeypatch.setenv(VARIABLE, str(tmp_path / "absent"))
    assert published_for(plan) is None


def test_a_published_layer_is_no_step() -> None:
    rows = rows_of(load_source("selective-recompute"))
    layers = [row for row in rows if row.measured == LAYER]
    found = [published_for(make_plan(back(row.scenario))) for row in layers]
    assert [run.row.measured for run in found if run] == [LAYER] * len(layers)


def test_every_field_of_the_scenario_has_a_control() -> None:
    known = set(TrainScenario.__dataclass_fields__)
    assert set(FIELDS.values()) | {"constants"} == known
    assert all(control_of(field) for field in known)
    assert set(CONSTANTS.values()) == set(RANGED)
    assert control_of("schema_version") == ""


OTHERS = {
    "named, changed": {"model": "llama3-8b", "layers": 4, "kv_heads": 4, "tied": True},
    "typed": {
        "layers": 4, "hidden": 512, "heads": 8, "kv_heads": 2, "head_dim": 32, "ffn": 2048,
        "gated": False, "vocab": 1000, "tied": False, "experts": 8, "top_k": 2,
        "shared_experts": 1, "expert_ffn": 256, "seq_len": 512, "ep": 4, "expert_skew": 1.5,
    },
    "recorded": {"trace_dir": str(SAMPLE_TRACES / "gpt2"), "recompute": "full"},
    "grid": {"pp": 2, "grid": "F0 F1 B0 B1\nF0 B0 F1 B1"},
    "network": {"machine": "torus:4x2", "rank_speed": {3: 0.5}, "extra_ms_per_step": 2.5},
    "described": {
        "machine": {
            "kind": "tiers",
            "tiers": [
                {"name": "inside", "children": 4, "link": {"gb_per_s": 300.0, "latency_us": 1.5}},
                {"name": "outside", "children": 0, "link": {"gb_per_s": 25.0, "latency_us": 4.0}},
            ],
        },
    },
    "constants": {"constants": {"gemm": 0.7, "launch_us": 3.0}, "prefetch": 0, "bucket_mb": 10.0},
    "launches": {
        "compile": True, "fused_optimizer": False, "graph_breaks": "mlp", "cuda_graphs": True,
        "optimizer_state": "bf16", "optimizer_sync": "stage", "recompute": "selective-layer:7",
    },
    "prefill": {"prefill": True, "tp": 2, "dp_replicate": -1, "dp_shard": 1},
    "rest": {
        "gpu": "a100-80gb", "zero": 1, "fsdp": 1, "reshard": False, "offload": True,
        "async_tp": True, "sequence_parallel": True, "loss_parallel": True, "tp": 2, "cp": 2,
        "context": "allgather", "precision": "fp16", "optimizer": "sgd", "global_batch": 4,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_any_scenario_survives_controls_and_address(name: str) -> None:
    scenario = TrainScenario(**OTHERS[name])
    assert spelt_out(make_plan(back(scenario))) == spelt_out(make_plan(scenario))


def test_a_whole_number_may_be_written_as_streamlit_does() -> None:
    link = read_train({"layers": ["5.0"], "tp": ["2"], "stack_gemm": ["0.5"]})
    assert link.rejected == []
    assert link.values == {"layers": 5, "tp": 2, "stack_gemm": 0.5}


def test_what_an_address_says_in_vain_gets_a_sentence() -> None:
    link = read_train({"origin": ["a recorded step"], "recorded": ["gpt2"], "layers": ["3"]})
    assert link.rejected == ["layers 3: a recorded step has its own sizes, so it is not used."]
    assert "layers" not in link.values


def test_other_machines_and_lost_uploads_are_named() -> None:
    with pytest.raises(ConfigError, match=r"mine.toml: this page has no such machine"):
        values_of(replace(TrainScenario(), machine="/home/me/mine.toml"))
    for name in ("config", "recorded"):
        origin = {"config": "a config.json", "recorded": "a recorded step"}[name]
        link = read_train({"origin": [origin], name: ["upload-0123456789ab"]})
        assert len(link.rejected) == 1
        assert "upload the file with the digest 0123456789ab" in link.rejected[0]


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({"tp": ["x"]}, "tp x: must be a whole number from 1 to 131,072."),
        ({"tp": ["2", "4"]}, "tp 2 and 4: a setting has one value."),
        ({"tp": ["0"]}, "tp 0: must be a whole number from 1 to 131,072."),
        ({"colour": ["1"]}, "colour 1: this page has no such setting."),
        ({"reshard": ["1"]}, "reshard 1: must be true or false."),
        ({"precision": ["int8"]}, "precision int8: must be one of fp32, tf32, bf16,"),
        ({"v": ["9"]}, "v 9: this page reads links of version 1,"),
        ({"measured": ["nan"]}, "measured nan: must be a number from"),
        ({"train_window": ["5"]}, "train_window 5: must be two numbers from 0 to 100"),
        ({"train_window": ["9", "3"]}, "train_window 9 and 3: must be two numbers"),
        ({"described": ["kind = 1"]}, "described kind = 1: the machine is not own description"),
    ],
)
def test_what_an_address_says_wrongly_gets_a_sentence(
    raw: dict[str, list[str]], sentence: str
) -> None:
    link = read_train(raw)
    assert len(link.rejected) == 1
    assert link.rejected[0].startswith(sentence)
    assert link.values == {}


@pytest.mark.parametrize("name", [preset_of(1), preset_of(13), *OTHERS])
def test_the_command_is_the_scenario(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = TrainScenario(**OTHERS[name]) if name in OTHERS else preset(name)
    monkeypatch.chdir(tmp_path)
    Path("grid.txt").write_text(scenario.grid or "", encoding="utf-8")
    words = shlex.split(train_command(scenario))[4:]
    assert scenario_of_flags(_parser().parse_args(words)) == scenario


def test_too_large_a_step_is_refused_before_it_runs() -> None:
    scenario = replace(preset(preset_of(1)), global_batch=16 * 10_000)
    with pytest.raises(ConfigError, match="10,000 micro-batches") as refused:
        check_size(make_plan(scenario))
    assert control_of(refused.value.field) == "batch"


def test_the_link_of_a_group_follows_from_its_hosts() -> None:
    machine = load_machine("seminar-h100")
    inside, across = np.arange(16).reshape(2, 8), np.arange(16).reshape(8, 2, order="F")
    assert link_of(inside, machine) == "inside a host, 450 GB/s per GPU"
    assert link_of(across, machine) == "between hosts (2), 50 GB/s per GPU"
    assert link_of(across, None) == "the links of the topology"

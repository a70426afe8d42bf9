"""The command line: flags, sentences, exit status, files."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import triosim
from triosim import Scenario, simulate
from triosim.cli import main
from triosim.commands.flags import command_line
from triosim.hardware import gpu_names

ROOT = Path(__file__).resolve().parents[1]
MLP = str(ROOT / "sample_trace" / "mlp")
# The issue's table: flag, field, default, another legal value, its value in the scenario.
FLAGS = [
    ("trace-dir", "trace_dir", Scenario().trace_dir, MLP, MLP),
    ("batch-size", "batch_size", None, "32", 32),
    ("batch-size-sim", "batch_size_sim", None, "32", 32),
    ("bandwidth", "bandwidth_gb_per_s", 696, "1e3", 1000),
    ("ptp-bandwidth", "ptp_bandwidth_gb_per_s", 65, "7.5", 7.5),
    ("GPUnumber", "gpus", 8, "4", 4),
    ("micro-batch-size", "micro_batch_size", None, "2", 2),
    ("case", "case", 0, "2", 2),
    ("capacity", "capacity_log2", 40, "35", 35),
    ("numCols", "mesh_cols", None, "4", 4),
    ("numRows", "mesh_rows", None, "2", 2),
    ("interconnects", "interconnect", "electrical", "1", "optical"),
    ("ptp-convention", "ptp_convention", "algbw", "link", "link"),
    ("latency-us", "latency_us", 0, "5", 5),
    ("bucket-mb", "bucket_mb", 25, ".5", 0.5),
    ("accumulate", "accumulate", 1, "2", 2),
    ("schedule", "schedule", "gpipe", "1f1b", "1f1b"),
    ("stage-cut", "stage_cut", "time", "count", "count"),
    ("optical-bandwidth", "optical_gb_per_s", 64, "128", 128),
    ("hop-latency-ns", "hop_latency_ns", 20, "0", 0),
    ("circuit-setup-ms", "circuit_setup_ms", 0, "1", 1),
    ("gpu", "gpu", None, "H100", "h100-sxm"),
    ("trace-gpu", "trace_gpu", None, "h100-95gb", "h100-96gb"),
    ("slow", "rank_speed", None, "3=0.5", ((3, 0.5),)),
    ("circuit-teardown-ms", "circuit_teardown_ms", 0, "2", 2),
    ("wavelengths", "wavelengths", None, "4", 4),
    ("topology", "topology", None, "torus:2x4", "torus:2x4"),
    ("algorithm", "algorithm", None, "tree", "tree"),
    ("dead-links", "dead_links", (), "3-4,0-1=0.5", ("3-4", "0-1=0.5")),
    ("overlap-slowdown", "overlap_slowdown", None, "0.2", 0.2),
    ("slow-every", "slow_every", 1, "10", 10),
    ("jitter", "jitter", 0, ".05", 0.05),
    ("seed", "seed", 0, "7", 7),
]
SWITCHES = [
    ("resident", "resident", False, True),
    ("no-fold", "fold", True, False),
    ("no-protocol", "protocol", True, False),
]
RESULT_NAMES = {
    *("total_ms", "compute_ms", "launch_wait_ms", "exposed_communication_ms", "bubble_ms"),
    *("imbalance_ms", "idle_ms", "busiest_compute_ms", "speedup", "samples_per_s"),
    *("communication_bytes", "fetched_bytes", "peak_memory_bytes", "per_rank", "checks"),
    *("warnings", "scenario", "schema_version", "provenance", "network", "step_times"),
    "assumptions",
}


@pytest.fixture
def scenario_of(tmp_path):
    """The scenario that arguments mean, as --save-scenario writes it."""

    def parse(*arguments):
        saved = tmp_path / "saved.json"
        assert main([*arguments, "--save-scenario", str(saved), "--quiet"]) == 0
        return Scenario.from_dict(json.loads(saved.read_text()))

    return parse


@pytest.fixture
def refused(capsys):
    """The one sentence that arguments are refused with."""

    def run(*arguments, status=2):
        assert main(list(arguments)) == status
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("triosim: ")
        assert err.endswith(".\n")
        assert err.count("\n") == 1
        return err.removeprefix("triosim: ").strip()

    return run


def python(*arguments, **settings):
    return subprocess.run(
        [sys.executable, "-m", "triosim", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        timeout=60,
        **settings,
    )


# Flags


def test_defaults_are_those_of_the_issue(scenario_of):
    values = dataclasses.asdict(scenario_of())
    for _, field, default, *_ in (*FLAGS, *SWITCHES):
        assert values.pop(field) == default
    assert values == {}


@pytest.mark.parametrize("form", ["-{} {}", "--{} {}", "-{}={}", "--{}={}"])
@pytest.mark.parametrize("flag", FLAGS, ids=[flag[0] for flag in FLAGS])
def test_every_flag_in_every_form(scenario_of, flag, form):
    name, field, _, text, value = flag
    beside = {
        "numCols": ["-numRows", "2"],
        "numRows": ["-numCols", "4"],
        "gpu": ["-trace-gpu", "a40"],
    }
    more = beside.get(name, [])
    assert getattr(scenario_of(*form.format(name, text).split(" "), *more), field) == value


@pytest.mark.parametrize("dashes", ["-", "--"])
@pytest.mark.parametrize(("name", "field", "default", "value"), SWITCHES)
def test_switches(scenario_of, dashes, name, field, default, value):
    assert getattr(scenario_of(f"{dashes}{name}"), field) is value


def test_slow_is_repeatable_and_the_last_flag_counts(scenario_of):
    scenario = scenario_of("--slow", "3=0.5", "-slow=1=2", "-case", "1", "-case", "2")
    assert (scenario.speeds, scenario.case) == ({1: 2.0, 3: 0.5}, 2)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("-GPUnumber 0", "-GPUnumber 0: must be a whole number from 1 to 1048576."),
        ("--GPUnumber=0", "-GPUnumber 0: must be a whole number from 1 to 1048576."),
        ("-GPUnumber -1", "-GPUnumber -1: must be a whole number from 1 to 1048576."),
        ("-GPUnumber 1048577", "-GPUnumber 1048577: must be a whole number from 1 to 1048576."),
        ("-GPUnumber two", "-GPUnumber two: must be a whole number from 1 to 1048576."),
        ("-GPUnumber 2.5", "-GPUnumber 2.5: must be a whole number from 1 to 1048576."),
        ("-case 5", "-case 5: case 5 (Hop, backup workers) is not offered; use 0 to 4."),
        ("-case 6", "-case 6: must be a whole number from 0 to 4."),
        ("-batch-size 0", "-batch-size 0: must be a whole number from 1 to 1073741824."),
        ("-batch-size-sim x", "-batch-size-sim x: must be a whole number from 1 to 1073741824."),
        ("-micro-batch-size 0", "-micro-batch-size 0: must be a whole number from 1 to 1073741"),
        ("-micro-batch-size 9 -batch-size 8", "-micro-batch-size 9: must be at most the simulated"),
        ("-micro-batch-size 65 -case 4 -GPUnumber 4", "-micro-batch-size 65: must be at most the"),
        ("-accumulate 0", "-accumulate 0: must be a whole number from 1 to 4096."),
        ("-capacity 9", "-capacity 9: must be a whole number from 10 to 60."),
        ("-bandwidth 0", "-bandwidth 0: must be a number from 1e-06 to 1e+09."),
        ("-bandwidth -1e5", "-bandwidth -1e5: must be a number from 1e-06 to 1e+09."),
        ("-bandwidth -inf", "-bandwidth -inf: must be a number from 1e-06 to 1e+09."),
        ("-ptp-bandwidth nan", "-ptp-bandwidth nan: must be a number from 1e-06 to 1e+09."),
        ("-latency-us -1", "-latency-us -1: must be a number from 0 to 1e+09."),
        ("-bucket-mb 1e7", "-bucket-mb 1e7: must be a number from 1e-06 to 1e+06."),
        ("-hop-latency-ns ten", "-hop-latency-ns ten: must be a number from 0 to 1e+12."),
        ("-optical-bandwidth 0", "-optical-bandwidth 0: must be a number from 1e-06 to 1e+09."),
        ("-circuit-setup-ms -1", "-circuit-setup-ms -1: must be a number from 0 to 1e+06."),
        ("-circuit-teardown-ms x", "-circuit-teardown-ms x: must be a number from 0 to 1e+06."),
        ("-wavelengths 0", "-wavelengths 0: must be a whole number from 1 to 4096."),
        ("-topology tours", "-topology tours: no such topology; known are ring, switch"),
        ("-topology {", "-topology {: not a description in JSON (Expecting property"),
        ("-topology no.toml", "-topology no.toml: No such file or directory."),
        ("-topology hybrid-cube-mesh -GPUnumber 9 -case 1", "-topology hybrid-cube-mesh: this"),
        ("-algorithm trees", "-algorithm trees: must be auto, ring, bidirectional-ring, tree"),
        ("-algorithm torus -topology switch -case 1", "-algorithm torus: needs a ring, mesh or"),
        ("-dead-links 3 -case 1", "--dead-links 3: no such link; there are, for example, GPU"),
        ("-dead-links 3-4=2", '--dead-links 3-4=2: must be a connection, as in "3-4" (dead) or'),
        ("-dead-links 0-9 -case 1", "--dead-links 0-9: no such link; there are, for example, GPU"),
        ("-overlap-slowdown -1", "-overlap-slowdown -1: must be a number from 0 to 10."),
        ("-slow-every 0", "-slow-every 0: must be a whole number from 1 to 1000."),
        ("-jitter 1.5", "-jitter 1.5: must be a number from 0 to 1."),
        ("-seed -1", "-seed -1: must be a whole number from 0 to 4294967295."),
        ("-interconnects 2", "-interconnects 2: must be 0 or 1."),
        ("-interconnects optical", "-interconnects optical: must be 0 or 1."),
        ("-ptp-convention bus", "-ptp-convention bus: must be algbw or link."),
        ("-schedule zb", "-schedule zb: must be gpipe or 1f1b."),
        ("-stage-cut size", "-stage-cut size: must be time or count."),
        ("-interconnects 1 -numRows 3", "-numRows 3: a mesh of 3 rows and 2 columns does not hold "
         "8 GPUs; legal: 1 x 8, 2 x 4, 4 x 2, 8 x 1."),
        ("-interconnects 1 -numCols 0", "-numCols 0: must be a whole number from 1 to 1048576."),
        ("-interconnects 1 -numCols 16", "-numCols 16: a mesh of 1 row and 16 columns does not"),
        ("--slow 3", "--slow 3: must be RANK=SPEED, as in 3=0.5."),
        ("--slow x=1", "--slow x=1: must be RANK=SPEED, as in 3=0.5."),
        ("--slow 3=", "--slow 3=: must be RANK=SPEED, as in 3=0.5."),
        ("--slow 8=0.5", "--slow 8: ranks go from 0 to 7."),
        ("--slow -1=0.5", "--slow -1: ranks go from 0 to 7."),
        ("--slow 3=0", "--slow 3=0: the speed must be a number from 0.001 to 1000."),
        ("--slow 3=nan", "--slow 3=nan: the speed must be a number from 0.001 to 1000."),
        ("--slow nan", "--slow nan: must be RANK=SPEED, as in 3=0.5."),
        ("--slow 0=0.5 --slow 0=2", "--slow 0=2: 0=0.5 came before; give each rank one speed."),
        ("--slow 2=1 -slow 02=1", "--slow 02=1: 2=1 came before; give each rank one speed."),
        ("--slow 9=0.5", "--slow 9: ranks go from 0 to 7."),
        ("-case 4 -GPUnumber 64", "-GPUnumber 64: case 4 needs a forward operator for every stage"),
        ("-foo", "-foo: no such flag; --help lists them."),
        ("---case 1", "---case: no such flag; --help lists them."),
        ("case 1", "case: no such flag; --help lists them."),
        ("-GPU 4", "-GPU: no such flag; --help lists them."),
        ("-gpunumber 4", "-gpunumber: no such flag; --help lists them."),
        ("-case 1 8", "8: no such flag; --help lists them."),
        ("-case", "-case: needs a value after it."),
        ("-case -GPUnumber 4", "-case: needs a value after it."),
        ("--json=", "--json=: needs a value after it."),
        ("--quiet=1", "--quiet=1: this flag takes no value."),
        ("--scenario /no/such", "--scenario /no/such: No such file or directory."),
    ],
)  # fmt: skip
def test_a_bad_flag_is_one_sentence(refused, arguments, sentence):
    assert refused("-trace-dir", MLP, *arguments.split(" ")).startswith(sentence)


def test_a_mistake_in_a_described_topology_names_file_and_place(refused, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('kind = "ring"\nlink = { gb_per_s = -1 }\n', encoding="utf-8")
    assert refused("-case", "1", "--topology", str(file)).startswith(
        "-topology mine.toml: link.gb_per_s = -1: must be a number from 1e-06"
    )


@pytest.mark.parametrize("arguments", [["-trace-dir", ""], ["--scenario", ""], ["--json", ""]])
def test_an_empty_value(refused, arguments):
    assert refused(*arguments) == f"{arguments[0]}: needs a value after it."


def test_a_value_with_line_breaks_stays_on_one_line(refused):
    assert "must be gpipe or 1f1b" in refused("-schedule", "a\nb\r\nc")


# Status 1


def test_a_trace_error(refused, tmp_path):
    assert refused("-trace-dir", str(tmp_path / "no"), status=1) == (
        f"{tmp_path}/no: no such folder; it should hold trace.csv and tensor.csv."
    )


def test_a_capacity_that_cannot_work(refused):
    sentence = refused("-trace-dir", MLP, "-capacity", "10", status=1)
    assert "aten::linear" in sentence
    assert "1,024" in sentence or "2^10" in sentence


@pytest.mark.parametrize("flag", ["--json", "--timeline", "--perfetto", "--save-scenario"])
def test_a_file_that_cannot_be_written(refused, tmp_path, flag):
    path = str(tmp_path / "no" / "file")
    assert refused("-trace-dir", MLP, flag, path, status=1) == (
        f"{path}: No such file or directory."
    )
    assert refused("-trace-dir", MLP, flag, str(tmp_path), status=1) == (
        f"{tmp_path}: Is a directory."
    )


# What is printed and written


def test_the_summary(capsys):
    assert main(["-trace-dir", MLP, "-GPUnumber", "4", "-case", "1"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("mlp, case 1 (standard data parallel), 4 GPUs, electrical\n")
    result = simulate(Scenario(trace_dir=MLP, gpus=4, case=1))
    assert f"{result.total_ms:.4f} ms" in out
    assert err == ""


def test_the_summary_names_the_folder_here(capsys, monkeypatch):
    monkeypatch.chdir(MLP)
    assert main(["-trace-dir", "."]) == 0
    assert capsys.readouterr().out.startswith("mlp, case 0")


def test_json_to_standard_output_is_json_only(capsys):
    assert main(["-trace-dir", MLP, "-case", "2", "-GPUnumber", "3", "--json", "-"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert values.keys() >= RESULT_NAMES
    assert [entry["rank"] for entry in values["per_rank"]] == [0, 1, 2]
    per_rank = RESULT_NAMES - {
        *("per_rank", "checks", "warnings", "scenario", "schema_version", "provenance"),
        *("network", "step_times", "assumptions"),
    }
    assert values["per_rank"][0].keys() >= per_rank
    assert values["checks"][0].keys() == {"id", "passed", "detail"}
    assert values["schema_version"] == values["scenario"]["schema_version"] == 1
    result = simulate(Scenario.from_dict(values["scenario"]))
    assert {name: getattr(result, name) for name in per_rank} == {
        name: values[name] for name in per_rank
    }


def test_above_64_gpus_json_lists_classes(capsys):
    assert main(["-trace-dir", MLP, "-GPUnumber", "65", "--slow", "9=0.5", "--json", "-"]) == 0
    listed = json.loads(capsys.readouterr().out)["per_rank"]
    assert sorted((entry["rank"], entry["members"]) for entry in listed) == [(0, 64), (9, 1)]


def test_files_and_quiet(capsys, tmp_path):
    names = {name: str(tmp_path / name) for name in ("json", "timeline", "perfetto")}
    flags = [word for name, path in names.items() for word in (f"--{name}", path)]
    arguments = ["-trace-dir", MLP, "-case", "4", "-GPUnumber", "2"]
    assert main([*arguments, "--quiet", *flags]) == 0
    assert capsys.readouterr() == ("", "")
    result = simulate(Scenario(trace_dir=MLP, case=4, gpus=2))
    assert json.loads((tmp_path / "json").read_text()) == json.loads(result.to_json())
    assert len(pd.read_csv(tmp_path / "timeline")) == len(result.timeline)
    assert json.loads((tmp_path / "perfetto").read_text())["traceEvents"]
    assert sorted(os.listdir(tmp_path)) == sorted(names)


def test_warnings_go_to_standard_error(capsys):
    arguments = ["-trace-dir", MLP, "-micro-batch-size", "2"]
    assert main([*arguments, "--json", "-"]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("triosim: warning: The micro-batch of 2 is unused")
    assert len(json.loads(out)["warnings"]) == 1
    assert main([*arguments, "--quiet"]) == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("bandwidth", ["65", "65.0", "100"])
def test_optical_does_not_use_the_ptp_bandwidth(capsys, bandwidth):
    arguments = ["-trace-dir", MLP, "-interconnects", "1", "-ptp-bandwidth", bandwidth]
    assert main([*arguments, "--json", "-"]) == 0
    out, err = capsys.readouterr()
    (warning,) = json.loads(out)["warnings"]
    assert "is unused" in warning
    assert err == f"triosim: warning: {warning}\n"


@pytest.mark.parametrize(
    "arguments", [["-interconnects", "1"], ["-interconnects", "0", "-ptp-bandwidth", "65"]]
)
def test_no_warning_where_the_flag_is_not_given_or_used(capsys, arguments):
    assert main(["-trace-dir", MLP, *arguments]) == 0
    assert capsys.readouterr().err == ""


def test_flags_win_over_the_saved_scenario(scenario_of, tmp_path):
    saved = scenario_of("-trace-dir", MLP, "-case", "2", "-GPUnumber", "4", "--slow", "3=0.5")
    file = tmp_path / "other.json"
    file.write_text(saved.to_json())
    assert scenario_of("--scenario", str(file)) == saved
    changed = scenario_of("--scenario", str(file), "-GPUnumber", "2", "--slow=1=2", "--resident")
    assert changed == dataclasses.replace(saved, gpus=2, rank_speed={1: 2}, resident=True)


def test_a_saved_scenario_with_a_mistake_names_the_file_flag(refused, tmp_path):
    file = tmp_path / "s.json"
    for text, sentence in (
        ('{"graphics": 2}', "--scenario graphics: no such field; known are "),
        ('{"schema_version": 9}', "--scenario: schema_version 9: this program reads version 1."),
        ("[]", "--scenario list: must be a JSON object."),
        ('{"gpus": 0}', "-GPUnumber 0: must be a whole number from 1 to 1048576."),
        ("{", f"--scenario {file}: not a JSON file"),
    ):
        file.write_text(text)
        assert refused("--scenario", str(file)).startswith(sentence)


@pytest.mark.parametrize("flag", ["--help", "-help", "-h"])
def test_help_lists_every_flag_and_examples(capsys, flag):
    with pytest.raises(SystemExit) as stop:
        main([flag])
    assert not stop.value.code
    out = capsys.readouterr().out
    for name, *_ in (*FLAGS, *SWITCHES, ("json",), ("quiet",), ("version",), ("perfetto",)):
        assert f"--{name}" in out
    examples = out.partition("examples:\n")[2].splitlines()
    assert len(examples) >= 3


def test_the_examples_of_the_help_run(capsys, monkeypatch, tmp_path):
    with pytest.raises(SystemExit):
        main(["--help"])
    examples = capsys.readouterr().out.partition("examples:\n")[2].split("\n")
    (tmp_path / "sample_trace").symlink_to(ROOT / "sample_trace")
    monkeypatch.chdir(tmp_path)
    Path("saved.json").write_text("{}")
    for line in filter(None, examples):
        python_, _, module, *arguments = shlex.split(line)
        assert (python_, module) == ("python", "triosim")
        assert main(arguments) == 0


@pytest.mark.parametrize("flag", ["--version", "-version"])
def test_version(capsys, flag):
    with pytest.raises(SystemExit) as stop:
        main([flag])
    assert not stop.value.code
    assert capsys.readouterr().out == f"triosim {triosim.__version__}\n"


def test_an_encoding_that_lacks_a_letter(monkeypatch, tmp_path):
    """Also bytes in a path that are no UTF-8."""
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stdout)
    folder = tmp_path / "\u00ea\udcea"
    shutil.copytree(MLP, folder)
    assert main(["-trace-dir", str(folder)]) == 0
    assert stdout.buffer.getvalue().startswith(b"\\xea\\udcea, case 0")


# The command that reproduces a scenario


def parse(command, folder):
    words = shlex.split(command)
    assert words[:3] == ["python", "-m", "triosim"]
    saved = folder / "parsed.json"
    # Only the reading of flags is of interest: the trace does not exist.
    main([*words[3:], "--save-scenario", str(saved), "--quiet"])
    return Scenario.from_dict(json.loads(saved.read_text()))


def numbers(low, high):
    return st.integers(low, high) | st.none()


RING_OF_50 = {"kind": "ring", "links": [{"gb_per_s": 50, "latency_us": 1.5}]}
PATHS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12
) | st.sampled_from(["-case", "--json", "a b", "it's", '"', "$HOME", "~", "*", "a\nb", "\\", "-"])


@settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    values=st.fixed_dictionaries(
        {"trace_dir": PATHS},
        optional={
            "case": st.integers(0, 4),
            "gpus": st.integers(8, 2**20),
            "batch_size": numbers(8, 2**30),
            "batch_size_sim": numbers(8, 2**30),
            "micro_batch_size": numbers(1, 8),
            "accumulate": st.integers(1, 4096),
            "bandwidth_gb_per_s": st.floats(1e-6, 1e9),
            "ptp_bandwidth_gb_per_s": st.floats(1e-6, 1e9),
            "ptp_convention": st.sampled_from(["algbw", "link"]),
            "latency_us": st.floats(0, 1e9),
            "mesh_rows": numbers(1, 100),
            "mesh_cols": numbers(1, 100),
            "optical_gb_per_s": st.floats(1e-6, 1e9),
            "hop_latency_ns": st.floats(0, 1e12),
            "circuit_setup_ms": st.floats(0, 1e6),
            "circuit_teardown_ms": st.floats(0, 1e6),
            "wavelengths": numbers(1, 4096),
            "topology": st.sampled_from(
                [None, "ring", "dgx-h100", "torus:2x4", "rail-optimised:4x16", RING_OF_50]
            ),
            "algorithm": st.sampled_from([None, "auto", "tree", "hierarchical-pipelined"]),
            "protocol": st.booleans(),
            "dead_links": st.lists(
                st.sampled_from(["3-4", "0-1=0.5", "GPU 2-NVSwitch 0", "leaf 0-spine 0:1=0.25"]),
                max_size=3,
                unique=True,
            ),
            "overlap_slowdown": st.none() | st.floats(0, 10),
            "slow_every": st.integers(1, 1000),
            "jitter": st.floats(0, 1),
            "seed": st.integers(0, 2**32 - 1),
            "capacity_log2": st.integers(10, 60),
            "resident": st.booleans(),
            "bucket_mb": st.floats(1e-6, 1e6),
            "schedule": st.sampled_from(["gpipe", "1f1b"]),
            "stage_cut": st.sampled_from(["time", "count"]),
            "fold": st.booleans(),
            "gpu": st.none() | st.sampled_from(gpu_names()),
            "trace_gpu": st.none() | st.sampled_from(gpu_names()),
            "rank_speed": st.dictionaries(st.integers(0, 7), st.floats(1e-3, 1e3), max_size=4),
        },
    ),
    optical=st.booleans(),
)
def test_the_command_line_of_a_scenario_means_that_scenario(tmp_path, values, optical):
    if optical:
        values |= {"interconnect": "optical", "mesh_rows": 1, "mesh_cols": values.get("gpus", 8)}
    scenario = Scenario(**values)
    parsed = parse(command_line(scenario), tmp_path)
    # ./-case is the same folder as -case, which would read as a flag.
    assert len({s.trace_dir.removeprefix("./") for s in (parsed, scenario)}) == 1
    assert dataclasses.replace(parsed, trace_dir=scenario.trace_dir) == scenario


def test_a_topology_in_a_file_with_blanks_in_its_name(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("it's mine.json").write_text(json.dumps(RING_OF_50))
    scenario = Scenario(trace_dir="t", topology="it's mine.json")
    assert parse(command_line(scenario), tmp_path).topology == "it's mine.json"


def test_a_folder_below_the_current_one_is_named_from_here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    below = Scenario(trace_dir=str(tmp_path / "a b" / "c"), case=1)
    assert command_line(below) == "python -m triosim -trace-dir 'a b/c' -case 1"
    assert parse(command_line(below), tmp_path).trace_dir == "a b/c"
    beside = Scenario(trace_dir=str(tmp_path.parent / "it's"))
    assert parse(command_line(beside), tmp_path).trace_dir == beside.trace_dir


# Real processes


def test_the_issue_s_first_command():
    done = python("-trace-dir", "sample_trace/transformer", "-GPUnumber", "4", "-case", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("transformer, case 1 (standard data parallel), 4 GPUs")


def test_two_runs_give_the_same_bytes():
    runs = [
        python("-case=2", "-GPUnumber=4", "--slow=1=0.5", "--json=-", env=os.environ | more)
        for more in ({"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2"})
    ]
    assert [run.returncode for run in runs] == [0, 0]
    assert runs[0].stdout == runs[1].stdout


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
@pytest.mark.parametrize("flags", ["", "--json -"])
def test_a_reader_that_stops_early_is_no_error(tmp_path, flags):
    timeline = tmp_path / "timeline.csv"
    command = f"{shlex.quote(sys.executable)} -m triosim --timeline {shlex.quote(str(timeline))}"
    done = subprocess.run(
        f"({command} {flags}; echo status $? >&2) | true",
        shell=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
        timeout=60,
    )
    assert done.stderr == "status 0\n"
    assert timeline.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_standard_output_that_is_full():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "triosim", "-trace-dir", MLP],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            check=False,
            timeout=60,
        )
    assert done.returncode == 1
    assert done.stderr == "triosim: standard output: No space left on device.\n"

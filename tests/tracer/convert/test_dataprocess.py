"""The command: a pair, a folder, what it prints and how it ends."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tracer.dataprocess import main
from triosim.trace import read_trace

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def folder(linear_step, tmp_path):
    (tmp_path / "profiler_net-iter43.json").write_bytes(linear_step[0])
    (tmp_path / "graph_net-iter43.json").write_bytes(linear_step[1])
    return tmp_path


def test_a_pair(folder, tmp_path, capsys):
    files = [str(folder / f"{kind}_net-iter43.json") for kind in ("profiler", "graph")]
    assert main([*files, "--output", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "7 of 7 rows matched by record function id" in printed
    assert "3 found, 3 written (1 forward, 1 backward, 1 optimizer; 2 for tensor" in printed
    assert "0.035 ms of 0.035 ms attributed (100.00%)" in printed
    trace = read_trace(tmp_path / "out" / "net-iter43")
    assert trace.batch_size == 4
    assert trace.meta["converted_from"] == ["profiler_net-iter43.json", "graph_net-iter43.json"]
    assert (trace.meta["step"], trace.meta["device"]) == (0, "gpu")


@pytest.mark.parametrize("apart", [False, True])
def test_a_folder(folder, apart):
    if apart:  # as the original lays its files out
        for kind in ("profiler", "graph"):
            (folder / kind).mkdir()
            name = f"{kind}_net-iter43.json"
            (folder / name).rename(folder / kind / name)
    facts = {"batch_size": 8, "gpu": "H100", "torch": "2.13.0"}
    (folder / "meta.json").write_text(json.dumps({"batch_size": 2}))  # of the last recording
    (folder / "meta_net-iter43.json").write_text(json.dumps(facts))
    assert main([str(folder)]) == 0
    trace = read_trace(folder / "middledata" / "trace" / "net-iter43")
    assert (trace.batch_size, trace.meta["gpu"], trace.meta["torch"]) == (8, "H100", "2.13.0")


def test_the_default_folder_is_the_collectors(folder, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    for file in folder.glob("*.json"):
        file.rename(tmp_path / "data" / file.name)
    monkeypatch.chdir(tmp_path)
    assert main([]) == 0
    assert (tmp_path / "data/middledata/trace/net-iter43/trace.csv").is_file()


def test_one_bad_recording_does_not_stop_the_others(folder, capsys):
    (folder / "profiler_bad.json").write_text('{"traceEvents": [')
    assert main([str(folder)]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("dataprocess: profiler_bad.json, line 1, ")
    assert captured.err.count("\n") == 1
    assert (folder / "middledata/trace/net-iter43/trace.csv").is_file()
    assert not (folder / "middledata/trace/bad").exists()


def test_tp_ops_and_step(folder, capsys):
    assert main([str(folder), "--tp-ops", "aten::nothing", "--step", "0"]) == 0
    assert "0 for tensor parallelism" in capsys.readouterr().out
    assert main([str(folder), "--step", "5"]) == 1
    assert "there is no step 5; it has 0." in capsys.readouterr().err


def test_an_empty_folder(tmp_path, capsys):
    assert main([str(tmp_path)]) == 1
    assert "no profiler file; it should hold profiler_NAME.json" in capsys.readouterr().err


def test_too_many_files(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["a", "b", "c"])


def test_as_a_script_and_without_torch(folder, tmp_path):
    """The web page imports the converter, so torch must not come with it."""
    script = ROOT / "tracer" / "dataprocess.py"
    words = [sys.executable, str(script), str(folder), "--output", str(tmp_path / "out")]
    subprocess.run(words, check=True, capture_output=True, cwd=tmp_path)
    assert (tmp_path / "out/net-iter43/tensor.csv").is_file()
    code = "import sys, tracer.convert; print([m for m in ('torch', 'streamlit', 'plotly') " \
        "if m in sys.modules])"  # fmt: skip
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert run.stdout.strip() == "[]"

"""python tracer/synthesize.py"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tracer.synthesize import main
from triosim import read_trace

ROOT = Path(__file__).resolve().parents[3]


def test_a_trace_and_a_summary(tmp_path, capsys):
    folder = tmp_path / "trace"
    words = ["zoo:cnn", "--gpu", "A100", "--batch", "8", "--dtype", "bf16", "--output", str(folder)]
    assert main(words) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith(f"{folder}: ")
    assert "a step of 8 on a100" in shown[1]
    trace = read_trace(folder)
    assert (trace.name, trace.batch_size, trace.warnings) == ("cnn", 8, ())
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    assert meta["command"] == (
        "python tracer/synthesize.py zoo:cnn --gpu A100 --batch 8 --dtype bf16 --optimizer adam "
        "--attention flash"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["zoo:cnn", "--gpu", "h1", "--batch", "8"], "synthesize: --gpu h1: no such GPU"),
        (["zoo:cnn", "--gpu", "t4", "--batch", "0"], "synthesize: --batch 0: must be"),
        (["nothing", "--gpu", "t4", "--batch", "1"], "synthesize: model nothing: is "),
        (["zoo:greedy", "--gpu", "t4", "--batch", "1"], "synthesize: model zoo:greedy: needs"),
    ],
)
def test_one_sentence_for_what_is_wrong(words, sentence, capsys):
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith(sentence)
    assert error.count("\n") == 1


def test_it_runs_as_a_script():
    run = subprocess.run(
        [sys.executable, "tracer/synthesize.py", "--help"],
        capture_output=True, text=True, check=True, cwd=ROOT,
    )  # fmt: skip
    assert "h100-sxm" in run.stdout


def test_importing_tracer_needs_no_torch():
    code = "import sys, tracer, tracer.synthesize; print('torch' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert run.stdout.strip() == "False"

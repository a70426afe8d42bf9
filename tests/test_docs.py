"""The guides: every example runs, the new parallelism has its closed form, the pages build."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.snippets import ROOT, blocks, commands, enter_workplace, run_command

DOCS = ROOT / "docs"
GUIDES = sorted(
    path.name for path in DOCS.glob("*.md") if blocks(path.read_text("utf-8"), "python", "console")
)
PAGE, PARALLELISM = "adding-a-page.md", "adding-a-parallelism.md"


def text_of(guide):
    return (DOCS / guide).read_text(encoding="utf-8")


@pytest.mark.parametrize("guide", [name for name in GUIDES if name != PAGE])
def test_every_example_runs(guide, tmp_path, monkeypatch, capsys):
    if "import torch" in text_of(guide):
        pytest.importorskip("torch")
    enter_workplace(tmp_path, monkeypatch)
    names = {"__name__": "guide"}
    for language, content in blocks(text_of(guide), "python", "console", "toml"):
        if language == "toml":
            (tmp_path / "cluster.toml").write_text(content, encoding="utf-8")
        elif language == "python":
            exec(compile(content, guide, "exec"), names)
            capsys.readouterr()
        else:
            for words in commands(content):
                run_command(words, capsys)


def test_the_new_page_runs():
    [(_, page)] = blocks(text_of(PAGE), "python")
    at = AppTest.from_string(page, default_timeout=60).run()
    assert not at.exception
    before = at.metric[0].value
    at.slider(key="ranks").set_value(16).run()
    assert not at.exception
    assert at.metric[0].value != before  # a second host joins over NICs


@pytest.fixture(scope="module")
def local_sgd():
    """The function that the guide on parallelisms writes."""
    names = {}
    for _, content in blocks(text_of(PARALLELISM), "python")[:2]:
        exec(compile(content, PARALLELISM, "exec"), names)
    return names["local_sgd"]


@pytest.mark.parametrize(("gpus", "local_steps"), [(1, 3), (2, 1), (8, 4), (1024, 2)])
def test_the_new_parallelism_has_its_closed_form(local_sgd, gpus, local_steps):
    """H T + 2(n-1) a + 2(n-1)/n S/B, from the file of the trace alone."""
    folder = ROOT / "sample_trace" / "mlp"
    with (folder / "trace.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    time_us = "Operator_cudatimenooverlap"
    step_s = sum(float(row[time_us]) for row in rows) * 1e-6
    # Three linear layers in float32: 1024 to 4096 to 4096 to 1000.
    parameters = (1024 + 1) * 4096 + (4096 + 1) * 4096 + (4096 + 1) * 1000
    ring_s = 2 * (gpus - 1) * 5e-6 + 2 * (gpus - 1) / gpus * 4 * parameters / 100e9
    result = local_sgd(str(folder), gpus, local_steps)
    assert result.total_ms / 1e3 == pytest.approx(local_steps * step_s + ring_s, rel=1e-9)
    assert result.breakdown["exposed_communication"] == pytest.approx(ring_s * 1e3, abs=1e-9)
    # On one GPU that check expects case 1's step, which has one optimizer for all its batches.
    unmet = {check.id for check in result.checks if not check.passed}
    assert unmet <= ({"recorded-time"} if gpus == 1 else set())


def test_the_documentation_builds_without_a_warning(tmp_path):
    """By the command itself; it fails on dead links, unknown pages and docstrings that are odd."""
    done = subprocess.run(
        [ROOT / "scripts" / "docs", tmp_path],
        capture_output=True,
        text=True,
        env={**os.environ, "BIN": str(Path(sys.executable).parent)},
    )
    assert done.returncode == 0, done.stderr
    reference = (tmp_path / "api" / "triosim.html").read_text(encoding="utf-8")
    assert 'id="triosim.simulate"' in reference
    outside = [page.name for page in tmp_path.rglob("*.html") if "//cdn" in page.read_text("utf-8")]
    assert outside == []

"""A process that is killed while it writes leaves the old file or the new one, never a part."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from triosim import TrainScenario, read_trace, sweep, write_trace
from triosim.files import replace_files, replacing
from triosim.scenario import SAMPLE_TRACES
from triosim.sweep.store import COLUMNS, Store

ROOT = Path(__file__).resolve().parents[1]
KILLS = 12
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks and kills")
# Children write again and again, each time other contents that say which they are, until they are
# killed: at moments spread over what they do, and before and after a file is replaced.
WRITER = """
import itertools, os, signal, sys, time
from dataclasses import replace
from pathlib import Path
import pandas as pd
from triosim.export.files import write_atomically
from triosim.export.table import to_csv
from triosim.sweep.store import Store
from triosim.trace import read_trace, write_trace
trace = read_trace(sys.argv[3])

def write(folder, number):
    store = Store(folder / "store")
    for n in itertools.count():
        frame = pd.DataFrame({"n": [n] * 20_000})
        write_atomically(folder / "table.csv", to_csv(frame))
        named = tuple(replace(op, name=f"{n}") for op in trace.operators)
        write_trace(replace(trace, operators=named, meta={"n": n}), folder / "trace")
        rows = {f"{n}-{i}": {"problem": f"{n}", "fits": True} for i in range(2_000)}
        store.write(rows)
        if n == 0 and number % 2:  # at the call of that number, before or after it
            calls = itertools.count()
            def counted(*given, real=os.replace):
                call = next(calls)
                if call == number // 4 and number % 4 == 1:
                    os.kill(os.getpid(), signal.SIGKILL)
                real(*given)
                if call == number // 4:
                    os.kill(os.getpid(), signal.SIGKILL)
            os.replace = counted

for number in range(int(sys.argv[2])):
    folder = Path(sys.argv[1], str(number))
    folder.mkdir()
    child = os.fork()
    if child == 0:
        write(folder, number)
    while not list(folder.glob("store/*.parquet")):
        time.sleep(0.002)
    if number % 2 == 0:
        time.sleep(0.007 * number)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The folders of writers that were killed."""
    root = tmp_path_factory.mktemp("killed")
    arguments = [str(root), str(KILLS), str(SAMPLE_TRACES / "mlp")]
    subprocess.run([sys.executable, "-c", WRITER, *arguments], cwd=ROOT, check=True, timeout=120)
    return [root / str(number) for number in range(KILLS)]


def test_a_table_is_whole(killed):
    for folder in killed:
        frame = pd.read_csv(folder / "table.csv")
        assert len(frame) == 20_000
        assert frame["n"].nunique() == 1


def test_each_file_of_a_trace_is_whole(killed):
    """The three are replaced one after the other; each of them is of one writing."""
    for folder in killed:
        names = {op.name for op in read_trace(folder / "trace").operators}
        assert len(names) == 1
        n = json.loads((folder / "trace" / "meta.json").read_text())["n"]
        assert n - 1 <= int(names.pop()) <= n


def test_a_batch_of_a_sweep_is_whole_or_absent(killed):
    for folder in killed:
        counts = pd.Series([row["problem"] for row in Store(folder / "store").read().values()])
        assert set(counts.value_counts()) == {2_000}


def test_what_is_left_behind_is_hidden_and_not_read(killed):
    for folder in killed:
        for path in folder.rglob("*"):
            known = path.name in ("table.csv", "trace.csv", "tensor.csv", "meta.json")
            assert (
                path.is_dir()
                or known
                or path.suffix == ".parquet"
                or path.name.startswith(".triosim-")
            )


def test_a_killed_sweep_goes_on_with_what_it_has(tmp_path):
    """The command is killed in the middle; the second run computes only what is missing."""
    spec, store = tmp_path / "sweep.toml", tmp_path / "store"
    spec.write_text("[scenario]\nlayers = 2\n[sweep]\ngpus = {from = 1, to = 64, factor = 2}\n")
    command = [sys.executable, "-m", "triosim", "sweep", str(spec), "--workers", "1", "--store"]
    run = subprocess.Popen(
        [*command, str(store)], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while len(list(store.glob("*.parquet"))) < 2 and run.poll() is None:
        time.sleep(0.005)
    run.kill()
    run.wait()
    before = Store(store).read()
    assert len(before) >= 2
    over = {"gpus": [2**k for k in range(7)]}
    result = sweep(TrainScenario(layers=2), over, workers=1, store=store)
    assert result.frame.equals(sweep(TrainScenario(layers=2), over, workers=1).frame)
    after = Store(store).read()
    assert len(after) == 7
    assert all(after[digest] == row for digest, row in before.items())
    assert set(COLUMNS) <= set(next(iter(before.values())))


def test_files_that_belong_together_change_together(tmp_path):
    """All are written before the first is replaced: what fails in the last changes none."""
    one, two = tmp_path / "one", tmp_path / "two"
    replace_files({one: b"old", two: b"old"})
    with pytest.raises(TypeError):
        replace_files({one: b"new", two: "no bytes"})
    with pytest.raises(OSError, match="No such file"), replacing(one, two) as (beside, _):
        beside.write_bytes(b"new")
    assert (one.read_bytes(), two.read_bytes()) == (b"old", b"old")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]
    write_trace(read_trace(SAMPLE_TRACES / "mlp"), tmp_path / "trace")
    assert len(list((tmp_path / "trace").iterdir())) == 3

"""The result's table and JSON, and the command line's words."""

import json

import pytest

from triosim import ConfigError
from triosim.commands.pipeline import run
from triosim.pipelines import pipeline


def test_timeline_columns():
    frame = pipeline("interleaved", stages=2, microbatches=2, chunks=2).timeline
    assert list(frame.columns) == [
        "stage", "chunk", "microbatch", "kind", "start", "end", "backward_chunk",
        "backward_microbatch",
    ]  # fmt: skip
    first = frame.iloc[0]
    assert (first.stage, first.chunk, first.microbatch, first.kind) == (0, 0, 0, "F")
    assert (first.start, first.end) == (0.0, 0.5)
    assert (frame["backward_microbatch"] == -1).all()


def test_a_pair_is_one_row_with_both_micro_batches():
    frame = pipeline("dualpipe", stages=4, microbatches=8).timeline
    pairs = frame[frame["kind"] == "F&B"]
    assert (pairs["chunk"] != pairs["backward_chunk"]).all()
    assert (pairs["microbatch"] != pairs["backward_microbatch"]).all()


def test_json_holds_everything():
    result = pipeline("zb-h1", stages=2, microbatches=2, transfer=0.5)
    values = json.loads(result.to_json())
    assert values["schedule"] == "zb-h1"
    assert values["makespan"] == result.makespan
    assert values["peak_in_flight"] == [2, 2]
    assert values["transfer"] == [0.5, 0.5]
    assert len(values["timeline"]) == 2 * 2 * 3
    assert values["timeline"][0] == {
        "stage": 0, "chunk": 0, "microbatch": 0, "kind": "F", "start": 0.0, "end": 1.0,
        "backward_chunk": -1, "backward_microbatch": -1,
    }  # fmt: skip


def test_idle_and_bubble_of_uneven_stages():
    result = pipeline("gpipe", stages=2, microbatches=1, forward=[1, 3], backward=[0, 0])
    assert result.makespan == 4
    assert result.idle == (0.75, 0.25)
    assert result.ideal == 3


def test_command_prints_the_golden_totals(capsys):
    run(["--schedule", "zb-h2", "--stages", "4", "--microbatches", "8"])
    text = capsys.readouterr().out
    lines = {line.split()[0]: line.split()[1] for line in text.splitlines() if line.split()}
    assert lines["makespan"] == "27"
    assert lines["period"] == "24"
    assert lines["bubble"] == "0.00%"
    run(["--schedule", "dualpipe"])
    assert "held 2 times" in capsys.readouterr().out


def test_command_writes_json(capsys, tmp_path):
    run(["--forward", "1,1,1,2", "--transfer", "0.25", "--json", "-"])
    values = json.loads(capsys.readouterr().out)
    assert values["forward"] == [1, 1, 1, 2]
    assert values["makespan"] == pipeline(forward=[1, 1, 1, 2], transfer=0.25).makespan
    run(["--json", str(tmp_path / "result.json")])
    assert json.loads((tmp_path / "result.json").read_text())["makespan"] == 33
    assert "makespan" in capsys.readouterr().out


def test_command_reads_a_grid(capsys, tmp_path):
    file = tmp_path / "grid.txt"
    file.write_text("F0 B0\nF0 B0\n", encoding="utf-8")
    run(["--grid", str(file), "--json", "-"])
    assert json.loads(capsys.readouterr().out)["makespan"] == 6
    file.write_bytes(b"\xff\xfe F0")
    with pytest.raises(ConfigError, match=r"grid\.txt: must be a readable text file"):
        run(["--grid", str(file)])
    file.write_text("F0 X0\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="cell 2 of stage 0"):
        run(["--grid", str(file)])


def test_what_a_grid_says_itself_is_warned_of(capsys, tmp_path):
    file = tmp_path / "grid.txt"
    file.write_text("F0 B0\nF0 B0\n", encoding="utf-8")
    run(["--grid", str(file), "--stages", "8", "--schedule", "gpipe", "--json", "-"])
    out, err = capsys.readouterr()
    assert json.loads(out)["stages"] == 2
    assert err.splitlines() == [
        "triosim: warning: --schedule gpipe is unused: the grid says the schedule itself.",
        "triosim: warning: --stages 8 is unused: the grid says the stages itself.",
    ]
    run(["--grid", str(file)])
    assert capsys.readouterr().err == ""


def test_interleaved_with_one_chunk_says_what_it_holds(capsys):
    result = pipeline("interleaved", stages=4, microbatches=8)
    assert result.peak_in_flight == (7, 5, 3, 1)  # min(m, p(1 + (p - 1)/(pv))) on stage 0
    (note,) = result.notes
    assert "stage 0 holds 7 micro-batches, where 1f1b holds 4" in note
    assert result.makespan == pipeline("1f1b", stages=4, microbatches=8).makespan
    run(["--schedule", "interleaved"])
    assert note in capsys.readouterr().out
    for other in ({"chunks": 2}, {"microbatches": 4}, {"stages": 1}):
        assert pipeline("interleaved", **({"stages": 4, "microbatches": 8} | other)).notes == ()


@pytest.mark.parametrize("schedule", ["interleaved", "looped-bfs"])
def test_between_two_stages_a_loop_has_a_hop_of_its_own(schedule):
    """Stage 0, 1, 0, 1 and back: four hops between 0 and 1, two from the last to the first."""
    shape = {"stages": 2, "microbatches": 1, "chunks": 2, "forward": 1, "backward": 2}
    assert pipeline(schedule, **shape, transfer=[10, 0]).makespan == 6 + 4 * 10
    assert pipeline(schedule, **shape, transfer=[0, 10]).makespan == 6 + 2 * 10


def test_between_two_stages_a_v_goes_back_the_way_it_came():
    result = pipeline("zb-v", stages=2, microbatches=4, transfer=[0, 10])
    assert result.makespan == pipeline("zb-v", stages=2, microbatches=4).makespan


def test_values_for_another_number_of_stages_are_echoed_as_typed():
    with pytest.raises(ConfigError, match="forward 1,2: must be one number or one for each of 4"):
        run(["--forward", "1,2"])


def test_command_refuses_values_that_are_no_numbers():
    with pytest.raises(ConfigError, match="forward much: must be a number"):
        run(["--forward", "1,1,1,much"])

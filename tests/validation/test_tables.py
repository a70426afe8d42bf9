"""The shipped tables against the collection that they were typed from, and what is left out."""

import csv
import math
import re

import pytest

from triosim.errors import ConfigError
from triosim.validation import load_source, rows_of, source_names
from triosim.validation.folder import VARIABLE
from triosim.validation.tables import STEP, read_table

SHIPPED = {
    "torchtitan": "torchtitan.csv",
    "selective-recompute": "selective_recompute_2205_05198.csv",
    "zero-bubble": "zero_bubble.csv",
}
PLAIN = {"torchgpipe": "torchgpipe.csv", "triosim-fig12": "triosim_fig12_hardware.csv"}


def published(shared, name):
    with (shared / "published" / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def numbers(text):
    """The row numbers of a list such as "0-3, 7"."""
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        yield from range(int(first), int(last or first) + 1)


@pytest.mark.parametrize("name", source_names())
def test_every_source_says_where_it_is_from(name):
    source = load_source(name)
    assert re.search(r"arXiv|/.+ at [0-9a-f]{7}|10\.\d{4}/", source.citation)
    assert (source.table is None) != (source.folder is None)


@pytest.mark.parametrize("name", SHIPPED)
def test_rows_say_what_was_published(shared, name):
    lines = published(shared, SHIPPED[name])
    for row in rows_of(load_source(name)):
        line, scenario = lines[row.number], row.scenario
        for field, column in (
            ("gpus", "gpus"), ("tp", "tp"), ("pp", "pp"), ("cp", "cp"), ("sequence", "seq_len"),
            ("global_batch", "global_batch"),
        ):  # fmt: skip
            assert getattr(scenario, field) == int(line[column] or 1), (row.number, column)
        if line["micro_batch"]:
            assert scenario.micro_batch_size == int(line["micro_batch"])
        ranks = scenario.dp_replicate * scenario.dp_shard
        assert ranks == int(line["dp"]), row.number
        model = scenario.transformer()
        for field in ("layers", "hidden", "heads"):
            assert getattr(model, field) == int(line[field]), (row.number, field)
        assert model.ffn == int(line["ffn_hidden"])
        if line["iteration_time_s"]:
            assert row.published_s == float(line["iteration_time_s"])
        else:
            rate = scenario.global_batch * scenario.sequence / row.published_s / scenario.gpus
            assert rate == pytest.approx(float(line["tokens_per_s_per_gpu"]))
        given = line["memory_gib"]
        assert (row.published_gib is None) if not given else row.published_gib == float(given)


@pytest.mark.parametrize("name", [*SHIPPED, *PLAIN])
def test_no_row_vanishes(shared, name):
    source = load_source(name)
    lines = published(shared, {**SHIPPED, **PLAIN}[name])
    kept = [line["row"] for line in read_table(source.table)]
    out = [number for item in source.left_out for number in numbers(item.rows)]
    assert sorted(kept + out) == list(range(len(lines)))
    assert all(item.why for item in source.left_out)


def test_repeats_are_counted_once(shared):
    lines = published(shared, SHIPPED["zero-bubble"])
    source = load_source("zero-bubble")
    searched, repeats = ([*numbers(item.rows)] for item in source.left_out)

    def key(number):
        columns = ("model", "pp", "micro_batch", "global_batch", "schedule")
        return tuple(lines[number][column] for column in columns)

    kept = [row.number for row in rows_of(source)]
    assert len({key(n) for n in kept}) == len(kept)
    assert {key(n) for n in repeats} <= {key(n) for n in kept}
    assert all(lines[n]["schedule"].startswith(("ZB-1p", "ZB-2p")) for n in searched)


def test_second_hand_rows_are_shown_and_not_counted():
    rows = rows_of(load_source("torchtitan"))
    assert [row.number for row in rows if not row.counted] == list(range(43, 53))
    assert all("second-hand" in row.note for row in rows if not row.counted)


def test_rows_whose_micro_batches_are_unknown_are_marked():
    rows = {row.number: row for row in rows_of(load_source("torchtitan"))}
    for number in range(12, 18):
        assert rows[number].status == "marked"
        assert "micro-batches not stated" in rows[number].note


@pytest.mark.parametrize("name", PLAIN)
def test_other_figures_are_as_published(shared, name):
    lines = published(shared, PLAIN[name])
    for row in read_table(load_source(name).table):
        line = lines[row["row"]]
        if "samples_per_s" in row:
            assert f"{row['samples_per_s']} samples/s" in line["note"]
            assert row["global_batch"] == int(line["global_batch"])
            assert f"{row['microbatches']} chunks" in line["note"]
            seconds = row["global_batch"] / row["samples_per_s"]
        else:
            assert row["model"] == line["model"]
            assert f"{row['triosim_s'] * 1e3:g}" in line["note"].replace(".0 ms", " ms")
            seconds = row["iteration_time_s"]
        assert seconds == pytest.approx(float(line["iteration_time_s"]), rel=1e-3)


def test_vtrain_is_read_where_it_lies(shared):
    folder = shared / "published"
    single = rows_of(load_source("vtrain-one-node"), folder)
    many = rows_of(load_source("vtrain-many-nodes"), folder)
    assert (len(single), len(many)) == (1440, 109)
    assert all(row.scenario.gpus <= 8 for row in single)
    assert [row.number for row in many if row.status == "marked"] == [15, 41, 43, 47, 50, 75, 80]
    row = many[0]
    model = row.scenario.transformer()
    assert (model.layers, model.hidden, model.ffn, model.vocab) == (30, 3072, 12_288, 50_257)
    assert row.measured == STEP
    assert math.isclose(row.published_s, 3.5665)


def test_simumax_has_its_cut_models(shared):
    rows = rows_of(load_source("simumax-b200"), shared / "published")
    assert len(rows) == 43
    models = {row.size: row.scenario.transformer() for row in rows}
    assert {name: model.layers for name, model in models.items()} == {
        "llama3_70b": 12, "deepseekv2": 4, "deepseekv3": 4, "llama3_405b": 4,
    }  # fmt: skip
    assert models["deepseekv3"].dense_layers == 1


def test_an_absent_data_set_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(ConfigError, match=r"vtrain_ground_truth.csv is not there"):
        rows_of(load_source("vtrain-one-node"))


def test_a_damaged_data_set_is_one_sentence(tmp_path):
    (tmp_path / "simumax_b200.csv").write_text("table,model\nx,llama3_70b\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="lacks or misprints a column"):
        rows_of(load_source("simumax-b200"), tmp_path)


def test_an_unknown_source_names_the_known_ones():
    with pytest.raises(ConfigError, match="known are torchtitan"):
        load_source("nobody")

"""Damaged recordings: one sentence with file and position, or a repair that is counted."""

import gzip
import json

import pytest

from tracer.convert import convert, read_file
from tracer.convert.jsonstream import MAX_VALUE_CHARACTERS
from triosim.errors import TraceFormatError


def names(trace):
    return [op.name.rsplit(" ", 1)[-1] for op in trace.operators]


ALL = ["aten::linear", "MmBackward0", "aten::_foreach_add_"]


@pytest.fixture
def good(linear_step):
    return convert(*linear_step)


def test_the_undamaged_step(good):
    trace, report = good
    assert names(trace) == ALL
    assert [op.time_s * 1e6 for op in trace.operators] == pytest.approx([10, 20, 5])
    assert [op.tensor_parallel for op in trace.operators] == [True, True, False]
    assert trace.batch_size == 4
    assert report.repairs == {}
    assert report.warnings == ()


def failure(*files, **settings):
    with pytest.raises(TraceFormatError) as caught:
        convert(*files, **settings)
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    return text


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_truncated_json(linear_step, share):
    for i in (0, 1):
        files = list(linear_step)
        files[i] = files[i][: int(len(files[i]) * share)]
        text = failure(*files)
        assert text.startswith(("profiler file, line ", "execution trace, line ")[i])
        assert "cut off here" in text or "is not JSON" in text


def test_truncated_gzip(linear_step):
    packed = gzip.compress(linear_step[0])
    assert "the gzip data is cut off after" in failure(packed[:-20])
    assert "damaged gzip data after" in failure(packed[:40] + b"\xff" * 40 + packed[80:])


def test_gzip_in_several_members_and_with_padding(linear_step, good):
    half = len(linear_step[0]) // 2
    packed = gzip.compress(linear_step[0][:half]) + gzip.compress(linear_step[0][half:]) + b"\0" * 9
    assert convert(packed, linear_step[1])[0].operators == good[0].operators


def test_a_gzip_bomb_is_bounded(linear_step):
    bomb = gzip.compress(b'{"traceEvents": [' + b" " * 20_000_000)
    assert "more than 1000000 bytes when unpacked" in failure(bomb, max_bytes=1_000_000)


def test_one_endless_value_is_bounded():
    bomb = gzip.compress(b'{"traceEvents": [{"name": "' + b"x" * (MAX_VALUE_CHARACTERS + 2**21))
    assert "one value has more than" in failure(bomb)


def test_deep_nesting_is_bounded():
    depth = 200_000
    for data in (b"[" * depth, b'{"traceEvents": [' + b'{"args":' * depth):
        assert "nested too deeply" in failure(data)


def test_a_bad_escape(linear_step, good):
    data = linear_step[0].replace(b'"SGD.step"', b"").replace(b"#SGD.step", rb"#C:\dir\step")
    trace, report = convert(data, linear_step[1])
    assert names(trace) == ALL
    assert report.repairs == {"wrong escapes in text were repaired": 2}


def test_a_raw_control_character(linear_step):
    data = linear_step[0].replace(b"aten::linear", b"aten::li\x01near\ttwo\n")
    trace, report = convert(data, linear_step[1])
    assert report.repairs == {"control characters in text were accepted": 1}
    assert len(trace.operators) == 3


def test_a_quote_in_a_name(linear_step):
    for name in (b'load "train.csv"', b'"', b'a "b" \\c\n"d"'):
        data = linear_step[0].replace(b"Optimizer.step#SGD.step", b"Optimizer.step#" + name)
        trace, report = convert(data)
        assert names(trace) == ALL
        assert report.repairs["names with unescaped quotes were repaired"] == 1


def test_bytes_of_another_encoding(linear_step):
    data = linear_step[0].replace(b"#SGD", b"#S\xe9D")
    _, report = convert(data, linear_step[1])
    assert report.repairs["characters that are not in the file's encoding were replaced"] == 1


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_byte_order_marks(linear_step, good, encoding):
    recoded = [file.decode().encode(encoding) for file in linear_step]
    assert convert(*recoded)[0].operators == good[0].operators


def test_a_trailing_comma(linear_step):
    data = linear_step[0].rstrip()[:-1].rstrip()[:-1] + b",]}"
    _, report = convert(data, linear_step[1])
    assert report.repairs == {"commas after the last item were ignored": 1}


def kernels(events):
    return [event for event in events if event["cat"] == "kernel"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -5, None, "soon", True, 1e300])
def test_a_kernel_without_a_usable_duration(changed, linear_step, value):
    def spoil(events):
        kernels(events)[0]["dur"] = value

    trace, report = convert(changed(spoil), linear_step[1])
    assert names(trace) == ALL[1:]
    assert report.unmatched["kernels without a usable time"] == 1
    assert report.repairs["rows without a usable time were left out"] == 1


def test_a_missing_duration(changed, linear_step):
    def spoil(events):
        del kernels(events)[1]["dur"]

    _, report = convert(changed(spoil), linear_step[1])
    assert report.unmatched["kernels without a usable time"] == 1


def test_times_written_as_text(changed, linear_step, good):
    def spoil(events):
        for event in events:
            event["ts"] = str(event["ts"])

    trace, report = convert(changed(spoil), linear_step[1])
    assert trace.operators == good[0].operators
    assert report.repairs["times written as text were read as numbers"] == 13


def test_reversed_order(changed, linear_step, good):
    trace, report = convert(changed(lambda events: events[::-1]), linear_step[1])
    assert trace.operators == good[0].operators
    assert report.repairs == {}


def test_duplicated_events(changed, linear_step, good):
    def give_ids(events):
        for number, event in enumerate(events):
            event["args"].setdefault("External id", number + 100)
        return [event for event in events for _ in range(2)]

    trace, report = convert(changed(give_ids), linear_step[1])
    assert trace.operators == good[0].operators
    assert report.repairs["events that stand twice were taken once"] == 10
    assert report.kernels == 3


def test_a_bare_list_of_events(linear_step, good):
    events = json.loads(linear_step[0])["traceEvents"]
    trace, _ = convert(json.dumps(events).encode(), linear_step[1])
    assert trace.operators == good[0].operators


def test_events_that_are_no_objects(changed, linear_step):
    _, report = convert(changed(lambda events: [1, "x", None, *events]), linear_step[1])
    assert report.repairs == {"events that are no objects were left out": 3}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "profiler file: the file is empty"),
        (b"   ", "not a JSON object or list"),
        (b"{}", "neither a profiler file .* nor an execution trace .*it has nothing"),
        (b'{"schemaVersion": 1, "deviceProperties": []}', "neither a profiler file"),
        (b'{"schema": "1.1.1", "pid": 3}', "an execution trace without nodes"),
        (b'{"traceEvents": {}}', "traceEvents is dict; it should be a list"),
        (b'{"traceEvents": []}', "none of its 0 events is an operator"),
        (b'{"nodes": []}', "an execution trace .* has no times"),
        (b"PK\x03\x04....", "a zip archive"),
        (b"hello", "not a JSON object or list"),
        (b'{"traceEvents": []} x', "more text follows"),
        (b"\x89PNG\r\n\x1a\n", "not a JSON object or list"),
    ],
)
def test_files_of_another_kind(data, message):
    with pytest.raises(TraceFormatError, match=message):
        convert(data)


def test_missing_files(tmp_path):
    assert "No such file" in failure(tmp_path / "profiler_x.json")
    assert "Is a directory" in failure(tmp_path)


def test_the_two_files_swapped(linear_step, good):
    trace, report = convert(*reversed(linear_step))
    assert trace.operators == good[0].operators
    assert report.repairs == {"the two files were given in the other order": 1}


def test_twice_the_same_kind(linear_step):
    assert "both are profiler files" in failure(linear_step[0], linear_step[0])
    assert "both are execution traces" in failure(linear_step[1], linear_step[1])


def test_an_execution_trace_of_another_run(linear_step, make):
    other = make.graph(make.node(3, "aten::add", 2), make.node(4, "aten::mul", 2))
    assert "only 0 of 7 rows of step 0" in failure(linear_step[0], other)


def edited(graph, edit):
    content = json.loads(graph)
    edit(content["nodes"])
    return json.dumps(content).encode()


def test_parents_in_a_circle_and_parents_that_do_not_exist(linear_step, good):
    def spoil(nodes):
        by_id = {node["id"]: node for node in nodes}
        by_id[6]["ctrl_deps"], by_id[7]["ctrl_deps"] = 7, 6
        by_id[9]["ctrl_deps"] = 777

    trace, report = convert(linear_step[0], edited(linear_step[1], spoil))
    assert trace.operators == good[0].operators
    assert report.repairs == {
        "parents of nodes that lead in a circle were replaced by the process": 1,
        "parents of nodes that do not exist were replaced by the process": 1,
    }


def test_ids_that_do_not_start_at_one(linear_step, good):
    def shift(nodes):
        for node in nodes:
            node["id"] += 5000
            node["ctrl_deps"] += 5000

    trace, report = convert(linear_step[0], edited(linear_step[1], shift))
    assert trace.operators == good[0].operators
    assert report.repairs == {}


def test_nodes_twice_and_without_id(linear_step, good):
    def spoil(nodes):
        nodes.append(dict(nodes[3]))
        nodes.append({"name": "aten::x"})

    trace, report = convert(linear_step[0], edited(linear_step[1], spoil))
    assert trace.operators == good[0].operators
    assert report.repairs == {
        "nodes that stand twice were taken once": 1,
        "nodes without an id were left out": 1,
    }


def test_tensors_of_five_elements(linear_step, good):
    """Schema 1.0.0 has no device."""

    def cut(nodes):
        for node in nodes:
            for side in ("inputs", "outputs"):
                node[side]["values"] = [value[:5] for value in node[side]["values"]]

    trace, report = convert(linear_step[0], edited(linear_step[1], cut))
    assert trace.operators == good[0].operators
    assert report.repairs == {}


def test_the_flat_layout(linear_step, good):
    content = json.loads(linear_step[1])
    nodes = []
    for node in content["nodes"]:
        attributes = {entry["name"]: entry["value"] for entry in node.pop("attrs")}
        flat = {"id": node["id"], "name": node["name"], "parent": node["ctrl_deps"]} | attributes
        for side in ("input", "output"):
            flat[f"{side}s"] = node[f"{side}s"]["values"]
            flat[f"{side}_shapes"] = node[f"{side}s"]["shapes"]
            flat[f"{side}_types"] = node[f"{side}s"]["types"]
        nodes.append(flat)
    data = json.dumps({"schema": "1.0.1", "nodes": nodes}).encode()
    assert read_file(data).layout == "flat"
    assert convert(linear_step[0], data)[0].operators == good[0].operators


def test_values_shorter_than_types(linear_step):
    def spoil(nodes):
        node = next(n for n in nodes if n["name"] == "aten::linear")
        node["inputs"]["values"].pop()
        node["inputs"]["types"].append("Bool")

    trace, report = convert(linear_step[0], edited(linear_step[1], spoil))
    assert [t.id for t in trace.operators[0].inputs] == [10]
    assert report.repairs == {"argument lists of unequal lengths were read up to the shortest": 1}


@pytest.mark.parametrize("numel", [2**63, 2**70, -1])
def test_an_impossible_number_of_elements(linear_step, numel, tmp_path):
    def spoil(nodes):
        node = next(n for n in nodes if n["name"] == "aten::linear")
        node["inputs"]["values"][0][3] = numel

    trace, report = convert(linear_step[0], edited(linear_step[1], spoil))
    assert [t.id for t in trace.operators[0].inputs] == [12]
    assert report.repairs == {"tensors with an impossible number of elements were ignored": 1}


def test_an_unknown_schema_is_read_by_its_keys(linear_step, good):
    data = linear_step[1].replace(b"1.1.1-chakra.0.0.4", b"9.9.9")
    trace, report = convert(linear_step[0], data)
    assert trace.operators == good[0].operators
    assert any("schema 9.9.9 is not known" in text for text in report.warnings)


def test_little_attributed_time_is_a_warning_and_less_than_half_an_error(make, linear_step):
    content = json.loads(linear_step[0])["traceEvents"]

    def stray(length):
        return make.kernel(9, 400, 500, length)

    step = make.row("ProfilerStep#4", 0, 450, cat="user_annotation")
    _, report = convert(make.profile(step, content, stray(1)))
    assert report.attributed == pytest.approx(35 / 36)
    assert any("only 97.2% of the kernel time" in text for text in report.warnings)
    assert report.unmatched["kernels launched outside any operator"] == 1
    text = failure(make.profile(step, content, stray(36)))
    assert "only 49.3% of the kernel time of step 4 belongs to an operator" in text


def test_a_step_that_is_not_there(linear_step):
    assert "there is no step 7; it has 0" in failure(*linear_step, step=7)


def test_a_nested_header_and_a_number_of_many_digits(linear_step, good):
    deep = b"[" * 900 + b"]" * 900
    data = b'{"x": ' + deep + b"," + linear_step[0].lstrip()[1:]
    assert convert(data, linear_step[1])[0].operators == good[0].operators
    text = failure(b'{"traceEvents": [{"ts": ' + b"9" * 5000 + b"}]}")
    assert "traceEvents[0] cannot be read" in text


def test_values_across_the_borders_of_chunks(linear_step, good, monkeypatch):
    monkeypatch.setattr("tracer.convert.source.CHUNK_BYTES", 7)
    for files in (linear_step, [gzip.compress(file) for file in linear_step]):
        assert convert(*files)[0].operators == good[0].operators

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import traces_read
from dashboard.traces_links import NAMES, TABS, default_trace, read_view
from dashboard.traces_side import SNIPPET
from dashboard.traces_store import Store, digest_of, name_of
from tests.dashboard.reading import open_page
from triosim import load_trace
from triosim.figures.text import time_text
from triosim.scenario import SAMPLE_TRACES

ROOT = Path(__file__).parents[2]
Open = Callable[..., AppTest]
Files = list[tuple[str, bytes]]


@pytest.fixture
def traces_page() -> Open:
    """Opens the page Traces at some address."""
    return partial(open_page, "pages/traces.py")


@pytest.fixture(scope="session")
def recording(shared: Path) -> Files:
    """A profiler file and its execution trace, recorded on a CPU."""
    folder = shared / "traces" / "torch_2_13"
    names = ("profiler_cnn_arg.json.gz", "graph_cnn_arg.json.gz")
    return [(name, (folder / name).read_bytes()) for name in names]


@pytest.fixture
def tables() -> Files:
    """A converted trace, its files called by anything."""
    folder = SAMPLE_TRACES / "mlp"
    return [
        ("mine.csv", (folder / "trace.csv").read_bytes()),
        ("other.csv", (folder / "tensor.csv").read_bytes()),
    ]


def upload(at: AppTest, files: Files) -> AppTest:
    at.file_uploader(key="trace_files").set_value([(n, d, "application/json") for n, d in files])
    return at.run()


def step_time(at: AppTest) -> str:
    return str(at.metric[0].value)


def captions(at: AppTest) -> str:
    return "\n".join(caption.value for caption in at.caption)


def test_a_shipped_trace_is_there_at_once(traces_page: Open) -> None:
    at = traces_page()
    trace = load_trace(SAMPLE_TRACES / default_trace())
    assert not at.exception
    assert [m.label for m in at.metric] == ["Step time", "Operators", "Parameters", "GPU"]
    assert step_time(at) == time_text(trace.total_s * 1e3)
    assert len(at.dataframe[0].value) == len(trace.operators)


@pytest.mark.parametrize("view", TABS)
@pytest.mark.parametrize("trace", ["mlp", "gpt2"])
def test_every_tab_opens(traces_page: Open, view: str, trace: str) -> None:
    at = traces_page(inspect=trace, view=view)
    assert not at.exception
    assert not at.error
    drawn = {"Where time goes", "Roofline", "Memory"}
    assert len(at.get("plotly_chart")) == (view in drawn)


def test_filters_leave_what_they_say(traces_page: Open) -> None:
    at = traces_page(inspect="gpt2", phase=["backward"], kind=["gemm"], find="C_ATTN")
    table = at.dataframe[0].value
    assert set(table["phase"]) == {"backward"}
    assert set(table["kind"]) == {"gemm"}
    assert all("c_attn" in module for module in table["module"])
    at.text_input(key="find").set_value("(").run()
    assert not at.exception
    assert len(at.dataframe[0].value) == 0


def test_a_trace_without_modules_is_grouped_by_name(traces_page: Open) -> None:
    at = traces_page(inspect="mlp", view="Where time goes", by="module")
    assert "does not say which module" in captions(at)
    figure = json.loads(at.get("plotly_chart")[0].proto.spec)
    assert "aten::linear" in figure["data"][0]["labels"]


def test_a_bad_address_gets_sentences(traces_page: Open) -> None:
    at = traces_page(inspect="../x", view="Money", colour="red", kind=["gemm", "magic"])
    assert not at.exception
    (warning,) = at.warning
    for sentence in (
        "inspect ../x: must be",
        "view Money: must be",
        "colour red: this page has no",
    ):
        assert sentence in warning.value
    assert step_time(at) == time_text(load_trace(SAMPLE_TRACES / default_trace()).total_s * 1e3)
    at.selectbox(key="inspect").set_value("mlp").run()
    assert not at.warning


def test_an_address_of_another_version_is_not_used() -> None:
    assert read_view({"v": ["2"], "view": ["Memory"]}, []).parameters == {"v": "1"}
    assert len(read_view({"find": ["x" * 101]}, []).rejected) == 1
    assert set(NAMES).isdisjoint({"trace", "tab", "gpu"})  # keys of the page Simulate


def test_a_recording_is_converted_and_reported(traces_page: Open, recording: Files) -> None:
    at = upload(traces_page(view="Where it is from"), recording)
    assert not at.exception
    assert not at.error
    assert step_time(at) == "48.6 ms"
    assert at.subheader[0].value == "cnn\\_arg: one step on one GPU"
    for sentence in (
        "a profiler file of PyTorch",
        "an execution trace of PyTorch",
        "54 of 54 operators written, 100 % of 48.6 ms of operator time",
    ):
        assert sentence in captions(at)
    report = at.code[-1].value
    assert "236 of 236 rows matched" in report
    assert any("No GPU kernels" in warning.value for warning in at.warning)


def test_a_profiler_file_alone_says_what_is_missing(traces_page: Open, recording: Files) -> None:
    at = upload(traces_page(), recording[:1])
    assert not at.error
    assert "sizes come from Input Dims" in captions(at)
    assert at.metric[1].value == "54"
    assert upload(at, recording).metric[2].value != "n/a"


def test_tables_are_found_by_what_they_hold(traces_page: Open, tables: Files) -> None:
    at = upload(traces_page(), tables[::-1])
    assert not at.error
    assert step_time(at) == time_text(load_trace(SAMPLE_TRACES / "mlp").total_s * 1e3)
    packed = [(name, gzip.compress(data)) for name, data in tables]
    assert step_time(upload(traces_page(), packed)) == step_time(at)


def test_a_recording_of_several_steps_gives_a_choice(traces_page: Open, shared: Path) -> None:
    folder = shared / "traces" / "kineto"
    name = "r03_hta_a100_resnet_ddp2_nccl_meta.json.gz"
    at = upload(traces_page(view="Where it is from"), [(name, (folder / name).read_bytes())])
    last = step_time(at)
    assert list(at.selectbox(key="trace_step").options) == ["4", "5", "6"]
    assert len(at.dataframe[0].value) == 7  # communications
    first = at.selectbox(key="inspect").value
    at.selectbox(key="trace_step").set_value(4).run()
    assert not at.exception
    assert at.selectbox(key="inspect").value != first
    assert step_time(at) != last


BAD: list[tuple[Files, str]] = [
    ([("a.json", b"{}")], "neither a profiler file"),
    ([("a.json", b"")], "the file is empty"),
    ([("a.json", b'{"traceEvents": [{"ph": "X"')], "cut off"),
    ([("a.gz", b"\x1f\x8b\x08broken")], "gzip"),
    ([("a.json", b"PK\x03\x04rest")], "a zip archive"),
    ([("a.json", b"\x80\x04\x95pickle")], "neither JSON of PyTorch"),
    ([("a.csv", b"x,y\n1,2\n")], "its first line is 'x,y'"),
    ([("t.csv", b"OperatorID,OperatorName\n")], "tensor.csv, the tensors of a converted trace, is"),
    ([("m.json", b'{"batch_size": 4}')], "the recording or the trace is missing"),
    ([("g.json", b'{"schema": "1", "nodes": []}')], "the profiler file of the same recording"),
    ([("a.json", b'{"traceEvents": []}')] * 2, "give one of each kind"),
    (
        [("a.json", b'{"traceEvents": []}'), ("t.csv", b"TensorID,x\n")],
        "give either a converted trace or a recording",
    ),
    ([("a.json", b"{}")] * 7, "7 files"),
    ([("a.json", b'{"batch_size": ' + b"[" * 5000)], "nested too deeply"),
]


@pytest.mark.parametrize(("files", "sentence"), BAD, ids=[sentence for _, sentence in BAD])
def test_what_is_no_trace_gets_one_sentence(traces_page: Open, files: Files, sentence: str) -> None:
    at = upload(traces_page(), files)
    assert not at.exception
    (error,) = at.error
    assert sentence in error.value
    assert "\n" not in error.value
    assert at.metric  # the trace from before is still there


def test_a_bomb_is_not_unpacked(
    traces_page: Open, monkeypatch: pytest.MonkeyPatch, recording: Files
) -> None:
    monkeypatch.setattr(traces_read, "MAX_UNPACKED", 100_000)
    bomb = gzip.compress(b'{"a": "' + b"x" * 3_000_000 + b'", "traceEvents": []}')
    assert len(bomb) < 10_000
    assert "more than 100000 bytes" in upload(traces_page(), [("a.gz", bomb)]).error[0].value
    table = gzip.compress(b"OperatorID,OperatorName\n" + b"1,x\n" * 100_000)
    files = [("a.csv", table), ("b.csv", b"TensorID\n")]
    assert "more than 100000 bytes" in upload(traces_page(), files).error[0].value
    profiler = upload(traces_page(), recording).error[0].value
    assert "more than 100000 bytes" in profiler


EVIL = "<img src=x onerror=alert(1)> ![i](http://example.org/i) **bold** :red[x] $x$"


def test_markup_from_files_is_shown_as_it_is(traces_page: Open, tables: Files) -> None:
    text = tables[0][1].decode().replace("aten::linear", EVIL)
    meta = json.dumps({"batch_size": 2, "gpu": EVIL, "name": EVIL}).encode()
    files = [("a.csv", text.encode()), tables[1], (f"{EVIL}.json", meta)]
    at = upload(traces_page(), files)
    assert not at.exception
    assert not at.error
    assert EVIL in set(at.dataframe[0].value["name"])
    texts = [*(c.value for c in at.caption), at.subheader[0].value, *(w.value for w in at.warning)]
    for part in ("![", "**bold", ":red[", "$x$"):
        assert not any(part in value for value in texts)
    assert all(value.count("<img") == value.count("\\<img") for value in texts)
    at = upload(traces_page(view="Where time goes"), files)
    figure = json.loads(at.get("plotly_chart")[0].proto.spec)
    assert not any("<img" in label for label in figure["data"][0]["labels"])


def test_an_upload_is_carried_to_the_simulation(traces_page: Open, tables: Files) -> None:
    at = upload(traces_page(), tables)
    name = name_of(digest_of(tables, None))
    assert at.selectbox(key="inspect").value == name
    (link,) = at.get("page_link")
    assert link.proto.page == "simulate"
    assert f"trace={name}" in link.proto.query_string
    at.query_params.clear()
    at.query_params["trace"] = name
    at.switch_page("pages/simulate.py").run()
    assert not at.exception
    assert not at.warning
    assert at.selectbox(key="trace").value == name
    assert "-trace-dir uploaded-trace " in at.code[0].value
    assert at.subheader[0].value.startswith("uploaded trace, ")


def test_an_upload_is_only_its_sessions(traces_page: Open, tables: Files) -> None:
    mine = upload(traces_page(), tables)
    name = name_of(digest_of(tables, None))
    other = traces_page(inspect=name)
    assert name in mine.selectbox(key="inspect").options
    assert name not in other.selectbox(key="inspect").options
    digest = name.removeprefix("upload-")
    assert f"upload the file with the digest {digest}" in other.warning[0].value


def test_a_link_without_its_upload_asks_for_the_file(tables: Files) -> None:
    name = name_of(digest_of(tables, None))
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=30)
    at.query_params.update({"trace": name, "gpus": "4"})
    at.switch_page("pages/simulate.py").run()
    assert not at.exception
    assert "upload the file with the digest" in at.warning[0].value
    assert at.subheader[0].value == "transformer, distributed data parallel, 4 GPUs"
    at.query_params.clear()
    at.switch_page("pages/traces.py").run()
    link = upload(at, tables).get("page_link")[0].proto.query_string
    assert f"trace={name}" in link
    assert "gpus=4" in link


def test_digests_are_of_contents_and_steps(tables: Files) -> None:
    renamed = [(f"x{name}", data) for name, data in tables[::-1]]
    assert digest_of(renamed, None) == digest_of(tables, None)
    assert digest_of(tables, 3) != digest_of(tables, None)


def test_few_folders_are_kept_and_none_has_a_users_name(
    monkeypatch: pytest.MonkeyPatch, tables: Files
) -> None:
    monkeypatch.setattr("dashboard.traces_store.MAX_FOLDERS", 2)
    store = Store()
    digests = [digest_of(tables, step) for step in range(4)]
    folders = [store.folder(d, name_of(d), {"trace.csv": b"x"}) for d in digests]
    assert [folder.exists() for folder in folders] == [False, False, True, True]
    assert folders[-1].parts[-2:] == (digests[-1], name_of(digests[-1]))
    assert folders[-1].parents[1] == store.root
    assert store.root.stat().st_mode & 0o077 == 0
    again = store.folder(digests[0], name_of(digests[0]), {"trace.csv": b"x"})
    assert (again / "trace.csv").read_bytes() == b"x"


def test_the_snippet_records_what_the_page_reads(tmp_path: Path, traces_page: Open) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("tqdm")
    code = SNIPPET.replace('output="data"', f"output={str(tmp_path)!r}, progress=False")
    assert len(SNIPPET.splitlines()) <= 15
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    names = ("profiler_mine-iter43.json", "graph_mine-iter43.json", "meta.json")
    at = upload(traces_page(), [(name, (tmp_path / name).read_bytes()) for name in names])
    assert not at.exception
    assert not at.error
    assert at.subheader[0].value == "mine-iter43: one step on one GPU"
    assert "32 samples" in captions(at)


def test_neither_torch_nor_streamlit_where_they_do_not_belong() -> None:
    for code in (
        "import sys, dashboard.traces_tabs, dashboard.traces_side, dashboard.traces_view; "
        "sys.exit('torch' in sys.modules)",
        "import sys, dashboard.traces_read; sys.exit('streamlit' in sys.modules)",
    ):
        done: Any = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()


def test_what_a_link_said_wrongly_goes_with_its_cause(traces_page: Open) -> None:
    at = traces_page(view=TABS[1], by="colour")
    assert "by colour: must be" in at.warning[0].value
    at.query_params["by"] = "name"  # as a browser has it when a person chooses it
    at.run()
    assert not at.warning

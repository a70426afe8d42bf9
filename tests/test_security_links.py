"""No path from a user: what links, saved files, uploads and presets may name."""

from __future__ import annotations

import json

import pytest

from benchmarks.fuzz_inputs import pack as pack_anything
from dashboard.links import read_link, scenario_of, shipped_traces
from dashboard.packed import pack, scenario_from_file, unpack
from dashboard.saved_file import place_of
from dashboard.seminar.presets import name_of_file, read_preset
from dashboard.topologies import read_name
from dashboard.traces_links import read_view
from dashboard.traces_read import read_upload
from dashboard.traces_store import Store, folder_of
from dashboard.train_configs import path_of
from dashboard.train_links import read_train
from triosim import Scenario, TrainScenario
from triosim.errors import ConfigError, TraceFormatError
from triosim.scenario import SAMPLE_TRACES
from triosim.validation.tables import DATA

pytestmark = pytest.mark.usefixtures("quiet_streamlit")
PATHS = (
    "", ".", "..", "../gpt2", "gpt2/..", "gpt2/../../etc", "./gpt2", "gpt2/", "/etc", "/etc/passwd",
    str(SAMPLE_TRACES / "gpt2"), "~", "~root", "C:", "C:\\Windows", "C:gpt2", "\\\\host\\share",
    "..\\gpt2", "file:///etc", "gpt2\0", "\0", "linked", "upload-000000000000",
    "upload-../../../x", "published:../../x.toml", "published:/etc/passwd",
)  # fmt: skip


def packed(**item):
    """A link with this inside, as if the page had written it."""
    return pack_anything(json.dumps([item]).encode()).decode()


@pytest.mark.parametrize("path", PATHS)
def test_a_trace_is_one_of_a_list(path):
    with pytest.raises(ConfigError):
        folder_of(path)
    with pytest.raises(ConfigError):
        unpack(packed(kind="trace", trace_dir=path))
    raw = {"v": ["1"], "trace": [path]}
    link = read_link(raw, shipped_traces())
    assert scenario_of(link.values).trace_dir == Scenario().trace_dir
    assert len(link.rejected) == 1
    assert "inspect" not in read_view({"v": ["1"], "inspect": [path]}, shipped_traces()).parameters
    assert "recorded" not in read_train({"v": ["1"], "recorded": [path]}).values


@pytest.mark.parametrize("path", PATHS)
def test_a_model_description_is_one_that_this_session_has(path):
    with pytest.raises(ConfigError):
        path_of(path)
    with pytest.raises(ConfigError):
        unpack(packed(kind="train", config=path))
    assert "config" not in read_train({"v": ["1"], "config": [path]}).values


@pytest.mark.parametrize("name", ["x.toml", "/etc/x.toml", "../x.json", "C:\\x.TOML", "x.toml "])
def test_a_topology_of_a_link_is_no_file(name):
    for kind, field in (("trace", "topology"), ("train", "machine")):
        with pytest.raises(ConfigError, match=r"no file|must be one of"):
            unpack(packed(kind=kind, **{field: name}))
    with pytest.raises(ConfigError):
        read_name(name)


def test_files_of_published_runs_go_by_name():
    files = sorted(path.name for path in DATA.glob("*.json"))
    scenario = TrainScenario(config=str(DATA / files[0])) if files else TrainScenario()
    assert unpack(pack([scenario])) == [scenario]


def test_of_a_path_in_a_saved_file_only_the_name_counts():
    """It was written on another machine; the trace is the one of that name here."""
    given = {"case": 2, "trace_dir": "/home/somebody/sample_trace/gpt2"}
    assert scenario_from_file(given, "trace").trace_dir == str(SAMPLE_TRACES / "gpt2")
    for field, path in (("trace_dir", "/etc/passwd"), ("topology", "/etc/x.toml")):
        with pytest.raises(ConfigError):
            place_of(json.dumps({"case": 2, field: path}).encode())
    for field in ("config", "machine"):
        with pytest.raises(ConfigError):
            place_of(json.dumps({"tp": 2, field: f"/etc/{field}.json"}).encode())


def test_a_folder_that_is_linked_later_is_in_no_list(tmp_path, monkeypatch):
    monkeypatch.setattr("dashboard.traces_store.SAMPLE_TRACES", tmp_path)
    (tmp_path / "linked").symlink_to(SAMPLE_TRACES / "gpt2")
    with pytest.raises(ConfigError):
        folder_of("linked")


@pytest.mark.parametrize(
    "name", ["../../x.toml", "/etc/cron.d/x.toml", "C:\\x.toml", "\\\\h\\x.toml"]
)
def test_the_name_of_an_uploaded_preset_has_no_path(name):
    content = b'[[steps]]\nquestion = "P1"\n'
    assert read_preset(name_of_file(name), content).name == "x"


def test_an_archive_is_not_unpacked():
    """Neither zip nor tar: so no member can be called ../x, be a link, or fill the disk."""
    zip_file = b"PK\x03\x04" + b"\0" * 100
    tar_file = b"../x".ljust(257, b"\0") + b"ustar\x0000" + b"\0" * 247
    for data, why in ((zip_file, "a zip archive"), (tar_file, "not|neither")):
        with pytest.raises(TraceFormatError, match=why):
            read_upload([("../x", data)], "upload-000000000000")


def test_an_upload_lies_under_its_digest_whatever_it_is_called():
    store = Store()
    folder = store.folder("ab" * 32, "upload-abababababab", {"trace.csv": b"x"})
    assert folder == store.root / ("ab" * 32) / "upload-abababababab"
    assert store.root.stat().st_mode & 0o077 == 0

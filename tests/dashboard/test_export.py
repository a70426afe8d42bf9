"""What a result of one's own trace can be taken along as."""

import io
import json
import shlex
from pathlib import Path
from zipfile import ZipFile

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.examples import EXAMPLES, Example
from dashboard.export import folder_file, folder_name, portable_scenario, zipped
from dashboard.traces_read import read_upload
from dashboard.traces_store import Upload, digest_of, name_of
from triosim import Scenario, replay, simulate
from triosim.chakra.write import chakra_files
from triosim.cli import main
from triosim.commands.flags import command_line
from triosim.export.hta import hta_traces
from triosim.figures.text import time_text
from triosim.scenario import SAMPLE_TRACES

APP = Path(__file__).parents[2] / "app.py"
LABEL = "my model <b>, run 3"


@pytest.fixture
def upload() -> Upload:
    folder = SAMPLE_TRACES / "mlp"
    files = [(name, (folder / name).read_bytes()) for name in ("trace.csv", "tensor.csv")]
    digest = digest_of(files, None)
    return Upload(digest=digest, label=LABEL, reading=read_upload(files, name_of(digest)))


@pytest.fixture
def page(upload: Upload) -> AppTest:
    """The simulation page of a session with this upload."""
    at = AppTest.from_file(str(APP), default_timeout=30)
    at.session_state["uploads"] = {upload.name: upload}
    at.query_params["trace"] = upload.name
    at.switch_page("pages/simulate.py")
    return at.run()


def test_an_upload_is_called_what_its_owner_calls_it(page: AppTest) -> None:
    assert not page.exception
    title = page.subheader[0].value.replace("\\", "")
    assert title == f"{LABEL}, distributed data parallel, 8 GPUs"


def test_the_page_says_what_does_not_travel(page: AppTest) -> None:
    said = " ".join(caption.value for caption in page.caption)
    assert "This trace is in none of these but the ZIP." in said
    assert "only in a session that has uploaded the same files" in said
    assert "exactly this scenario" not in said
    labels = [button.proto.label for button in page.get("download_button")]
    labels = [label for label in labels if not label.startswith("Save as HTML: ")]
    assert labels == [
        "Perfetto trace", "Timeline (CSV)", "Scenario (JSON)", "HTA (ZIP)", "Chakra (ZIP)",
        "Trace (ZIP)",
    ]  # fmt: skip


def test_the_command_runs_where_the_trace_is_unpacked(
    page: AppTest,
    upload: Upload,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = page.code[0].value
    assert folder_name(upload) in command
    assert "upload-" not in command
    with ZipFile(io.BytesIO(zipped(upload))) as archive:
        archive.extractall(tmp_path)
    monkeypatch.chdir(tmp_path)
    arguments = command.split()
    assert main(arguments[arguments.index("triosim") + 1 :]) == 0
    result = simulate(Scenario(case=2, trace_dir=folder_name(upload)))
    assert page.metric[0].value == time_text(result.total_ms)
    assert result.to_dict()["total_ms"] == pytest.approx(
        simulate(Scenario(case=2, trace_dir=str(SAMPLE_TRACES / "mlp"))).total_ms
    )


def test_what_other_tools_read_is_packed_in_a_folder(tmp_path: Path) -> None:
    result = simulate(Scenario(case=2, gpus=2, trace_dir=str(SAMPLE_TRACES / "mlp")))
    for name, files in (("hta", hta_traces), ("chakra", chakra_files)):
        with ZipFile(io.BytesIO(folder_file(files, result, name))) as archive:
            archive.extractall(tmp_path)
    traces = [json.loads(path.read_text()) for path in sorted((tmp_path / "hta").iterdir())]
    assert [trace["distributedInfo"]["rank"] for trace in traces] == [0, 1]
    assert replay(tmp_path / "chakra").total_ms > 0


@pytest.mark.parametrize("label", ["../../etc", "...", "C:\\x", "a/b", "\u00e4\u00f6", "x" * 300])
def test_a_label_makes_a_harmless_folder(upload: Upload, label: str) -> None:
    odd = Upload(digest=upload.digest, label=label, reading=upload.reading)
    name = folder_name(odd)
    assert 0 < len(name) <= 60
    assert not set(name) & set("/\\: ")
    assert not name.startswith((".", "-"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.title)
def test_the_command_gives_the_scenario_again(
    example: Example, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(APP.parent)
    portable = portable_scenario(example.scenario)
    words = shlex.split(command_line(portable))
    assert words[:3] == ["python", "-m", "triosim"]
    assert main([*words[3:], "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["scenario"] == portable.to_dict()

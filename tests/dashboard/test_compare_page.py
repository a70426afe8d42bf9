"""The page Compare: addresses, cards, tabs and files, against the engine and by hand."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit import config
from streamlit.testing.v1 import AppTest

import triosim as ts
from dashboard.compare_add import QUESTIONS, ready_made
from dashboard.compare_export import saved, saved_comparison
from dashboard.compare_files import scenarios_in
from dashboard.compare_links import SCENARIOS, TABS, VIEW, link_to
from dashboard.compare_open import door_to
from dashboard.compare_run import Compared, Step, compared
from dashboard.compare_table import settings_table, whole_table
from dashboard.examples import EXAMPLES, RUNNING
from dashboard.network_settings import SETTINGS as NETWORK
from dashboard.packed import Missing, missing, pack, unpack
from dashboard.pinned import Pinned
from dashboard.settings import SETTINGS as SIMULATE
from dashboard.traces_links import NAMES as TRACES
from dashboard.traces_read import read_upload
from dashboard.traces_store import Upload, digest_of, name_of
from dashboard.train_published import preset, presets
from dashboard.train_settings import SETTINGS as TRAIN
from triosim.compare import compare
from triosim.figures.text import time_text
from triosim.resolved import AnyScenario, resolve
from triosim.scenario import SAMPLE_TRACES
from triosim.validation import load_source, rows_of
from triosim.validation.tables import DATA

APP = Path(__file__).parents[2] / "app.py"
Open = Callable[..., AppTest]
SMALL = ts.TrainScenario(
    model=None, layers=4, hidden=256, heads=4, ffn=512, vocab=1000, seq_len=256, gpus=4
)
FOUR: tuple[AnyScenario, ...] = (
    ts.Scenario(case=1, gpus=4),
    ts.Scenario(case=2, gpus=4),
    SMALL,
    replace(SMALL, recompute="full"),
)


@pytest.fixture
def page() -> Open:
    """Opens the page with some scenarios and whatever else the address says."""
    config.set_option("global.disableWidgetStateDuplicationWarning", True)

    def open_with(
        compared: Sequence[AnyScenario] = (), state: dict[str, object] | None = None, **more: str
    ) -> AppTest:
        at = AppTest.from_file(str(APP), default_timeout=60)
        for name, value in (state or {}).items():
            at.session_state[name] = value
        address = link_to(compared) if compared else {}
        for name, text in {**address, **more}.items():
            at.query_params[name] = text
        at.switch_page("pages/compare.py")
        return at.run()

    return open_with


def said(at: AppTest) -> str:
    assert not at.exception
    elements = (*at.markdown, *at.caption, *at.info, *at.error, *at.warning, *at.subheader)
    return "\n".join(element.value for element in elements).replace("\\", "")


def here(at: AppTest) -> list[AnyScenario]:
    """What the address holds now."""
    held = at.query_params.get(SCENARIOS)
    return unpack(held) if held else []


def press(at: AppTest, label: str, number: int = 0) -> AppTest:
    [*found] = [button for button in at.button if button.label == label]
    return found[number].click().run()


def step_of(letter: str, scenario: AnyScenario) -> Step:
    result = ts.simulate(scenario) if isinstance(scenario, ts.Scenario) else ts.train(scenario)
    return Step(letter=letter, scenario=scenario, name=letter, result=result)


@pytest.fixture(scope="module")
def both() -> Compared:
    found = compared([step_of(*each) for each in zip("ABCD", FOUR, strict=True)])
    assert found is not None
    return found


def test_no_name_of_the_address_belongs_to_another_page_too() -> None:
    assert not {*VIEW, SCENARIOS} & {*SIMULATE, *NETWORK, *TRACES, *TRAIN, "v", "tab", "window"}


@pytest.mark.parametrize("tab", TABS)
def test_a_link_with_four_of_both_kinds_opens_in_any_session(page: Open, tab: str) -> None:
    at = page(FOUR, picture=tab)
    assert not at.error
    assert not at.warning
    found = compare(*FOUR)
    assert [metric.value for metric in at.metric] == [time_text(r.total_ms) for r in found.results]
    text = said(at)
    for letter, number in (("A", 0), ("B", 1), ("C", 2), ("D", 3)):
        assert f"**{letter}** " in text
        if number:
            assert found.paragraph(number) in text


def test_a_letter_without_a_step_is_said(page: Open) -> None:
    at = page(FOUR[:2], against="D")
    assert "against D: this link has only the steps A, B." in at.warning[0].value
    assert not page(FOUR[:2], against="B").warning


def test_the_waterfall_on_the_page_ends_at_the_difference(page: Open) -> None:
    at = page(FOUR, against="D")
    spec = json.loads(at.get("plotly_chart")[0].proto.spec)
    [bars] = spec["data"]
    found = compare(*FOUR)
    parts = [delta.ms for delta in found.waterfall(3)]
    difference = found.results[3].total_ms - found.results[0].total_ms
    assert sum(bars["x"][:-1]) == pytest.approx(difference)
    assert bars["x"][-1] == pytest.approx(sum(parts)) == pytest.approx(difference)
    assert f"({'D'})" in said(at)


def test_a_step_becomes_the_baseline_and_leaves(page: Open) -> None:
    at = press(page(FOUR[:3]), "Baseline", 1)
    assert here(at) == [FOUR[2], FOUR[0], FOUR[1]]
    at = press(at, "Remove", 0)
    assert here(at) == [FOUR[0], FOUR[1]]
    at = press(at, "Remove", 1)
    assert here(at) == [FOUR[0]]
    assert "Add a second step" in said(at)
    at = press(at, "Remove", 0)
    assert here(at) == []
    assert "side by side" in said(at)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.title)
def test_an_empty_page_offers_comparisons(page: Open, question: object) -> None:
    at = page()
    assert len(at.metric) == 0
    at = press(at, question.title)  # type: ignore[attr-defined]
    assert here(at) == list(question.scenarios)  # type: ignore[attr-defined]
    assert not at.error
    assert len(at.metric) == len(question.scenarios)  # type: ignore[attr-defined]


def test_steps_of_a_question_are_of_equal_work() -> None:
    for question in QUESTIONS:
        results = compare(*question.scenarios).results
        assert len({(result.samples, result.scenario.gpus) for result in results}) == 1


def test_the_pinned_and_ready_made_steps_can_be_added(page: Open) -> None:
    at = page(FOUR[:1], state={"pinned": Pinned(scenario=FOUR[2], step_ms=1.0)})
    at = press(at, "Add the pinned one")
    assert here(at) == [FOUR[0], FOUR[2]]
    names = list(ready_made())
    [choice] = [box for box in at.selectbox if box.label == "A ready-made or published step"]
    at = choice.select(names[1]).run()
    at = press(at, "Add this step")
    assert here(at) == [FOUR[0], FOUR[2], EXAMPLES[0].scenario]
    assert not at.exception


def test_every_ready_made_step_survives_an_address() -> None:
    for name, scenario in ready_made().items():
        made = preset(name) if name in presets() else scenario
        assert made is not None
        assert unpack(pack([made])) == [made]


@pytest.mark.parametrize("name", ["torchtitan", "selective-recompute", "zero-bubble"])
def test_every_published_run_survives_an_address(name: str) -> None:
    for row in rows_of(load_source(name)):
        assert unpack(pack([row.scenario])) == [row.scenario]


def test_a_file_of_a_published_run_goes_by_its_name() -> None:
    scenario = replace(SMALL, machine=str(DATA / "a100-4x200.toml"), gpu="a100-80gb")
    assert unpack(pack([scenario])) == [scenario]
    text = pack([replace(SMALL, machine="dgx-a100", gpu="a100-80gb")])
    for wrong in ("../a100-4x200.toml", "other.toml", ""):
        with pytest.raises(ts.ConfigError, match="no published run here has a file of this name"):
            unpack(_changed(text, machine=f"published:{wrong}"))


def _changed(text: str, **more: object) -> str:
    """The same address with other values in its first scenario."""
    items = json.loads(zlib.decompress(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))))
    items[0] |= more
    squeezed = zlib.compress(json.dumps(items).encode())
    return base64.urlsafe_b64encode(squeezed).decode().rstrip("=")


def test_a_step_without_a_result_says_why_and_the_others_are_compared(page: Open) -> None:
    wrong = replace(RUNNING, gpus=8, tp=16)
    at = page([FOUR[0], wrong, FOUR[1]])
    [error] = at.error
    assert error.value.startswith("No result: ")
    assert compare(FOUR[0], FOUR[1]).paragraph(1) in said(at)
    at = page([wrong, FOUR[0]])
    assert "The baseline has no result" in said(at)


@pytest.mark.parametrize("text", ["abc", "****", "x" * 20_000, pack(FOUR)[:-9]])
def test_a_broken_link_gets_one_sentence_and_a_way_on(page: Open, text: str) -> None:
    at = page(v="1", scenarios=text)
    [error] = at.error
    assert error.value.startswith("This link cannot be used: ")
    at = press(at, "Start anew")
    assert not at.error
    assert "side by side" in said(at)


def test_what_a_link_says_wrongly_is_said(page: Open) -> None:
    at = page(FOUR[:2], against="F", other="1")
    assert not at.exception
    [warning] = at.warning
    assert "against F: must be one of B, C, D" in warning.value.replace("\\", "")
    assert "other 1: this page has no such setting" in warning.value.replace("\\", "")
    assert len(at.metric) == 2


@pytest.fixture
def upload() -> Upload:
    folder = SAMPLE_TRACES / "mlp"
    files = [(name, (folder / name).read_bytes()) for name in ("trace.csv", "tensor.csv")]
    digest = digest_of(files, None)
    return Upload(digest=digest, label="mine", reading=read_upload(files, name_of(digest)))


def files_of(trace: str) -> list[tuple[str, bytes, str]]:
    names = ("trace.csv", "tensor.csv")
    return [(name, (SAMPLE_TRACES / trace / name).read_bytes(), "text/csv") for name in names]


def test_a_link_with_an_upload_asks_for_exactly_that_file(page: Open, upload: Upload) -> None:
    text = _changed(pack(FOUR[:2]), trace_dir=upload.name)
    at = page(v="1", scenarios=text)
    digest = upload.name.removeprefix("upload-")
    assert f"`{digest}`" in said(at)
    assert not at.metric
    [field] = at.get("file_uploader")
    at = field.set_value(files_of("convnet")).run()
    [error] = at.error
    assert "it is another file" in error.value
    [field] = at.get("file_uploader")
    at = field.set_value(files_of("mlp")).run()
    assert not at.error
    assert len(at.metric) == 2
    own = ts.simulate(replace(FOUR[0], trace_dir=str(SAMPLE_TRACES / "mlp")))
    assert at.metric[0].value == time_text(own.total_ms)


def test_what_is_missing_is_known_before_anything_is_read(upload: Upload) -> None:
    text = _changed(pack([SMALL]), config="upload-0123456789ab", layers=None)
    assert missing(text) == [Missing("config", "upload-0123456789ab")]
    assert missing(pack(FOUR)) == []


def test_saved_files_come_back(both: Compared) -> None:
    for step in both.steps:
        assert scenarios_in(json.dumps(saved(step.scenario)).encode()) == [step.scenario]
        assert step.result is not None
        result = step.result.to_dict() | {"scenario": saved(step.scenario)}
        assert scenarios_in(json.dumps(result, default=str).encode()) == [step.scenario]
    whole = json.dumps(saved_comparison(both), default=str)
    assert scenarios_in(whole.encode()) == list(FOUR)
    assert str(SAMPLE_TRACES) not in whole


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"\xff\xfe", "must be a scenario saved as JSON"),
        (b"[1]", "must hold one scenario or result"),
        (b"{}", "must hold a scenario"),
        (b'{"steps": []}', "must hold 1 to 4"),
        (b'{"steps": [1]}', "must hold a scenario"),
        (b'{"case": 2, "trace_dir": "/etc/elsewhere"}', "this session has no such trace"),
        (b'{"topology": "/etc/x.toml"}', "no file"),
        (b'{"machine": "/etc/x.toml", "gpus": 8}', "no file"),
        (b'{"config": "/etc/passwd", "gpus": 8}', "config.json"),
        (b'{"case": 9}', "case"),
        (b'{"gpus": "many"}', "gpus"),
        (b'{"kind": ["train"], "gpus": 8}', "no such field"),
        (b'{"case": 2, "topology": {"kind": ["ring"]}}', "kind"),
        (b'{"steps": [{"scenario": {"kind": {}}}]}', "no such field"),
        (b'{"model": "gpt2", "layers": 1073741824}', "layers"),
        (b"[" * 100_000, "must be a scenario saved as JSON"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(text: bytes, sentence: str) -> None:
    with pytest.raises(ts.ConfigError, match=re.escape(sentence)):
        scenarios_in(text)


def test_a_file_is_added_and_a_wrong_one_is_not(page: Open) -> None:
    at = page(FOUR[:1])
    [field] = at.get("file_uploader")
    at = field.set_value([("a.json", json.dumps(saved(FOUR[3])).encode(), "x")][0]).run()
    assert here(at) == [FOUR[0], FOUR[3]]
    [field] = at.get("file_uploader")
    at = field.set_value(("b.json", b"no", "application/json")).run()
    assert "must be a scenario saved as JSON" in said(at)
    assert here(at) == [FOUR[0], FOUR[3]]


def test_the_table_has_what_differs_and_the_file_all_figures(both: Compared) -> None:
    table = settings_table(both)
    assert list(table.columns) == ["part", "setting", "A", "B", "C", "D"]
    case = table[table["setting"] == "Case"].iloc[0]
    assert (case["A"][0], case["B"][0]) == ("1", "2")
    whole = whole_table(both)
    parts = whole[whole["kind"] == "part of the step (ms)"]
    for letter, result in zip("ABCD", both.found.results, strict=True):
        assert parts[letter].astype(float).sum() == pytest.approx(result.total_ms)


def test_steps_of_one_name_are_told_apart() -> None:
    steps = [
        replace(step_of(letter, scenario), name="same")
        for letter, scenario in zip("ABC", (*FOUR[:2], FOUR[0]), strict=True)
    ]
    found = compared(steps)
    assert found is not None
    assert found.names[0] != found.names[1]


@pytest.mark.parametrize("scenario", [*FOUR[:2], RUNNING], ids=lambda s: type(s).__name__)
def test_each_step_opens_on_its_own_page(scenario: AnyScenario) -> None:
    door = door_to(scenario)
    assert door is not None
    page, _, parameters = door
    at = AppTest.from_file(str(APP), default_timeout=60)
    for name, value in parameters.items():
        at.query_params[name] = value
    at.switch_page(page)
    at.run()
    assert not at.exception
    assert not at.warning
    result = ts.train(scenario) if isinstance(scenario, ts.TrainScenario) else ts.simulate(scenario)
    assert at.metric[0].value == time_text(result.total_ms)


def test_what_a_page_has_no_setting_for_has_no_door(tmp_path: Path) -> None:
    file = tmp_path / "ring.toml"
    file.write_text('kind = "ring"\nlink = { gb_per_s = 10 }\n', encoding="utf-8")
    assert door_to(ts.Scenario(case=2, gpus=4, topology=str(file))) is None


@pytest.mark.parametrize(
    ("place", "scenario"),
    [("pages/simulate.py", ts.Scenario(case=2)), ("pages/train.py", RUNNING)],
)
def test_a_result_is_pinned_and_compared_with_the_next(place: str, scenario: AnyScenario) -> None:
    config.set_option("global.disableWidgetStateDuplicationWarning", True)
    at = AppTest.from_file(str(APP), default_timeout=60)
    at.session_state["pinned"] = Pinned(scenario=FOUR[2], step_ms=None)
    at.switch_page(place)
    at.run()
    assert "The baseline is pinned" in said(at)
    at = press(at, "Unpin")
    assert "pinned" not in at.session_state
    at = press(at, "Pin")
    kept = at.session_state["pinned"]
    assert resolve(kept.scenario).kind == resolve(scenario).kind
    assert time_text(kept.step_ms) == at.metric[0].value
    assert "This result is pinned" in said(at)
    assert not [button for button in at.button if button.label == "Compare with pinned"]
    at.session_state["pinned"] = Pinned(scenario=FOUR[2], step_ms=None)
    at = press(at.run(), "Compare with pinned")
    assert not at.exception
    assert at.metric[0].value == time_text(ts.train(FOUR[2]).total_ms)
    assert len(at.metric) == 2

"""Folded groups of the sidebars of Simulate and Train: what is drawn, and that nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.controls import MORE
from dashboard.imperfections import IMPERFECTIONS
from dashboard.settings import SETTINGS as SIMULATE
from dashboard.train_published import presets
from dashboard.train_settings import SETTINGS as TRAIN
from dashboard.train_settings import SIZES, VIEW
from dashboard.train_side import GROUPS
from tests.dashboard.reading import fold, group, keys, unfold

Open = Callable[..., AppTest]
IMPERFECT, LAUNCHES, SLOW = "Imperfections", "Optimizer and launches", "Slow GPUs and lost time"
ON_SIMULATE = {IMPERFECT: IMPERFECTIONS, "More settings": MORE}
ON_TRAIN = {"Change its sizes": SIZES, **{label: names for label, (names, _) in GROUPS.items()}}


@pytest.fixture
def small_train_page(train_page: Open) -> Open:
    """The page Train with a model that is computed quickly."""
    return lambda **more: train_page(**{"v": "1", "model": "llama3.2-1b", **more})


def drawn_in(
    page: Open, groups: Mapping[str, object], links: list[dict[str, str]]
) -> dict[str, set[str]]:
    """The keys in each group, of several addresses together."""
    found: dict[str, set[str]] = {label: set() for label in groups}
    for link in links:
        at = unfold(page(**link))
        assert not at.exception
        assert [one.label for one in at.sidebar.expander] == list(groups)
        for one in at.sidebar.expander:
            found[one.label] |= keys(one)
    return found


def test_the_groups_of_simulate_name_what_they_draw(simulate_page: Open) -> None:
    """A setting that no group names would be lost with the next change of another one."""
    links = [
        {"jitter": "0.1", "rank_speed": "1=0.5"}, {"case": "4"}, {"interconnect": "optical"},
        {"topology": "dgx-h100"},
    ]  # fmt: skip
    found = drawn_in(simulate_page, ON_SIMULATE, links)
    assert {label: drawn & set(SIMULATE) for label, drawn in found.items()} == {
        label: set(names) for label, names in ON_SIMULATE.items()
    }


def test_the_groups_of_train_name_what_they_draw(small_train_page: Open) -> None:
    found = drawn_in(small_train_page, ON_TRAIN, [{}, {"pipeline": "typed as a grid"}])
    assert found == {label: set(names) for label, names in ON_TRAIN.items()}


def test_a_folded_group_at_its_defaults_is_not_drawn(
    simulate_page: Open, small_train_page: Open
) -> None:
    for at, groups in ((simulate_page(), ON_SIMULATE), (small_train_page(), ON_TRAIN)):
        assert [one.label for one in at.sidebar.expander] == list(groups)
        assert not any(one.children for one in at.sidebar.expander)
        assert at.metric


@pytest.mark.parametrize("name", [n for names in ON_TRAIN.values() for n in names])
def test_what_a_link_sets_draws_the_group_folded(small_train_page: Open, name: str) -> None:
    setting = TRAIN[name]
    text = {"switch": str(not setting.default).lower(), "text": "x"}.get(setting.kind, "1")
    if setting.kind == "choice":
        text = next(choice for choice in setting.choices[::-1] if choice != setting.default)
    elif text == "1" and setting.default == 1:
        text = "2"
    other = {"pipeline": "typed as a grid"} if name == "grid" else {}
    at = small_train_page(**{name: text}, **other)
    assert not at.exception
    label = next(label for label, names in ON_TRAIN.items() if name in names)
    assert name in keys(group(at, label))
    assert not group(at, label).proto.expanded
    assert at.session_state["train_address"][name] == text


def test_a_link_counts_and_leaves_other_groups_alone(simulate_page: Open) -> None:
    plain, at = simulate_page(), simulate_page(bucket_mb="5")
    assert at.metric[0].value != plain.metric[0].value
    assert "bucket_mb" in keys(group(at, "More settings"))
    assert not group(at, IMPERFECT).children


def test_a_value_stays_when_its_group_is_closed(small_train_page: Open) -> None:
    at = unfold(small_train_page(), SLOW)
    before = at.metric[0].value
    at.number_input(key="extra").set_value(500.0).run()
    after = at.metric[0].value
    assert after != before
    fold(at, SLOW)
    assert at.metric[0].value == after
    assert at.number_input(key="extra").value == 500.0
    at.number_input(key="world").set_value(16).run()
    assert at.number_input(key="extra").value == 500.0
    assert at.session_state["train_address"]["extra"] == "500"


def test_a_group_stays_open_as_its_value_goes_back(small_train_page: Open) -> None:
    at = unfold(small_train_page(), SLOW)
    before = at.metric[0].value
    at.number_input(key="extra").set_value(500.0).run()
    at.number_input(key="extra").set_value(0.0).run()
    assert at.number_input(key="extra").value == 0
    assert group(at, SLOW).proto.expanded
    assert "extra" not in keys(fold(at, SLOW))
    assert at.metric[0].value == before
    assert "extra" not in at.session_state["train_address"]
    at.number_input(key="micro").set_value(1).run()
    assert unfold(at, SLOW).number_input(key="extra").value == 0


def test_a_refused_number_leaves_the_one_before(simulate_page: Open) -> None:
    at = unfold(simulate_page(), "More settings")
    at.number_input(key="accumulate").set_value(2).run()
    at.number_input(key="accumulate").set_value(2.5).run()
    assert "Batches per step 2.5: must be a whole number" in at.sidebar.error[0].value
    # Folded away, perhaps at once: said below the group, until the next change.
    assert "Batches per step 2.5: must be" in below(fold(at, "More settings"))
    assert at.number_input(key="accumulate").value == 2
    assert not at.run().error


@pytest.mark.parametrize("typed", [1.5, -4.0])
def test_a_number_refused_as_its_group_folds_is_said_below_it(
    small_train_page: Open, typed: float
) -> None:
    label = next(iter(GROUPS))
    at = unfold(small_train_page(), label)
    at.number_input(key="batch").set_value(typed)  # and the same run folds the group
    assert f"Global batch {typed:g}: must be a whole number" in below(fold(at, label))
    assert not unfold(at, label).error
    assert at.number_input(key="batch").value is None


def test_a_slow_gpu_refused_as_its_group_folds_is_not_said_later(simulate_page: Open) -> None:
    at = unfold(simulate_page(), IMPERFECT)
    at.number_input(key="slow_rank").set_value(99.0)
    assert "Slow GPU 99: must be a whole number from 0 to 7" in below(fold(at, IMPERFECT))
    at.number_input(key="gpus").set_value(16).run()
    assert not unfold(at, IMPERFECT).error


def test_what_was_said_in_an_open_group_is_not_said_runs_later(simulate_page: Open) -> None:
    at = unfold(simulate_page(), "More settings")
    at.number_input(key="accumulate").set_value(2.5).run()
    assert at.sidebar.error
    at.number_input(key="gpus").set_value(16).run()
    assert not at.error
    assert not fold(at, "More settings").error


def below(at: AppTest) -> str:
    """The sentence beside the groups of the sidebar, where a folded one does not hide it."""
    hidden = sum(len(one.error) for one in at.sidebar.expander)
    (seen,) = at.sidebar.error[hidden:]
    value: str = seen.value
    return value


def test_a_setting_of_another_case_waits_in_its_group(simulate_page: Open) -> None:
    at = simulate_page(case="4", schedule="1f1b")
    at.slider(key="case").set_value(1).run()
    assert "schedule" not in keys(at)
    at.slider(key="case").set_value(4).run()
    assert at.radio(key="schedule").value == "1f1b"


def test_a_preset_sets_what_was_never_drawn(small_train_page: Open) -> None:
    """TorchTitan's row 13: 405 B on 512 GPUs with an interleaved schedule."""
    at = small_train_page(optimizer="sgd")
    assert "optimizer" in keys(at)
    name = next(
        label
        for label, run in presets().items()
        if (run.source.name, run.row.number) == ("torchtitan", 13)
    )
    at.selectbox(key="train_preset").set_value(name).run()
    assert not at.exception
    assert "llama3.1-405b on 512 GPUs" in at.subheader[0].value
    assert at.number_input(key="chunks").value == 2
    assert at.toggle(key="async_tp").value
    assert at.query_params["chunks"] == "2"
    assert "optimizer" not in keys(at.run())
    assert "optimizer" not in at.query_params


def test_a_grid_and_sizes_that_begin_as_before_are_in_the_address(small_train_page: Open) -> None:
    at = unfold(small_train_page(), "Pipeline, context and tensor parallelism")
    at.selectbox(key="pipeline").set_value("typed as a grid").run()
    assert at.query_params["grid"] == "F0 B0"
    at.selectbox(key="origin").set_value("sizes typed in").run()
    assert at.query_params["layers"] == "16"


def test_a_sentence_about_what_is_not_drawn_is_on_top(simulate_page: Open) -> None:
    at = simulate_page(gpu="a100-80gb")
    (error,) = at.error
    assert error.value.startswith("No result: The trace was taken on")
    assert not at.sidebar.error
    unfold(at, "More settings")
    assert at.sidebar.error[0].value.startswith("The trace was taken on")


def test_every_setting_has_a_place(small_train_page: Open) -> None:
    viewed = {setting.name for setting in VIEW}
    grouped = {name for names in ON_TRAIN.values() for name in names}
    depends = {"config", "recorded", "shape", "described", "period"}
    assert set(TRAIN) - viewed - grouped - depends <= keys(small_train_page().sidebar)

import json
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import computed
from dashboard.examples import EXAMPLES
from dashboard.export import portable_scenario
from dashboard.links import TABS, parameters_of, values_of
from tests.dashboard.reading import keys, unfold
from triosim import Scenario, simulate
from triosim.commands.flags import command_line
from triosim.figures.text import time_text
from triosim.scenario import SAMPLE_TRACES

Open = Callable[..., AppTest]


def command(at: AppTest) -> str:
    return at.code[0].value


def step_time(at: AppTest) -> str:
    return at.metric[0].value


def assert_shows(at: AppTest, scenario: Scenario) -> None:
    """The page shows the result of this scenario."""
    assert not at.exception
    assert not at.error
    assert command(at) == command_line(portable_scenario(scenario))
    assert step_time(at) == time_text(simulate(scenario).total_ms)


def test_a_finished_result_stands_there_at_once(simulate_page: Open) -> None:
    at = simulate_page()
    assert_shows(at, Scenario(case=2))
    assert [m.label for m in at.metric] == [
        "Step time",
        "Speed-up",
        "Samples per second",
        "Peak memory per GPU",
    ]
    assert not at.warning


CONTROLS: list[tuple[str, str, Any, dict[str, Any], dict[str, str]]] = [
    ("selectbox", "trace", "mlp", {"trace_dir": str(SAMPLE_TRACES / "mlp")}, {}),
    ("slider", "case", 3, {"case": 3}, {}),
    (
        "selectbox",
        "gpu",
        "a100-80gb",
        {"gpu": "a100-80gb", "trace_dir": str(SAMPLE_TRACES / "vgg13")},
        {"trace": "vgg13"},
    ),
    ("slider", "capacity_log2", 31, {"capacity_log2": 31}, {}),
    ("number_input", "gpus", 16384, {"gpus": 16384}, {}),
    ("select_slider", "gpus_slider", 3, {"gpus": 3}, {}),
    ("number_input", "bandwidth_gb_per_s", 123.4, {"bandwidth_gb_per_s": 123.4}, {}),
    ("select_slider", "bandwidth_gb_per_s_slider", 50.0, {"bandwidth_gb_per_s": 50}, {}),
    ("number_input", "ptp_bandwidth_gb_per_s", 12.5, {"ptp_bandwidth_gb_per_s": 12.5}, {}),
    ("select_slider", "ptp_bandwidth_gb_per_s_slider", 20.0, {"ptp_bandwidth_gb_per_s": 20}, {}),
    ("number_input", "latency_us", 50.0, {"latency_us": 50}, {}),
    ("number_input", "batch_size_sim", 16, {"batch_size_sim": 16}, {}),
    ("number_input", "batch_size", 4, {"batch_size": 4}, {}),
    ("number_input", "micro_batch_size", 2, {"micro_batch_size": 2, "case": 4}, {"case": "4"}),
    ("radio", "schedule", "1f1b", {"schedule": "1f1b", "case": 4}, {"case": "4"}),
    ("radio", "stage_cut", "count", {"stage_cut": "count", "case": 4}, {"case": "4"}),
    ("radio", "ptp_convention", "link", {"ptp_convention": "link"}, {}),
    ("number_input", "bucket_mb", 5.0, {"bucket_mb": 5}, {}),
    ("number_input", "accumulate", 2, {"accumulate": 2}, {}),
    ("toggle", "resident", True, {"resident": True}, {}),
    ("toggle", "fold", False, {"fold": False}, {}),
    ("text_input", "rank_speed", "3=0.5, 1=0.8", {"rank_speed": {1: 0.8, 3: 0.5}}, {}),
    ("number_input", "slow_rank", 2, {"rank_speed": {2: 0.5}}, {}),
    ("select_slider", "slow_speed", 0.4, {"rank_speed": {0: 0.4}}, {}),
    ("radio", "interconnect", "optical", {"interconnect": "optical"}, {}),
    ("selectbox", "topology", "seminar-h100", {"topology": "seminar-h100"}, {}),
    ("selectbox", "algorithm", "tree", {"algorithm": "tree"}, {}),
    (
        "selectbox",
        "algorithm",
        "ring",
        {"algorithm": "ring", "topology": "torus"},
        {"topology": "torus"},
    ),
    (
        "toggle",
        "protocol",
        False,
        {"protocol": False, "topology": "dgx-h100"},
        {"topology": "dgx-h100"},
    ),
    ("select_slider", "jitter_slider", 0.05, {"jitter": 0.05}, {}),
    ("number_input", "jitter", 0.4, {"jitter": 0.4}, {}),
    ("number_input", "seed", 7, {"seed": 7, "jitter": 0.05}, {"jitter": "0.05"}),
    (
        "number_input",
        "slow_every",
        10,
        {"slow_every": 10, "rank_speed": {1: 0.5}},
        {"rank_speed": "1=0.5"},
    ),
    ("text_input", "dead_links", "3-4, 0-1=0.5", {"dead_links": ("3-4", "0-1=0.5")}, {}),
    ("selectbox", "bad_link", "2-3", {"dead_links": ("2-3",)}, {}),
    ("select_slider", "bad_link_left", 0.25, {"dead_links": ("0-1=0.25",)}, {}),
    ("number_input", "overlap_slowdown", 0.3, {"overlap_slowdown": 0.3}, {}),
]
OPTICAL: list[tuple[str, str, Any, dict[str, Any]]] = [
    ("select_slider", "mesh_rows", 2, {"mesh_rows": 2}),
    ("select_slider", "mesh_cols_slider", 2, {"mesh_rows": 4}),
    ("number_input", "optical_gb_per_s", 10.0, {"optical_gb_per_s": 10}),
    ("select_slider", "optical_gb_per_s_slider", 100.0, {"optical_gb_per_s": 100}),
    ("number_input", "hop_latency_ns", 1e5, {"hop_latency_ns": 1e5}),
    ("number_input", "circuit_setup_ms", 2.0, {"circuit_setup_ms": 2}),
    ("number_input", "circuit_teardown_ms", 2.0, {"circuit_teardown_ms": 2}),
    ("number_input", "wavelengths", 4, {"wavelengths": 4}),
]


@pytest.mark.parametrize(
    ("kind", "key", "value", "fields", "link"), CONTROLS, ids=[c[1] for c in CONTROLS]
)
def test_every_control_changes_its_setting(
    simulate_page: Open,
    kind: str,
    key: str,
    value: Any,
    fields: dict[str, Any],
    link: dict[str, str],
) -> None:
    at = unfold(simulate_page(**link))
    getattr(at, kind)(key=key).set_value(value).run()
    assert_shows(at, Scenario(**{"case": 2, **fields}))


@pytest.mark.parametrize(("kind", "key", "value", "fields"), OPTICAL, ids=[c[1] for c in OPTICAL])
def test_every_optical_control_changes_its_setting(
    simulate_page: Open, kind: str, key: str, value: Any, fields: dict[str, Any]
) -> None:
    at = unfold(simulate_page(interconnect="optical"))
    getattr(at, kind)(key=key).set_value(value).run()
    assert_shows(at, Scenario(case=2, interconnect="optical", **fields))


def test_twice_the_bandwidth_halves_the_all_reduce(simulate_page: Open) -> None:
    at = simulate_page(case="1", tab="Communication")
    times = []
    for bandwidth in (65.0, 130.0):
        at.number_input(key="ptp_bandwidth_gb_per_s").set_value(bandwidth).run()
        table = at.dataframe[0].value.set_index("kind")
        times.append(table.loc["all-reduce", "busy (ms, mean)"])
    assert times[0] == pytest.approx(2 * times[1], rel=1e-3)


@pytest.mark.parametrize(
    ("link", "shown", "hidden"),
    [
        (
            {"case": "0"},
            set(),
            {"interconnect", "ptp_bandwidth_gb_per_s", "mesh_rows", "bucket_mb"},
        ),
        ({"case": "1"}, {"accumulate", "latency_us"}, {"bucket_mb", "micro_batch_size"}),
        ({"case": "4"}, {"micro_batch_size", "schedule"}, {"accumulate", "ptp_convention"}),
        (
            {"interconnect": "optical"},
            {"mesh_rows", "circuit_setup_ms"},
            {"ptp_bandwidth_gb_per_s", "latency_us", "topology", "algorithm", "dead_links"},
        ),
        (
            {"topology": "dgx-h100"},
            {"protocol", "algorithm", "dead_links", "jitter", "overlap_slowdown"},
            {"ptp_bandwidth_gb_per_s", "latency_us", "ptp_convention", "seed", "slow_every"},
        ),
        ({"topology": "torus"}, {"ptp_bandwidth_gb_per_s", "latency_us"}, {"protocol"}),
    ],
)
def test_only_controls_that_matter_are_shown(
    simulate_page: Open, link: dict[str, str], shown: set[str], hidden: set[str]
) -> None:
    drawn = keys(unfold(simulate_page(**link)))
    assert shown <= drawn
    assert not hidden & drawn


def test_the_mesh_follows_the_number_of_gpus(simulate_page: Open) -> None:
    at = simulate_page(interconnect="optical", gpus="12", mesh_rows="6")
    at.number_input(key="gpus").set_value(8).run()
    assert_shows(at, Scenario(case=2, gpus=8, interconnect="optical", mesh_rows=4))
    assert at.select_slider(key="mesh_rows").options == ["1", "2", "4", "8"]


def test_a_setting_comes_back_with_its_case(simulate_page: Open) -> None:
    at = simulate_page(case="4", micro_batch_size="2")
    at.slider(key="case").set_value(1).run()
    assert not at.warning
    at.slider(key="case").set_value(4).run()
    assert_shows(at, Scenario(case=4, micro_batch_size=2))


def test_a_bad_address_gets_sentences_until_a_setting_changes(simulate_page: Open) -> None:
    at = simulate_page(case="9", gpus="4", colour="red", window="5", latency_us="<b>")
    assert_shows(at, Scenario(case=2, gpus=4))
    (warning,) = at.warning
    assert warning.value.count("\n- ") == 4
    at.number_input(key="gpus").set_value(2).run()
    assert not at.warning


def test_a_link_of_another_version_shows_the_defaults(simulate_page: Open) -> None:
    at = simulate_page(v="7", case="4")
    assert_shows(at, Scenario(case=2))
    assert "version 1" in at.warning[0].value


@pytest.mark.parametrize(
    ("link", "sentence"),
    [
        ({"capacity_log2": "20"}, "bytes in memory at once and a GPU has 1,048,576"),
        ({"case": "4", "gpus": "16384"}, "GPUs 16384: case 4 needs a forward operator"),
        ({"case": "4", "micro_batch_size": "9"}, "Micro-batch 9: must be at most"),
        ({"accumulate": "4096"}, "Batches per step 4096: this step has about 331,776 tasks"),
        ({"fold": "false", "gpus": "65536"}, "Simulate identical GPUs once False: this step has"),
        (
            {"case": "4", "micro_batch_size": "1", "batch_size_sim": "64", "jitter": "0.1"},
            "Jitter 0.1: this step has about",
        ),
    ],
)
def test_settings_without_an_answer_get_a_sentence(
    simulate_page: Open, link: dict[str, str], sentence: str
) -> None:
    at = simulate_page(**link)
    assert not at.exception
    assert not at.metric
    assert at.error
    assert all(sentence in error.value for error in at.error)


def test_a_sentence_takes_the_place_of_the_clock(
    simulate_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(computed, "PATIENCE_S", 0.0)
    at = simulate_page(capacity_log2="20", gpus="7")
    assert at.error
    assert not [c for c in at.main.caption if c.value.startswith("Simulating")]


def test_a_sentence_stands_beside_its_control(simulate_page: Open) -> None:
    at = simulate_page(case="4")
    at.number_input(key="micro_batch_size").set_value(9).run()
    assert "Micro-batch 9" in at.sidebar.error[0].value
    unfold(at, "Imperfections")
    at.text_input(key="rank_speed").set_value("half").run()
    assert "Slow GPUs half: must be rank=speed" in at.sidebar.error[0].value


def test_warnings_of_the_result_are_shown(simulate_page: Open) -> None:
    at = simulate_page(capacity_log2="30")
    scenario = Scenario(case=2, capacity_log2=30)
    assert [w.value for w in at.warning] == list(simulate(scenario).warnings)
    assert at.warning


@pytest.mark.parametrize("tab", TABS)
@pytest.mark.parametrize("case", ["0", "2", "4"])
def test_every_tab_opens_in_every_kind_of_case(simulate_page: Open, tab: str, case: str) -> None:
    at = simulate_page(tab=tab, case=case, gpus="3", rank_speed="1=0.5")
    assert not at.exception
    charts = {"Timeline": 2, "Network": 2, "Checks and assumptions": 0}
    assert len(at.get("plotly_chart")) == charts.get(tab, 1)


def test_the_classes_of_the_breakdown_are_all_there(simulate_page: Open) -> None:
    at = simulate_page(tab="Where time goes")
    assert len(at.metric) == 4 + 6
    assert len(at.dataframe[0].value) == 8


def test_large_clusters_are_tabled_by_kind(simulate_page: Open) -> None:
    at = simulate_page(tab="Where time goes", gpus="16384", rank_speed="5=0.5")
    assert list(at.dataframe[0].value["GPU"]) == ["0 (x 16,383)", "5 (x 1)"]


def test_checks_and_assumptions_are_listed(simulate_page: Open) -> None:
    at = simulate_page(tab="Checks and assumptions")
    checks = simulate(Scenario(case=2)).checks
    assert {t.value for t in at.text} == {check.detail for check in checks}
    assert any("Not modelled" in m.value for m in at.markdown)


def drawn(at: AppTest) -> tuple[set[str], int]:
    """The GPUs and the number of bars of the detailed timeline."""
    figure = json.loads(at.get("plotly_chart")[-1].proto.spec)
    bars = [trace for trace in figure["data"] if trace["type"] == "bar"]
    return {label.split()[1] for trace in bars for label in trace["y"]}, sum(
        len(trace["y"]) for trace in bars
    )


def test_identical_gpus_are_drawn_on_request_and_up_to_a_limit(simulate_page: Open) -> None:
    at = simulate_page(gpus="4", window=["0", "10"])
    assert drawn(at)[0] == {"0"}
    at.toggle(key="all_ranks").set_value(True).run()
    assert drawn(at)[0] == {"0", "1", "2", "3"}
    at = simulate_page(gpus="64", window=["0", "1"], all_ranks="true", first_rank="40")
    assert drawn(at)[0] == {str(rank) for rank in range(40, 56)}


def test_a_window_holds_fewer_bars(simulate_page: Open) -> None:
    at = simulate_page()
    whole = drawn(at)[1]
    at.slider(key="window").set_value((20.0, 40.0)).run()
    assert 0 < drawn(at)[1] < whole
    at.slider(key="window").set_value((40.0, 40.0)).run()
    assert not at.exception


def test_a_rank_that_is_no_longer_there_is_let_go(simulate_page: Open) -> None:
    at = simulate_page(tab="Memory", memory_rank="7")
    assert at.number_input(key="memory_rank").value == 7
    at.number_input(key="gpus").set_value(4).run()
    assert not at.exception
    assert at.number_input(key="memory_rank").value == 3


@pytest.mark.parametrize("rank", ["8", "99999999999999999999"])
def test_a_slow_gpu_that_is_not_there_is_a_sentence(simulate_page: Open, rank: str) -> None:
    at = unfold(simulate_page(), "Imperfections")
    at.text_input(key="rank_speed").set_value(f"{rank}=0.5").run()
    assert not at.exception
    assert any("ranks go from 0 to 7" in error.value for error in at.error)


def test_a_door_sets_the_handles_of_the_slow_gpu(simulate_page: Open) -> None:
    (door,) = (example for example in EXAMPLES if example.title == "One slow GPU")
    at = simulate_page(**parameters_of(values_of(door.scenario)))
    assert_shows(at, door.scenario)
    assert handles(at) == (3, 0.5)


def handles(at: AppTest) -> tuple[float | None, float]:
    return at.number_input(key="slow_rank").value, at.select_slider(key="slow_speed").value


def test_moving_one_slow_gpu_leaves_the_others(simulate_page: Open) -> None:
    at = unfold(simulate_page(rank_speed="1=0.5,5=0.8"), "Imperfections")
    assert handles(at) == (1, 0.5)
    at.select_slider(key="slow_speed").set_value(0.3).run()
    assert_shows(at, Scenario(case=2, rank_speed={1: 0.3, 5: 0.8}))
    at.number_input(key="slow_rank").set_value(2).run()
    assert_shows(at, Scenario(case=2, rank_speed={2: 0.3, 5: 0.8}))
    assert handles(at) == (2, 0.3)
    at.select_slider(key="slow_speed").set_value(1.0).run()
    assert_shows(at, Scenario(case=2, rank_speed={5: 0.8}))
    assert handles(at) == (5, 0.8)
    at.select_slider(key="slow_speed").set_value(1.0).run()
    assert_shows(at, Scenario(case=2))
    assert handles(at) == (None, 1.0)


def test_the_handles_pass_over_a_slow_gpu_that_is_not_there(simulate_page: Open) -> None:
    at = unfold(simulate_page(), "Imperfections")
    at.text_input(key="rank_speed").set_value("99=0.5, 1=0.5").run()
    assert handles(at) == (1, 0.5)
    at.select_slider(key="slow_speed").set_value(0.3).run()
    assert handles(at) == (1, 0.3)
    assert any("ranks go from 0 to 7" in error.value for error in at.error)


@pytest.mark.parametrize("rank", [8.0, -1.0, 1.5])
def test_a_slow_gpu_by_a_wrong_number_is_refused(simulate_page: Open, rank: float) -> None:
    at = simulate_page(rank_speed="1=0.5")
    at.number_input(key="slow_rank").set_value(rank).run()
    (sentence,) = {error.value for error in at.error}  # in the folded group, and below it
    assert f"{rank:g}: must be a whole number from 0 to 7" in sentence
    assert handles(at) == (1, 0.5)
    at.number_input(key="slow_rank").set_value(2).run()
    assert_shows(at, Scenario(case=2, rank_speed={2: 0.5}))


def test_a_speed_that_is_no_number_does_not_stay(simulate_page: Open) -> None:
    at = simulate_page(rank_speed="0=nan", gpus="4")
    assert "rank\\_speed 0=nan: must be rank=speed" in at.warning[0].value
    assert_shows(at, Scenario(case=2, gpus=4))
    unfold(at, "Imperfections")
    at.text_input(key="rank_speed").set_value("0=nan").run()
    assert "Slow GPUs 0=nan: must be rank=speed" in at.sidebar.error[0].value
    assert not at.exception
    at.text_input(key="rank_speed").set_value("0=0.5").run()
    assert_shows(at, Scenario(case=2, gpus=4, rank_speed={0: 0.5}))


WRONG: list[tuple[str, float, str]] = [
    ("gpus", 0.0, "GPUs 0: must be a whole number from 1 to 1,048,576"),
    ("gpus", 1.5, "GPUs 1.5: must be a whole number from 1 to 1,048,576"),
    ("bandwidth_gb_per_s", 0.0, "Remote memory 0: must be a number from 0.000001 to 1,000,000,000"),
    ("latency_us", -1.0, "Link latency -1: must be a number from 0 to 1,000,000,000"),
    ("accumulate", 2.5, "Batches per step 2.5: must be a whole number from 1 to 4,096"),
    ("batch_size_sim", -8.0, "Batch -8: must be a whole number from 1 to 1,073,741,824"),
    ("memory_rank", 8.0, "GPU 8: must be a whole number from 0 to 7"),
    ("memory_rank", 0.5, "GPU 0.5: must be a whole number from 0 to 7"),
]


@pytest.mark.parametrize(("key", "value", "sentence"), WRONG)
def test_a_wrong_number_is_refused_beside_its_field(
    simulate_page: Open, key: str, value: float, sentence: str
) -> None:
    at = unfold(simulate_page(tab="Memory", memory_rank="3"))
    before = at.number_input(key=key).value
    at.number_input(key=key).set_value(value).run()
    (error,) = at.error
    assert error.value.replace("\\", "").startswith(sentence)
    assert at.number_input(key=key).value == before
    assert command(at) == command_line(portable_scenario(Scenario(case=2)))
    at.number_input(key=key).set_value(2).run()
    assert not at.error
    assert at.number_input(key=key).value == 2


def test_a_link_to_a_gpu_that_is_not_there_is_said(simulate_page: Open) -> None:
    at = simulate_page(memory_rank="99", first_rank="8", tab="Memory")
    (warning,) = at.warning
    assert "memory\\_rank 99: GPUs go from 0 to 7." in warning.value
    assert "first\\_rank 8: GPUs go from 0 to 7." in warning.value
    assert at.number_input(key="memory_rank").value == 0


def test_a_link_to_more_gpus_than_are_drawn_from_there_is_said(simulate_page: Open) -> None:
    at = simulate_page(gpus="64", window=["0", "1"], all_ranks="true", first_rank="60")
    assert "First GPU drawn 60: must be a whole number from 0 to 48" in at.error[0].value
    assert drawn(at)[0] == {str(rank) for rank in range(16)}
    at.number_input(key="first_rank").set_value(48).run()
    assert not at.error
    assert drawn(at)[0] == {str(rank) for rank in range(48, 64)}


@pytest.mark.parametrize("key", ["gpus", "jitter"])
def test_a_wrong_number_that_is_typed_is_no_links_fault(simulate_page: Open, key: str) -> None:
    at = unfold(simulate_page())
    at.query_params[key] = "-1"  # as a browser has it when a person types it
    at.number_input(key=key).set_value(-1.0).run()
    assert not at.warning
    (error,) = at.error
    assert "-1: must be a " in error.value


def test_what_a_link_said_wrongly_about_the_view_goes_with_its_cause(simulate_page: Open) -> None:
    at = simulate_page(tab="Memory", memory_rank="99")
    assert at.warning
    at.query_params["memory_rank"] = "3"
    at.number_input(key="memory_rank").set_value(3.0).run()
    assert not at.warning

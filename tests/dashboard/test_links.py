from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from streamlit import config
from streamlit.testing.v1 import AppTest

from dashboard.address import door_address
from dashboard.examples import EXAMPLES, FIRST
from dashboard.links import (
    Parameters,
    parameters_of,
    query,
    read_link,
    scenario_of,
    shipped_traces,
    values_of,
)
from dashboard.network_settings import SETTINGS as NETWORK
from dashboard.settings import SETTINGS, Setting
from dashboard.train_settings import SETTINGS as TRAIN
from triosim import Scenario
from triosim.scenario import SAMPLE_TRACES

APP = Path(__file__).parents[2] / "app.py"

TRACES = shipped_traces()
SCENARIOS = [
    Scenario(case=2),
    Scenario(case=0, gpus=1),
    Scenario(case=1, gpus=16384, ptp_bandwidth_gb_per_s=123.456, latency_us=2.5, accumulate=3),
    Scenario(case=2, bucket_mb=0.5, rank_speed={3: 0.5, 1: 0.25}, fold=False, resident=True),
    Scenario(case=3, ptp_convention="link", trace_dir=str(SAMPLE_TRACES / "mlp"), capacity_log2=33),
    Scenario(case=4, gpus=4, batch_size=4, batch_size_sim=32, micro_batch_size=5, schedule="1f1b"),
    Scenario(case=4, gpus=4, interconnect="optical", stage_cut="count", hop_latency_ns=1e-3),
    Scenario(case=1, gpus=12, interconnect="optical", mesh_rows=3, mesh_cols=4),
    Scenario(case=2, gpus=8, interconnect="optical", optical_gb_per_s=1e9, circuit_setup_ms=0.1),
    Scenario(case=2, gpus=12, interconnect="optical", wavelengths=3, circuit_teardown_ms=0.5),
    Scenario(case=2, gpus=16, topology="seminar-h100", algorithm="tree", protocol=False),
    Scenario(case=3, gpus=32, topology="leaf-spine:16x2", latency_us=3, overlap_slowdown=0),
    Scenario(case=1, dead_links=("3-4", "0-1=0.5"), jitter=0.05, seed=9),
    Scenario(case=4, gpus=4, topology="dgx-h100", dead_links=("NVSwitch 0-fabric 0:3",)),
    Scenario(case=2, rank_speed={1: 0.5}, slow_every=10, overlap_slowdown=0.25),
    *(example.scenario for example in EXAMPLES),
]


def rejected(**parameters: str | list[str]) -> list[str]:
    raw = {k: v if isinstance(v, list) else [v] for k, v in parameters.items()}
    return list(read_link(raw, TRACES).rejected)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=query)
def test_a_link_gives_the_same_scenario(scenario: Scenario) -> None:
    link = read_link(parse_qs(query(scenario)), TRACES)
    assert link.rejected == []
    again = scenario_of(link.values)
    assert again.mesh == scenario.mesh
    assert values_of(again) == values_of(scenario)
    assert parameters_of(link.values) == parameters_of(values_of(scenario))


def test_a_whole_number_is_read_as_streamlit_writes_it() -> None:
    link = read_link({"v": ["1"], "accumulate": ["4.0"], "bucket_mb": ["1.0"]}, TRACES)
    assert link.rejected == []
    assert parameters_of(link.values) == {"v": "1", "accumulate": "4", "bucket_mb": "1"}


def test_an_address_says_its_version_and_only_what_differs_from_the_defaults() -> None:
    assert query(Scenario(case=2)) == "v=1"
    assert parameters_of(values_of(FIRST)) == {
        "v": "1",
        "gpus": "4",
        "ptp_bandwidth_gb_per_s": "25",
    }


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"case": "9"}, "case 9: must be a whole number from 0 to 4."),
        ({"case": "2.5"}, "case 2.5: must be a whole number from 0 to 4."),
        ({"gpus": "abc"}, "gpus abc: must be a whole number from 1 to 1,048,576."),
        ({"gpus": "0"}, "gpus 0: must be a whole number from 1 to 1,048,576."),
        ({"gpus": ""}, "gpus (empty): must be a whole number from 1 to 1,048,576."),
        ({"gpus": ["4", "8"]}, "gpus 4 and 8: a setting has one value."),
        ({"latency_us": "nan"}, "latency_us nan: must be a number from 0 to 1,000,000,000."),
        ({"latency_us": "1e999"}, "latency_us 1e999: must be a number from 0 to 1,000,000,000."),
        (
            {"bandwidth_gb_per_s": "-4"},
            "bandwidth_gb_per_s -4: must be a number from 0.000001 to 1,000,000,000.",
        ),
        ({"trace": "../x"}, f"trace ../x: must be {TRACES[0]} or"),
        ({"interconnect": "laser"}, "interconnect laser: must be electrical or optical."),
        ({"resident": "yes"}, "resident yes: must be true or false."),
        ({"colour": "red"}, "colour: this page has no such setting."),
        ({"tab": "Money"}, "tab Money: must be Timeline or"),
        ({"window": "5"}, "window 5: must be two numbers from 0 to 100"),
        ({"window": ["9", "3"]}, "window 9 and 3: must be two numbers"),
        ({"memory_rank": "-1"}, "memory_rank -1: must be the number of a GPU"),
        ({"memory_rank": "8"}, "memory_rank 8: GPUs go from 0 to 7."),
        ({"first_rank": "999", "gpus": "1"}, "first_rank 999: there is only GPU 0."),
        ({"rank_speed": "fast"}, "rank_speed fast: must be rank=speed, as in 3=0.5."),
        ({"rank_speed": "0=nan"}, "rank_speed 0=nan: must be rank=speed, as in 3=0.5."),
        ({"rank_speed": "8=0.5"}, "rank_speed 8: ranks go from 0 to 7."),
        ({"micro_batch_size": "2"}, "micro_batch_size 2: only case 4 has micro-batches, so it is"),
        ({"mesh_rows": "2"}, "mesh_rows 2: it belongs to the optical interconnect"),
        ({"topology": "spaghetti"}, "topology spaghetti: must be one of ring, switch,"),
        ({"topology": "/etc/machines.toml"}, "topology /etc/machines.toml: must be one of ring,"),
        ({"topology": "torus:0x8"}, "topology torus:0x8"),
        ({"topology": "hybrid-cube-mesh", "gpus": "16"}, "topology "),
        ({"topology": "torus", "case": "0"}, "topology torus: it belongs to the electrical"),
        ({"topology": "dgx-h100", "latency_us": "3"}, "latency_us 3: it belongs to the electrical"),
        ({"algorithm": "magic"}, "algorithm magic: must be auto or ring or"),
        ({"topology": "fat-tree", "algorithm": "torus"}, "algorithm torus: needs a ring, mesh or"),
        ({"protocol": "false"}, "protocol false: only the links of a machine have measured"),
        ({"dead_links": "3-9"}, "dead_links 3-9: no such link; there are, for example, GPU 0-GPU"),
        ({"dead_links": "3-4=2"}, "dead_links 3-4=2: must be a connection, as in"),
        ({"jitter": "7"}, "jitter 7: must be a number from 0 to 1."),
        ({"seed": "3"}, "seed 3: nothing is random without jitter, so it is not used."),
        ({"slow_every": "3"}, "slow_every 3: no GPU is slow, so it is not used."),
        ({"overlap_slowdown": "-1"}, "overlap_slowdown -1: must be a number from 0 to 10."),
        ({"wavelengths": "2"}, "wavelengths 2: it belongs to the optical interconnect"),
        (
            {"case": "4", "batch_size_sim": "4", "micro_batch_size": "9"},
            "micro_batch_size 9: must be at most the simulated batch, 4.",
        ),
    ],
)
def test_what_is_not_accepted_gets_one_sentence(
    parameters: dict[str, str | list[str]], sentence: str
) -> None:
    sentences = rejected(**parameters)
    assert len(sentences) == 1
    assert sentences[0].startswith(sentence)


def test_a_mesh_that_does_not_hold_the_gpus_names_those_that_do() -> None:
    (sentence,) = rejected(interconnect="optical", gpus="8", mesh_rows="3", mesh_cols="5")
    assert "1 x 8, 2 x 4, 4 x 2, 8 x 1" in sentence


def test_one_wrong_link_leaves_the_others() -> None:
    raw = {"gpus": ["4"], "dead_links": ["0-1=0.5", "2-9", "2-3=x, 2-3"]}
    link = read_link(raw, TRACES)
    assert [sentence.partition(":")[0] for sentence in link.rejected] == [
        "dead_links 2-3=x",
        "dead_links 2-9",
    ]
    assert scenario_of(link.values) == Scenario(case=2, gpus=4, dead_links=("0-1=0.5", "2-3"))


@pytest.mark.parametrize("typed", ["Seminar-H100", " seminar-h100 ", "SEMINAR-H100"])
def test_a_network_may_be_written_with_capitals(typed: str) -> None:
    link = read_link({"topology": [typed]}, TRACES)
    assert link.parameters == {"v": "1", "topology": "seminar-h100"}


def test_columns_alone_give_the_rows() -> None:
    link = read_link({"interconnect": ["optical"], "gpus": ["12"], "mesh_cols": ["4"]}, TRACES)
    assert link.parameters == {"v": "1", "interconnect": "optical", "gpus": "12", "mesh_rows": "3"}
    assert scenario_of(link.values).mesh == (3, 4)


def test_a_link_of_another_version_is_not_used() -> None:
    link = read_link({"v": ["2"], "case": ["4"]}, TRACES)
    assert len(link.rejected) == 1
    assert link.parameters == {"v": "1"}


def test_what_widgets_leave_behind_is_not_the_links_fault() -> None:
    raw = {"v": ["1"], "case": ["3"], "micro_batch_size": ["2"], "rank_speed": ["half typed"]}
    assert read_link(raw, TRACES, own=True).rejected == []
    assert read_link({**raw, "gpus": ["x"]}, TRACES, own=True).rejected != []
    # A field takes any number and says beside itself what is wrong with it.
    typed = {"gpus": ["0"], "jitter": ["7"], "batch_size_sim": ["1.5"], "first_rank": ["-1"]}
    assert read_link(typed, TRACES, own=True).rejected == []
    assert len(read_link(typed, TRACES).rejected) == len(typed)


def visited(at: AppTest, page: str, address: Parameters) -> AppTest:
    """Another page in the same session, at an address."""
    at.query_params.clear()
    for name, text in address.items():
        at.query_params[name] = text
    at.switch_page(page)
    return at.run()


@pytest.mark.parametrize(
    ("page", "settings", "name", "text"),
    [
        ("pages/simulate.py", SETTINGS, "gpus", "3"),
        ("pages/train.py", TRAIN, "tp", "2"),
        ("pages/network.py", NETWORK, "ranks", "32"),
        ("pages/validation.py", None, "source", "torchgpipe"),
        ("pages/traces.py", None, "inspect", "mlp"),
    ],
)
def test_a_version_alone_is_the_way_back_and_a_door_means_its_defaults(
    page: str, settings: Mapping[str, Setting] | None, name: str, text: str
) -> None:
    config.set_option("global.disableWidgetStateDuplicationWarning", True)
    fresh = visited(AppTest.from_file(str(APP), default_timeout=60), page, {"v": "1"})
    assert name not in fresh.query_params
    at = visited(AppTest.from_file(str(APP), default_timeout=60), page, {"v": "1", name: text})
    visited(at, "pages/seminar.py", {})
    visited(at, page, {"v": "1"})
    assert at.query_params[name] in (text, [text])
    if settings is not None:
        visited(at, "pages/seminar.py", {})
        visited(at, page, door_address({"v": "1"}, settings))
        assert name not in at.query_params
        assert not at.warning
        assert at.session_state[name] == settings[name].default

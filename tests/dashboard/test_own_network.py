"""A network in one's own words on the page Simulate."""

from collections.abc import Callable
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.compare_open import door_to
from dashboard.described import EXAMPLE
from dashboard.links import read_link, scenario_of
from dashboard.network_text import read_text, write_toml
from dashboard.settings import DESCRIBED
from triosim import Scenario, simulate
from triosim.figures.text import time_text
from triosim.network.topology.machines import load_machine

Open = Callable[..., AppTest]
DGX = load_machine("dgx-h100").description


@pytest.mark.parametrize("case", ["1", "4"])
def test_it_is_the_network_of_that_name(simulate_page: Open, case: str) -> None:
    described = simulate_page(v="1", case=case, topology=DESCRIBED, own_network=write_toml(DGX))
    # Only a machine with a name slows computing as it was measured.
    named = simulate(Scenario(case=int(case), gpus=8, topology="dgx-h100", overlap_slowdown=0))
    assert described.metric[0].value == time_text(named.total_ms)
    assert not described.error


def test_the_field_begins_with_an_example(simulate_page: Open) -> None:
    at = simulate_page(v="1", topology=DESCRIBED)
    assert at.text_area(key="own_network").value == EXAMPLE
    answer = simulate(Scenario(case=2, gpus=8, topology=read_text(EXAMPLE)))
    assert at.metric[0].value == time_text(answer.total_ms)


def test_no_links_are_left_to_set(simulate_page: Open) -> None:
    at = simulate_page(v="1", topology=DESCRIBED)
    keys = {slider.key for slider in at.select_slider}
    assert "ptp_bandwidth_gb_per_s_slider" not in keys
    assert "gpus_slider" in keys


def test_a_wrong_description_is_said_beside_its_field(simulate_page: Open) -> None:
    at = simulate_page(v="1", topology=DESCRIBED)
    at.text_area(key="own_network").set_value('kind = "moebius"').run()
    [beside] = [error for error in at.sidebar.error if "moebius" in error.value]
    assert beside.value.startswith("Description of the network")
    at.text_area(key="own_network").set_value(EXAMPLE).run()
    assert not at.error


def test_a_link_keeps_a_wrong_description_to_be_put_right(simulate_page: Open) -> None:
    at = simulate_page(v="1", topology=DESCRIBED, own_network='kind = "rin')
    assert at.text_area(key="own_network").value == 'kind = "rin'
    assert not at.metric
    assert any(error.value.startswith("Description of") for error in at.sidebar.error)


def test_its_name_is_read_in_any_letters() -> None:
    link = read_link({"v": ["1"], "topology": ["Own Description"], "own_network": [EXAMPLE]}, ["a"])
    assert not link.rejected
    assert link.values["topology"] == DESCRIBED


def test_another_network_needs_no_description(simulate_page: Open) -> None:
    at = simulate_page(v="1", topology=DESCRIBED, own_network=write_toml(DGX))
    at.selectbox(key="topology").set_value("dgx-h100").run()
    assert not at.text_area
    named = simulate(Scenario(case=2, gpus=8, topology="dgx-h100"))
    assert at.metric[0].value == time_text(named.total_ms)


def test_a_compared_step_opens_with_its_description() -> None:
    scenario = Scenario(case=2, gpus=16, topology=DGX)
    door = door_to(scenario)
    assert door is not None
    page, _, parameters = door
    assert page == "pages/simulate.py"
    link = read_link({name: [str(said)] for name, said in parameters.items()}, ["transformer"])
    assert scenario_of(link.values).topology == DGX


def test_a_description_without_its_network_is_not_used() -> None:
    link = read_link({"v": ["1"], "own_network": [EXAMPLE]}, ["transformer"])
    assert link.values["own_network"] is None
    assert "so it is not used" in link.rejected[0]


def test_the_page_network_has_a_door_to_a_step(network_page: Open) -> None:
    at = network_page(
        v="1",
        net=DESCRIBED,
        toml=write_toml(DGX),
        ranks="16",
        faults="0-NVSwitch 0=0.5",
        show="Description",
    )  # fmt: skip
    [door] = [link for link in at.get("page_link") if link.proto.label == "Simulate a step on it"]
    told = parse_qs(door.proto.query_string)
    link = read_link(told, ["transformer"])
    assert not link.rejected
    scenario = scenario_of(link.values)
    assert (scenario.topology, scenario.gpus) == (DGX, 16)
    assert scenario.faults == {"0-NVSwitch 0": 0.5}

"""Networks other than TrioSim's, and what is not ideal, on the simulation page."""

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.topologies import MAX_CHECKED, connections, read_name
from tests.dashboard.reading import unfold
from triosim import ConfigError, Scenario, simulate
from triosim.figures.text import time_text
from triosim.network.topology.machines import load_machine

Open = Callable[..., AppTest]


def sidebar_text(at: AppTest) -> str:
    return " ".join(caption.value for caption in at.sidebar.caption)


def page_text(at: AppTest) -> str:
    said = (*at.main.caption, *at.main.markdown, *at.main.subheader)
    return " ".join(element.value for element in said).replace("\\", "")


def test_a_machine_says_that_its_own_links_count(simulate_page: Open) -> None:
    at = simulate_page(gpus="16", topology="seminar-h100")
    assert "Its own links count" in sidebar_text(at)
    assert "Its own links count" not in sidebar_text(simulate_page(topology="torus"))
    assert at.subheader[0].value.endswith("16 GPUs on seminar-h100")


def test_what_carried_the_all_reduces_is_said_with_the_reason(simulate_page: Open) -> None:
    at = simulate_page(gpus="16", topology="seminar-h100")
    (used,) = simulate(Scenario(case=2, gpus=16, topology="seminar-h100")).algorithms
    assert f"{used.transfers} all-reduces by {used.algorithm} at the measured" in page_text(at)
    assert f"The cheapest for the largest one: {used.algorithm}, " in page_text(at)
    at.selectbox(key="algorithm").set_value("ring").run()
    assert "all-reduces by ring" in page_text(at)
    assert "cheapest" not in page_text(at)


def test_a_pipelines_transfers_are_counted_once(simulate_page: Open) -> None:
    at = simulate_page(case="4", gpus="4", topology="dgx-h100", micro_batch_size="2")
    scenario = Scenario(case=4, gpus=4, topology="dgx-h100", micro_batch_size=2)
    sends = sum(row.transfers for row in simulate(scenario).communication if "send" in row.kind)
    assert f"{sends} transfers from stage to stage." in page_text(at)


def test_triosims_own_ring_needs_no_words(simulate_page: Open) -> None:
    text = page_text(simulate_page())
    assert "all-reduces by" not in text
    assert "8 GPUs on" not in text


def test_a_name_with_sizes_can_be_typed(simulate_page: Open) -> None:
    at = simulate_page(gpus="16", topology="torus:2x8", algorithm="torus")
    assert at.selectbox(key="topology").value == "torus:2x8"
    want = Scenario(case=2, gpus=16, topology="torus:2x8", algorithm="torus")
    assert at.metric[0].value == time_text(simulate(want).total_ms)


def test_what_is_implied_is_no_entry_of_its_own(simulate_page: Open) -> None:
    at = simulate_page(algorithm="auto")
    assert "ring" not in at.selectbox(key="algorithm").options
    at.selectbox(key="topology").set_value("switch").run()
    assert not at.exception
    assert at.selectbox(key="algorithm").value == ""
    assert "auto" not in at.selectbox(key="algorithm").options


def test_a_connection_is_killed_weakened_and_mended(simulate_page: Open) -> None:
    at = unfold(simulate_page(gpus="4", topology="ring"), "Imperfections")
    for key, value, text in (
        ("bad_link", "2-3", "2-3"),
        ("bad_link_left", 0.5, "2-3=0.5"),
        ("bad_link", "0-1", "2-3=0.5, 0-1"),
        ("bad_link_left", 1.0, "2-3=0.5"),
        ("bad_link", "2-3", "2-3=0.5"),
        ("bad_link_left", 1.0, None),
    ):
        kind = at.selectbox if key == "bad_link" else at.select_slider
        kind(key=key).set_value(value).run()
        assert not at.exception
        assert at.text_input(key="dead_links").value == text


def test_bad_links_of_an_address_set_the_handles(simulate_page: Open) -> None:
    at = simulate_page(gpus="4", dead_links="1-2=0.3")
    assert at.selectbox(key="bad_link").value == "1-2"
    assert at.select_slider(key="bad_link_left").value == 0.3
    assert "Bad links: 1-2 30% left." in page_text(at)


def test_gpus_that_are_cut_off_are_named(simulate_page: Open) -> None:
    at = simulate_page(gpus="4", topology="switch", dead_links="2-switch 0")
    assert not at.exception
    (error,) = at.error
    assert "GPU 2" in error.value
    assert "cut off" in error.value


@pytest.mark.parametrize(
    ("key", "typed", "sentence"),
    [
        ("dead_links", "7-99", "Bad links 7-99: no such link"),
        ("dead_links", "0-1=5", "Bad links 0-1=5: must be a connection"),
    ],
)
def test_a_wrong_link_is_said_beside_its_field(
    simulate_page: Open, key: str, typed: str, sentence: str
) -> None:
    at = unfold(simulate_page(), "Imperfections")
    at.text_input(key=key).set_value(typed).run()
    assert not at.exception
    assert at.sidebar.error[0].value.replace("\\", "").startswith(sentence)


def test_jitter_shows_how_steps_differ(simulate_page: Open) -> None:
    at = simulate_page(jitter="0.05", tab="Where time goes")
    times = simulate(Scenario(case=2, jitter=0.05)).step_times
    assert f"P50 {time_text(times.p50_ms)}, P95 {time_text(times.p95_ms)}" in page_text(at)
    assert len(at.get("plotly_chart")) == 2


def test_slowed_computing_is_in_the_table(simulate_page: Open) -> None:
    at = simulate_page(gpus="16", topology="seminar-h100", tab="Where time goes")
    table = at.dataframe[0].value
    assert (table["slow-down in it (ms)"] > 0).all()
    assert (table["slow-down in it (ms)"] < table["compute (ms)"]).all()
    plain = simulate_page(tab="Where time goes").dataframe[0].value
    assert "slow-down in it (ms)" not in plain


def test_a_machines_assumptions_and_sources_are_listed(simulate_page: Open) -> None:
    at = simulate_page(topology="mi300x", tab="Checks and assumptions")
    machine = load_machine("mi300x")
    for line in (*machine.assumptions, *machine.sources.values()):
        assert line in page_text(at)


def test_the_chosen_link_is_drawn_over_time(simulate_page: Open) -> None:
    at = simulate_page(gpus="16", topology="seminar-h100", tab="Network")
    assert len(at.get("plotly_chart")) == 2
    links = at.selectbox(key="shown_link")
    assert "GPU 0 to NVSwitch 0" in links.options[0]
    links.set_value(links.options[-1]).run()
    assert not at.exception


@pytest.mark.parametrize("name", ["ring.toml", "/etc/passwd", "a.json", "", "dgx-h100:2"])
def test_only_names_are_networks_of_a_link(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_name(name)
    assert caught.value.field == "topology"


def test_connections_are_named_as_the_engine_reads_them() -> None:
    """8 GPUs of each host, 8 NICs from a host to the rack's switch, several links to the spine."""
    names = connections(Scenario(case=2, gpus=16, topology="seminar-h100"))
    assert names[:2] == ("0-NVSwitch 0", "1-NVSwitch 0")
    assert names[16:] == (
        *("NVSwitch 0-top of rack 0", "NVSwitch 0-top of rack 0:0"),
        *("NVSwitch 1-top of rack 0", "NVSwitch 1-top of rack 0:0"),
        *("top of rack 0-spine 0", "top of rack 0-spine 0:0"),
    )
    for name in names:
        Scenario(case=2, gpus=16, topology="seminar-h100", dead_links=(f"{name}=0.5",))
    for name in ("0-NVSwitch 0", "NVSwitch 1-top of rack 0"):
        weak = Scenario(case=2, gpus=16, topology="seminar-h100", dead_links=(f"{name}=0.1",))
        whole = Scenario(case=2, gpus=16, topology="seminar-h100")
        assert simulate(weak).total_ms > simulate(whole).total_ms


def test_connections_follow_the_case() -> None:
    """A ring of four, a chain of four, and nothing where there is nobody or a crowd to list."""
    assert connections(Scenario(case=2, gpus=4)) == ("0-1", "0-3", "1-2", "2-3")
    assert connections(Scenario(case=4, gpus=4)) == ("0-1", "1-2", "2-3")
    assert connections(Scenario(case=2, gpus=1)) == ()
    assert connections(Scenario(case=2, gpus=MAX_CHECKED + 1)) == ()

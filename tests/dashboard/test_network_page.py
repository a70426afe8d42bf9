"""The page Network: its numbers against closed forms, its addresses, and what it refuses."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import triosim as ts
from dashboard.network_groups import Members, groups_of, host_of, read_groups
from dashboard.network_links import read_network
from dashboard.network_optical import break_even
from dashboard.network_overlap import ALONE, TOGETHER, Wish, overlap, rates_over_time, verdict
from dashboard.network_settings import DESCRIBED, PRESET_NAMES, PRESETS, SETTINGS, TABS
from dashboard.network_study import Line, Network, Question, crossovers, study
from dashboard.network_text import read_faults, read_text, write_toml
from dashboard.settings import SETTINGS as SIMULATE
from dashboard.traces_links import NAMES as TRACES
from triosim.errors import ConfigError
from triosim.figures.text import time_text
from triosim.network import closed_forms
from triosim.network.cluster import Cluster
from triosim.network.topology.base import LinkSpec
from triosim.network.topology.describe import GENERIC, describe, machine_names, topology_of
from triosim.network.topology.faults import degrade

LINK = LinkSpec(bytes_per_s=100e9)
Open = Callable[..., AppTest]


def ask(
    name="seminar-h100", ranks=16, *, link=LINK, op="all-reduce", algo="auto", size=1e9, **members
):
    network = Network(description=describe(name, ranks, link), ranks=ranks)
    return study(
        Question(
            network=network,
            operation=op,
            algorithm=algo,
            size_bytes=size,
            members=Members(**members),
        )
    )


def metrics(at: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in at.metric}


def ms(text: str) -> float:
    number, unit = text.split()
    return float(number.replace(",", "")) * {"ns": 1e-6, "\u00b5s": 1e-3, "ms": 1, "s": 1e3}[unit]


def figure(at: AppTest, which: int = 0) -> dict:
    return json.loads(at.get("plotly_chart")[which].proto.spec)


# C1: 14/8 of 1 GB at 100 GB/s, busbw the link's own.
def test_a_ring_of_eight(network_page: Open) -> None:
    at = network_page(net="ring", ranks="8", alpha="0", algo="ring")
    assert not at.exception
    shown = metrics(at)
    assert shown["Time"] == time_text(closed_forms.ring_all_reduce(8, 1e9).time_s(100e9) * 1e3)
    assert shown["algbw"] == "57.1 GB/s"
    assert shown["busbw"] == "100 GB/s"


SHARED_NIC = """
kind = "tiers"
tiers = [
  { name = "NVSwitch", children = 8, link = { gb_per_s = 450 } },
  { name = "fabric", children = 0, link = { gb_per_s = 50 } },
]
"""


# C3: two hosts of 8 H100, a NIC for each GPU, one for all, and a flat ring.
@pytest.mark.parametrize(
    ("parameters", "expected_ms"),
    [
        ({"algo": "hierarchical"}, 6.39),
        ({"algo": "ring"}, 37.5),
        ({"algo": "hierarchical", "net": DESCRIBED, "toml": SHARED_NIC}, 23.9),
    ],
)
def test_two_hosts(network_page: Open, parameters: dict[str, str], expected_ms: float) -> None:
    at = network_page(**parameters)
    assert not at.exception
    assert not at.error
    assert ms(metrics(at)["Time"]) == pytest.approx(expected_ms, rel=0.01)


# C2: below which size an unpipelined tree beats the ring.
@pytest.mark.parametrize(("ranks", "megabytes"), [(8, 0.94), (64, 5.7)])
def test_a_crossover_is_where_the_closed_form_has_it(ranks: int, megabytes: float) -> None:
    found = ask("switch", ranks, link=LinkSpec(bytes_per_s=100e9, latency_s=5e-6))
    lines = {name: found.lines[name] for name in ("ring", "tree")}
    turns = crossovers(lines)
    assert [name for _, name in turns] == ["tree", "ring"]
    assert turns[1][0] / 1e6 == pytest.approx(megabytes, rel=0.01)


def test_crossovers_are_the_lower_envelope() -> None:
    random = np.random.default_rng(7)
    for _ in range(50):
        lines = {
            str(k): Line(latency_s=a, seconds_per_byte=b, steps=1)
            for k, (a, b) in enumerate(random.uniform(1e-6, 1e-3, (6, 2)) * (1.0, 1e-6))
        }
        turns = crossovers(lines)
        for size in np.geomspace(1, 1e9, 200):
            (name,) = [n for s, n in turns if s <= size][-1:]
            best = min(line.time_s(size) for line in lines.values())
            assert lines[name].time_s(size) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("op", ["all-reduce", "all-gather", "all-to-all", "broadcast"])
@pytest.mark.parametrize("name", ["seminar-h100", "torus", "leaf-spine:4x2"])
def test_answers_are_those_of_the_calculator(name: str, op: str) -> None:
    for algorithm in ("auto", "ring"):
        found = ask(name, 16, op=op, algo=algorithm)
        other = ts.collective(
            op, ranks=16, topology=name, link_gb_per_s=100, algorithm=algorithm, size_bytes=1e9
        )
        assert found.algorithm == other.algorithm
        assert found.time_s * 1e3 == pytest.approx(other.time_ms, rel=1e-12)
        assert found.link_bytes == pytest.approx(other.link_bytes)
        assert found.algbw(found.time_s) == pytest.approx(other.algbw_gb_per_s)
        calibrated = None if found.calibrated is None else found.calibrated[1] * 1e3
        assert calibrated == (
            None if other.calibrated_ms is None else pytest.approx(other.calibrated_ms)
        )


@pytest.mark.parametrize("show", TABS)
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"net": "torus", "sides": "4x4"},
        {"op": "all-to-all", "group": "one GPU per host"},
        {"ranks": "1"},
    ],
)
def test_every_tab_opens(network_page: Open, show: str, parameters: dict[str, str]) -> None:
    at = network_page(show=show, **parameters)
    assert not at.exception
    assert not at.error
    assert not at.warning


@pytest.mark.parametrize("preset", PRESETS)
def test_every_example_opens(network_page: Open, preset: str) -> None:
    assert set(PRESETS[preset]) <= {*PRESET_NAMES, "show", "toml"}
    at = network_page(op="reduce", size="3", faults="0-1")
    at.selectbox(key="network_preset").set_value(preset).run()
    assert not at.exception
    assert not at.error
    assert at.selectbox(key="network_preset").value is None
    assert at.selectbox(key="op").value == PRESETS[preset].get("op", "all-reduce")
    assert at.subheader


def test_a_bad_address_gets_sentences_and_the_rest_counts(network_page: Open) -> None:
    at = network_page(
        net="moon", ranks="8", size="-3", algo="tree", op="all-to-all", colour="red", show="Links"
    )
    assert not at.exception
    (warning,) = at.warning
    for sentence in ("net moon: must be", "size \\-3: must be", "colour red: this page has no"):
        assert sentence in warning.value.replace("size -3", "size \\-3")
    assert "algo tree: all-to-all can use" in warning.value
    assert at.number_input(key="ranks").value == 8
    assert "All-to-all of 1 GB, 8 GPUs" in at.subheader[0].value
    at.number_input(key="ranks").set_value(4).run()
    assert not at.warning


def test_links_say_what_is_wrong() -> None:
    assert read_network({"v": ["2"], "ranks": ["8"]}).parameters == {"v": "1"}
    assert read_network({"ranks": ["8", "9"]}).rejected
    assert read_network({"toml": ["x" * 9000]}).rejected
    assert read_network({"siblings": ["maybe"]}).rejected
    assert read_network({"ranks": ["1e3"]}).rejected
    assert not read_network({"algo": ["tree"], "op": ["all-to-all"]}, own=True).rejected
    typed = {"ranks": ["0"], "interval": ["0"], "step": ["1.5"], "toml": ["x" * 9000]}
    assert not read_network(typed, own=True).rejected
    assert len(read_network(typed).rejected) == len(typed)
    assert set(SETTINGS).isdisjoint({*SIMULATE, *TRACES})  # a bound parameter has one widget


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"net": "hybrid-cube-mesh", "ranks": "16"}, "joins at most 8"),
        ({"net": "torus", "sides": "4y4"}, "whole numbers with x between"),
        ({"net": DESCRIBED, "toml": "kind = 'star'"}, "no such kind of topology"),
        ({"net": DESCRIBED, "toml": "kind = "}, "not TOML"),
        ({"net": DESCRIBED, "toml": "{"}, "not JSON"),
        ({"net": DESCRIBED, "toml": "kind = 'ring'"}, "needs links"),
        ({"faults": "0-99"}, "no such link"),
        ({"faults": "0-1=x"}, "share left"),
        ({"group": "listed ranks", "members": "0-20"}, "ranks here are 0 to 15"),
        ({"group": "listed ranks", "members": "0,0"}, "only once"),
        ({"group": "listed ranks", "members": "0,1;2"}, "same size"),
        ({"group": "listed ranks"}, "type ranks"),
        ({"algo": "torus"}, "torus"),
        ({"net": "ring", "faults": "0-1, 7-8"}, "cut off"),
        ({"ranks": "1", "op": "send"}, "joins two"),
    ],
)
def test_what_makes_no_sense_gets_a_sentence(
    network_page: Open, parameters: dict[str, str], sentence: str
) -> None:
    at = network_page(**parameters)
    assert not at.exception
    said = " ".join(error.value for error in at.error).replace("\\", "")
    assert sentence in said
    assert "Traceback" not in said


@pytest.mark.parametrize("key", ["ranks", "interval"])
def test_a_wrong_number_that_is_typed_is_no_links_fault(network_page: Open, key: str) -> None:
    at = network_page(show="Failures")
    at.query_params[key] = "0"  # as a browser has it when a person types it
    at.number_input(key=key).set_value(0.0).run()
    assert not at.warning
    (error,) = at.error
    assert "0: must be a " in error.value
    at.number_input(key=key).set_value(4.0).run()
    assert not at.error
    assert not at.warning


def test_what_a_link_said_wrongly_goes_with_its_cause(network_page: Open) -> None:
    at = network_page(show="Failures", interval="0")
    assert "interval 0: must be" in at.warning[0].value
    at.query_params["interval"] = "5"
    at.number_input(key="interval").set_value(5.0).run()
    assert not at.warning


def test_a_network_that_is_wrong_is_said_once(network_page: Open) -> None:
    """Beside the control and, for when that is out of sight, on top: never both to be seen."""
    at = network_page(net="torus", sides="4y4")
    assert len(at.sidebar.error) == 1
    assert len(at.main.error) == 1
    assert not at.info


@pytest.mark.parametrize(
    ("text", "line"),
    [("kind = 'ring'\nlinks = ", "line 2"), ("a = 1\nb = 2\nc ? 3\n", "line 3"),
     ('{"kind":\n ring}', "line 2"), ("[" * 5000, "")],
)  # fmt: skip
def test_where_a_description_is_wrong(text: str, line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_text(text)
    assert "?" not in str(caught.value.value)
    assert str(caught.value).startswith(f"topology {line}")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[1,2]", "a JSON list: must be an object"),
        (' ["ring"]', "a JSON list: must be an object"),
        ("[" * 100_000, "text: its values are nested too deeply"),
        ('{"a": ' + "[" * 100_000, "text: its values are nested too deeply"),
        ("a = " + "[" * 100_000, "text: its values are nested too deeply"),
        ("[[tiers]]\nname = ", "line 2: not TOML"),
        ("[inside]\nkind = 'ring'", "a description: needs kind"),
    ],
)
def test_a_wrong_description_is_called_what_it_is(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=f"^topology {sentence}"):
        read_text(text)


@pytest.mark.parametrize("name", ["\U0001f600", '\u00e9 "\\', "\u4e2d"])
def test_any_name_makes_valid_toml(name: str) -> None:
    values = {"kind": "graph", "gpus": [name, "b"], "connections": [
        {"between": [name, "b"], "link": {"gb_per_s": 50}}]}  # fmt: skip
    description = read_text(json.dumps(values))
    assert tomllib.loads(write_toml(description))["gpus"] == [name, "b"]
    assert read_text(write_toml(description)) == description


def test_half_a_character_is_refused() -> None:
    with pytest.raises(ConfigError):
        read_text('{"kind": "graph", "gpus": ["\\ud83d", "b"], "connections": []}')


@pytest.mark.parametrize("name", [*GENERIC, *machine_names()])
def test_the_field_of_bad_links_names_one_that_there_is(network_page: Open, name: str) -> None:
    at = network_page(net=name, ranks="8", show="Failures")
    example = at.text_input(key="faults").placeholder.removeprefix("none; ")
    (fault,) = read_faults(example.removesuffix(" is half"))
    assert fault[1] == 0.5
    degrade(topology_of(name, 8, LINK), dict([fault]))  # raises where there is no such link


def test_groups() -> None:
    topology = topology_of("seminar-h100", 16)
    all_ranks, notes = groups_of(Members(), topology, "all-reduce")
    assert all_ranks.tolist() == [list(range(16))]
    assert notes == []
    hosts, _ = groups_of(Members(kind="host"), topology, "all-reduce")
    assert hosts.tolist() == [list(range(8)), list(range(8, 16))]
    rails, _ = groups_of(Members(kind="per-host"), topology, "all-reduce")
    assert rails.tolist() == [[i, i + 8] for i in range(8)]
    alone, _ = groups_of(Members(kind="per-host", siblings=False), topology, "all-reduce")
    assert alone.tolist() == [[0, 8]]
    pair, notes = groups_of(Members(), topology, "send")
    assert pair.tolist() == [[0, 15]]
    assert "GPU 0 to GPU 15" in notes[0]


def test_an_unfilled_host_is_left_out_and_a_network_without_hosts_says_so() -> None:
    groups, notes = groups_of(Members(kind="host"), topology_of("seminar-h100", 12), "all-reduce")
    assert groups.tolist() == [list(range(8))]
    assert "Only full hosts" in notes[0]
    assert host_of(topology_of("ring", 12, LINK))[1] is False
    _, notes = groups_of(Members(kind="host"), topology_of("ring", 16, LINK), "all-reduce")
    assert "no hosts of its own" in notes[0]


def test_ranks_are_read_as_typed() -> None:
    assert read_groups("0-3; 4, 5,6-7", 8).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert read_groups("0-14:7", 15).tolist() == [[0, 7, 14]]
    for wrong in ("", "a", "3-1", "0-4:0", "1.5", "0-9999999"):
        with pytest.raises(ConfigError):
            read_groups(wrong, 16)


@pytest.mark.parametrize("name", [*GENERIC, *machine_names()])
def test_a_description_reads_back_as_itself(name: str) -> None:
    description = describe(name, 8)
    assert read_text(write_toml(description)) == description
    assert read_text(json.dumps(description.to_dict())) == description


def test_faults_are_shares_of_what_is_left() -> None:
    assert read_faults(" 3-4 , GPU 0-GPU 1=0.5,") == (("3-4", 0.0), ("GPU 0-GPU 1", 0.5))
    assert read_faults("") == ()


def test_a_copy_of_a_machine_can_be_edited(network_page: Open) -> None:
    at = network_page(show="Description")
    at.button[0].click().run()
    assert not at.exception
    assert at.selectbox(key="net").value == DESCRIBED
    written = at.text_area(key="toml").value
    assert "gb_per_s = 450" in written
    before = metrics(network_page())["Time"]
    at = network_page(net=DESCRIBED, toml=written.replace("450", "900"))
    assert ms(metrics(at)["Time"]) < ms(before)
    assert any("Your own numbers" in m.value for m in network_page(
        net="ring", show="Description").markdown)  # fmt: skip


WISHES = [
    (("all-reduce", 1e9, "all"), ("all-to-all", 5e8, "all"), 1e-3),
    (("all-gather", 1e8, "host"), ("all-reduce", 1e8, "per-host"), 0.0),
    (("broadcast", 1e8, "all"), ("reduce-scatter", 2e8, "all"), 5e-4),
    (("all-reduce", 1e6, "all"), ("all-reduce", 1e9, "all"), 1.0),
]


def _wish(operation: str, size: float, kind: str) -> Wish:
    return Wish(operation=operation, size_bytes=size, members=Members(kind=kind))


@pytest.mark.parametrize(("first", "second", "offset_s"), WISHES)
def test_rates_over_time_are_those_of_the_engine(first, second, offset_s) -> None:
    """Integrals are the loads' bytes, and the last rate ends when the engine ends."""
    network = Network(description=describe("seminar-h100", 16), ranks=16)
    wishes = _wish(*first), _wish(*second)
    found = overlap(network, wishes, offset_s)
    topology = network.build()
    cluster = Cluster(topology, protocol=False)
    pending = [
        cluster.collective(
            w.operation, groups_of(w.members, topology, w.operation)[0], w.size_bytes
        )
        for w in wishes
    ]
    links, loads = cluster.settle(pending, first=0)
    steps = rates_over_time(links, loads, (0.0, offset_s))
    for which, load in enumerate(loads):
        last = max(b for _, b, rates in steps if rates[which])
        assert last == pytest.approx(found.span(which, TOGETHER).end_s, rel=1e-9)
        expected: dict[int, float] = {}
        for part in load.parts:
            for link, size in part.bytes_by_link:
                expected[link] = expected.get(link, 0.0) + size
        for link, size in expected.items():
            moved = sum((b - a) * rates[which].get(link, 0.0) for a, b, rates in steps)
            assert moved == pytest.approx(size, rel=1e-9)
    for _, _, rates in steps:
        for link in {*rates[0], *rates[1]}:
            total = rates[0].get(link, 0.0) + rates[1].get(link, 0.0)
            assert total <= links[link].bytes_per_s * (1 + 1e-9)


def test_two_equal_all_reduces_share_a_ring_evenly() -> None:
    """Each alone takes 2 (n-1)/n S/B; together, from the same start, both take twice that."""
    network = Network(description=describe("ring", 2, LINK), ranks=2)
    wish = _wish("all-reduce", 1e9, "all")
    alone = closed_forms.ring_all_reduce(2, 1e9).time_s(100e9)
    found = overlap(network, (wish, wish), 0.0)
    assert found.span(0, ALONE).end_s == pytest.approx(alone)
    assert found.span(1, TOGETHER).end_s == pytest.approx(2 * alone)
    assert "100.0 % longer" in verdict(found)
    late = overlap(network, (wish, wish), alone)
    assert late.span(1, TOGETHER).end_s == pytest.approx(2 * alone)
    assert "neither ends later" in verdict(late)


def test_separate_hosts_share_nothing() -> None:
    network = Network(description=describe("seminar-h100", 16), ranks=16)
    wishes = tuple(
        Wish(operation="all-reduce", size_bytes=1e9, members=Members(kind="list", text=text))
        for text in ("0-7", "8-15")
    )
    assert "share no link" in verdict(overlap(network, wishes, 0.0))


def test_the_break_even_is_found_behind_a_flat_piece() -> None:
    # 2 ms of set-up hide behind computing, then every ms counts.
    assert break_even(lambda s: max(8.0, 6.0 + s), 8.0, 11.0) == pytest.approx(5.0, abs=1e-3)
    assert break_even(lambda s: 12.0 + s, 12.0, 11.0) is None
    assert break_even(lambda s: 8.0, 8.0, 11.0) is None


def test_electrical_against_optical(network_page: Open) -> None:
    """Circuits are set up once, before the only all-reduce: the step is that much longer."""
    at = network_page(show="Electrical or optical", setup="0.5")
    assert not at.exception
    shown = metrics(at)
    optical = next(t for t in figure(at)["data"] if t["meta"] == "optical")
    (text,) = (m.value for m in at.markdown if m.value.startswith("Circuits pay off"))
    even = ms(shown["Break-even set-up"])
    assert time_text(even) in text
    saved = ms(shown["Difference"])
    # 14.4 and 12 ms are shown with three digits.
    assert saved == pytest.approx(even - 0.5, abs=0.01)
    assert optical["name"] == "optical"
    slow = network_page(show="Electrical or optical", optic="10", setup="0")
    assert metrics(slow)["Break-even set-up"] == "none"


def test_goodput_of_a_cluster(network_page: Open) -> None:
    at = network_page(show="Failures", cluster="16384", mtbf="50000")
    assert not at.exception
    shown = metrics(at)
    assert shown["A failure every"] == "3.05 h"  # 50,000 / 16,384
    assert shown["Goodput"].endswith("%")
    at = network_page(show="Failures", cluster="10000000", mtbf="1", restart="600")
    assert "makes no progress" in at.error[0].value


def test_a_large_group_is_stood_for_by_a_small_one(network_page: Open) -> None:
    at = network_page(show="Step by step", ranks="64", net="switch", algo="ring")
    assert not at.exception
    assert any("16 ranks stand for the 64" in caption.value for caption in at.caption)
    at = network_page(show="Step by step", ranks="64", net="switch", algo="ring", players="5")
    assert any("5 ranks stand for the 64" in caption.value for caption in at.caption)


def test_names_in_a_description_are_not_markup(network_page: Open) -> None:
    evil = "<img> **b** $x$"
    text = (
        f'kind = "graph"\ngpus = ["{evil}", "b"]\n[[connections]]\nbetween = ["{evil}", "b"]\n'
        "link = { gb_per_s = 50 }\n"
    )
    at = network_page(net=DESCRIBED, toml=text, ranks="2")
    assert not at.exception
    assert not at.error
    spec = at.get("plotly_chart")[0].proto.spec
    assert "<img" not in spec.replace("\\u003c", "<")
    assert not any("**b**" in m.value for m in (*at.markdown, *at.caption))

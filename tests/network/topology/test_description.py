"""The format of topologies: every kind there and back, every mistake one sentence."""

import copy
import json
import math
import os
import re
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triosim.errors import ConfigError
from triosim.network.topology import plain
from triosim.network.topology.base import LinkSpec
from triosim.network.topology.describe import topology_of
from triosim.network.topology.description import Description
from triosim.network.topology.faults import degrade
from triosim.network.topology.tiered import Tier
from triosim.network.topology.vocabulary import (
    KINDS,
    MAX_CONNECTIONS,
    MAX_PLACES,
    MAX_TIERS,
    NEEDS,
    Connection,
)
from triosim.scenario import Scenario

LINK = {"gb_per_s": 50, "latency_us": 1.5, "efficiency": 0.9, "protocol": "infiniband"}
SLOW = {"gb_per_s": 12.5}
TIERS = [
    {"name": "NVSwitch", "children": 8, "link": {"gb_per_s": 450}, "reduces": True},
    {"name": "leaf", "children": 4, "link": LINK, "links": 8, "per_gpu": True, "rails": True},
    {"name": "spine", "children": 0, "link": SLOW, "links": 16},
]
EXAMPLES = {
    "ring": {"link": LINK},
    "fully-connected": {"link": LINK},
    "switch": {"link": LINK},
    "mesh": {"shape": [2, 8], "link": LINK},
    "torus": {"shape": [4, 4, 2], "links": [LINK, LINK, SLOW]},
    "hybrid-cube-mesh": {"link": LINK},
    "tiers": {"tiers": TIERS},
    "hosts": {
        "gpus_per_host": 8,
        "inside": {"kind": "fully-connected", "link": LINK},
        "tiers": TIERS[1:],
    },
    "dragonfly": {"groups": 9, "routers": 4, "gpus_per_router": 2, "links": [LINK, LINK, SLOW]},
    "graph": {
        "gpus": ["a", "b"],
        "connections": [
            {"between": ["a", "switch"], "link": LINK, "count": 2},
            {"between": ["b", "switch"], "link": SLOW},
        ],
    },
}


def of(kind, **changes):
    return {"kind": kind, **EXAMPLES[kind], **changes}


def test_every_kind_has_an_example():
    assert set(EXAMPLES) == set(KINDS) == set(NEEDS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_reads_back_as_itself(kind):
    description = Description.from_dict(of(kind))
    assert Description.from_dict(description.to_dict()) == description
    assert Description.from_dict(json.loads(json.dumps(description.to_dict()))) == description
    assert len({description, Description.from_dict(of(kind))}) == 1


def test_units_and_fields():
    tiers = Description.from_dict(of("tiers")).tiers
    assert tiers[0] == Tier(
        name="NVSwitch", children=8, link=LinkSpec(bytes_per_s=450e9), reduces=True
    )
    link = LinkSpec(bytes_per_s=50e9, latency_s=1.5e-6, efficiency=0.9, protocol="infiniband")
    assert tiers[1] == Tier(name="leaf", children=4, link=link, links=8, per_gpu=True, rails=True)
    graph = Description.from_dict(of("graph"))
    assert graph.gpus == ("a", "b")
    assert graph.connections[0] == Connection(between=("a", "switch"), link=link, count=2)
    assert Description.from_dict(of("torus")).links[2] == LinkSpec(bytes_per_s=12.5e9)


@given(gb_per_s=st.floats(1e-6, 1e6), latency_us=st.floats(0, 1e9), efficiency=st.floats(1e-3, 1))
def test_every_number_reads_back_as_itself(gb_per_s, latency_us, efficiency):
    link = {"gb_per_s": gb_per_s, "latency_us": latency_us, "efficiency": efficiency}
    description = Description.from_dict({"kind": "ring", "link": link})
    assert Description.from_dict(description.to_dict()) == description


def test_saved_numbers_are_the_ones_that_were_written():
    assert Description.from_dict(of("ring")).to_dict() == of("ring")


def oversubscribed(ratio, **above):
    tiers = [
        {"name": "host", "children": 8, "link": {"gb_per_s": 450}},
        {"name": "leaf", "children": 4, "link": LINK, "links": 8, "per_gpu": True},
        {"name": "spine", "children": 0, "oversubscription": ratio, **above},
    ]
    return Description.from_dict({"kind": "tiers", "tiers": tiers}).tiers[2]


def test_oversubscription_divides_what_comes_from_below():
    # 4 hosts x 8 NICs x 50 GB/s come up to a leaf.
    spine = oversubscribed(1)
    assert (spine.links, spine.link.bytes_per_s) == (32, 50e9)
    spine = oversubscribed(3)  # 10 2/3 links: one as wide
    assert (spine.links, spine.link.bytes_per_s) == (1, pytest.approx(1600e9 / 3))
    spine = oversubscribed(4, links=16)
    assert spine.link.bytes_per_s == pytest.approx(25e9)
    assert (spine.link.efficiency, spine.link.latency_s) == (0.9, 1.5e-6)
    spine = oversubscribed(2, link={"latency_us": 3, "efficiency": 0.8, "protocol": "efa"})
    assert spine.link == LinkSpec(bytes_per_s=50e9, latency_s=3e-6, efficiency=0.8, protocol="efa")


def test_oversubscription_above_rails_counts_one_link_to_each_child():
    tiers = [
        TIERS[0],
        {**TIERS[1], "children": 32},
        {"name": "spine", "children": 4, "oversubscription": 1},
        {"name": "core", "children": 0, "oversubscription": 1},
    ]
    leaf, spine, core = Description.from_dict({"kind": "tiers", "tiers": tiers}).tiers[1:]
    assert leaf.link.bytes_per_s == 50e9
    assert spine.link.bytes_per_s * spine.links == pytest.approx(32 * 50e9)
    # Under a spine switch are 4 units with 8 rails each.
    assert core.link.bytes_per_s * core.links == pytest.approx(4 * 8 * 32 * 50e9)


def with_tier(i, **changes):
    return of("tiers", tiers=[t | changes if k == i else t for k, t in enumerate(TIERS)])


def without(table, key):
    return {name: value for name, value in table.items() if name != key}


def linked(**changes):
    return of("ring", link=LINK | changes)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (None, "topology topology = None: must be a table of keys and values."),
        ({}, 'topology a description: needs kind, as in kind = "ring".'),
        ({"kind": "blob"}, "topology blob: no such kind of topology; known are ring, "),
        ({"kind": ["ring"]}, "no such kind of topology"),
        ({"kind": "ring"}, "topology ring: needs links, as in link = { gb_per_s = 50 }."),
        ({"kind": "torus", "link": LINK}, "topology torus: needs shape, as in shape = [4, 8]."),
        (of("ring", color="red"), "topology ring: color: no such key; known are kind, links, link"),
        (of("ring", links=[LINK]), "topology ring: has either link (one for all) or links."),
        (of("torus", links=[LINK, LINK]), "topology torus: 2 links: needs one for all or 3."),
        (of("torus", links=[]), "topology links = []: must be a list of at least one entry."),
        (linked(gb_per_s=0), "topology link.gb_per_s = 0: must be a number from 1e-06 to 1e+09."),
        (linked(gb_per_s=-1), "link.gb_per_s = -1: must be a number from 1e-06"),
        (linked(gb_per_s=math.nan), "link.gb_per_s = nan: must be a number from 1e-06"),
        (linked(gb_per_s=math.inf), "link.gb_per_s = inf: must be a number from 1e-06"),
        (linked(gb_per_s="50"), "link.gb_per_s = 50: must be a number from 1e-06"),
        (linked(gb_per_s=True), "link.gb_per_s = True: must be a number from 1e-06"),
        (linked(latency_us=-1), "link.latency_us = -1: must be a number from 0 to"),
        (linked(latency_us=math.nan), "link.latency_us = nan: must be a number from 0 to"),
        (linked(gb_per_s=1e-300), "link.gb_per_s = 1e-300: must be a number from 1e-06"),
        (linked(efficiency=1e-300), "link.efficiency = 1e-300: must be a number from 1e-06 to 1."),
        (linked(efficiency=0), "link.efficiency = 0: must be a number from 1e-06 to 1."),
        (linked(efficiency=1.1), "link.efficiency = 1.1: must be a number from 1e-06 to 1."),
        (linked(protocol="morse"), "topology link.protocol = morse: no such protocol; known are"),
        (linked(protocol=7), "topology link.protocol = 7: must be a text."),
        (linked(gbps=7), "topology link: gbps: no such key; known are gb_per_s"),
        (of("ring", link=50), "topology link = 50: must be a table of keys and values."),
        (of("ring", link=without(LINK, "gb_per_s")), "link: needs gb_per_s, as in gb_per_s = 50."),
        (of("torus", shape=[4, 0, 2]), "topology shape[1] = 0: must be a whole number from 1 to"),
        (of("torus", shape=[4, 2.0, 2]), "topology shape[1] = 2.0: must be a whole number"),
        (of("torus", shape="4x4"), "topology shape = 4x4: must be a list of at least one entry."),
        (of("mesh", shape=[1024, 4096]), "4,194,304 places for GPUs: must be at most 2,097,152."),
        (of("mesh", shape=[1] * 7), "topology 7 dimensions: must be at most 6."),
        (of("dragonfly", groups=2**20), "8,388,608 places for GPUs: must be at most 2,097,152."),
        (of("dragonfly", routers=10**30), "must be a whole number from 1 to 1,048,576."),
        (of("dragonfly", routers=None), "routers = None: must be a whole number from 1 to"),
        (of("hosts", gpus_per_host=0), "gpus_per_host = 0: must be a whole number from 1 to"),
        (of("hosts", inside={"kind": "blob"}), "topology blob: no such kind"),
        (of("hosts", inside=8), "topology inside = 8: must be a table"),
        (of("tiers", tiers=TIERS[0]), "must be a list of at least one entry."),
        (of("tiers", tiers=[8]), "topology tiers[0] = 8: must be a table of keys and values."),
        (with_tier(1, children=0), "topology tiers[1].children = 0: 0 (all there are) is for the"),
        (with_tier(1, children=-8), "tiers[1].children = -8: must be a whole number from 0 to"),
        (with_tier(1, children=2**21), "tiers[1].children = 2097152: must be a whole number"),
        (with_tier(1, links=0), "topology tiers[1].links = 0: must be a whole number from 1 to"),
        (with_tier(1, rails="yes"), "topology tiers[1].rails = yes: must be true or false."),
        (with_tier(1, name=" "), "topology tiers[1].name =  : must be a text."),
        (with_tier(1, speed=5), "topology tiers[1]: speed: no such key; known are name, children"),
        (
            of("tiers", tiers=[without(TIERS[0], "children")]),
            "topology tiers[0]: needs children, as in children = 8.",
        ),
        (
            of("tiers", tiers=[without(TIERS[0], "link")]),
            "topology tiers[0]: needs link, as in link = { gb_per_s = 50 }, or oversubscription.",
        ),
        (
            of("tiers", tiers=[without(TIERS[0], "link") | {"oversubscription": 2}]),
            "topology tiers[0].oversubscription: the innermost tier has no switches below it.",
        ),
        (
            with_tier(2, oversubscription=2),
            "topology tiers[2].link: gb_per_s: no such key; known are latency_us",
        ),
        (
            of("tiers", tiers=[*TIERS[:2], {"name": "s", "children": 0, "oversubscription": 0}]),
            "topology tiers[2].oversubscription = 0: must be a number above 0",
        ),
        (of("graph", gpus=["a", "a"]), "topology gpus: a: every GPU needs a name of its own."),
        (of("graph", gpus=["a", 1]), "topology gpus[1] = 1: must be a text."),
        (
            of("graph", connections=[{"between": ["a", "a"], "link": LINK}]),
            "topology connections[0].between = a: must name two nodes.",
        ),
        (
            of("graph", connections=[{"between": ["a", "b", "c"], "link": LINK}]),
            "must name two nodes.",
        ),
        (
            of("graph", connections=[{"between": ["a", "b"]}]),
            "topology connections[0]: needs link, as in link = { gb_per_s = 50 }.",
        ),
        (
            of("graph", connections=[{"between": ["a", "b"], "link": LINK, "count": 0}]),
            "topology connections[0].count = 0: must be a whole number from 1 to",
        ),
    ],
    ids=str,
)
def test_each_mistake_is_one_sentence(values, sentence):
    with pytest.raises(ConfigError) as caught:
        Description.from_dict(values)
    message = str(caught.value)
    assert sentence in message
    assert caught.value.field == "topology"
    assert message.endswith(".")
    assert "\n" not in message


@pytest.mark.parametrize("odd", ["a, b", "a=b"])
def test_names_that_no_list_of_bad_links_can_hold_are_refused(odd):
    link = {"gb_per_s": 50}
    for values in (
        of("tiers", tiers=[{"name": odd, "children": 0, "link": link}]),
        of("graph", gpus=[odd, "b"], connections=[{"between": [odd, "b"], "link": link}]),
        of("graph", connections=[{"between": ["a", odd], "link": link}]),
    ):
        with pytest.raises(ConfigError, match=f" = {odd}: must not hold , or =, which lists"):
            Description.from_dict(values)


@pytest.mark.parametrize("odd", ["a - b", "a:0", "a 'b' \"c\"", " leaf ", "\u4e2d", "3-4"])
def test_every_other_name_can_be_a_bad_link(odd):
    link = {"gb_per_s": 50}
    described = Description.from_dict(
        of("tiers", tiers=[{"name": odd, "children": 2, "link": link},
                           {"name": "spine", "children": 0, "link": link}])
    )  # fmt: skip
    whole = topology_of(described, 4)
    ends = zip(*(side.tolist() for side in whole.ends()), strict=True)
    names = {f"{whole.node_name(one)}-{whole.node_name(two)}" for one, two in ends if one < two}
    assert len(names) == 6  # four GPUs and two switches have a way up each
    for name in names:
        (fault,) = Scenario(dead_links=(f"{name}=0.5",)).faults.items()
        halved = degrade(whole, dict([fault])).capacity_bytes_per_s / whole.capacity_bytes_per_s
        assert sorted(halved) == [0.5] * 2 + [1.0] * 10


ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just([]),
    st.just({}), st.just([[]]), st.just([{}]), st.just({"kind": "ring"}), st.just(10**5000),
)  # fmt: skip


def places(values):
    """Every way to a value in nested lists and tables."""
    inner = values.items() if isinstance(values, dict) else enumerate(values)
    for key, value in inner:
        yield (key,)
        if isinstance(value, (dict, list)):
            yield from ((key, *rest) for rest in places(value))


@given(st.data())
def test_whatever_stands_there_is_read_or_refused(data):
    values = copy.deepcopy(of(data.draw(st.sampled_from(sorted(KINDS)))))
    *way, last = data.draw(st.sampled_from(sorted(places(values), key=str)))
    at = values
    for key in way:
        at = at[key]
    at[last] = data.draw(ODD)
    try:
        description = Description.from_dict(values)
    except ConfigError as refusal:
        sentence = str(refusal)
    else:
        sentence = "topology."
        assert Description.from_dict(description.to_dict()) == description
    assert re.fullmatch(r"topology.*\.", sentence)


def test_values_made_in_python_are_checked_alike():
    link = LinkSpec(bytes_per_s=0.0)
    with pytest.raises(ConfigError, match=r"gb_per_s = 0\.0: must be a number from 1e-06"):
        Description(kind="ring", links=(link,))
    good = LinkSpec(bytes_per_s=1e9)
    with pytest.raises(ConfigError, match="ring: shape: a ring has no shape"):
        Description(kind="ring", links=(good,), shape=(4,))
    with pytest.raises(ConfigError, match="mesh: needs shape"):
        Description(kind="mesh", links=(good,))
    with pytest.raises(ConfigError, match="latency_us = nan"):
        Description(kind="ring", links=(LinkSpec(bytes_per_s=1e9, latency_s=math.nan),))
    inner = Tier(name="leaf", children=0, link=good)
    with pytest.raises(ConfigError, match=r"tiers\[0\].children = 0: 0 \(all there are\)"):
        Description(kind="tiers", tiers=(inner, inner))
    gpus = tuple(map(str, range(MAX_PLACES + 1)))
    joined = Connection(between=("0", "1"), link=good)
    with pytest.raises(ConfigError, match="2,097,153 places for GPUs: must be at most 2,097,152"):
        Description(kind="graph", gpus=gpus, connections=(joined,))


TOML = """
kind = "hosts"
gpus_per_host = 8
[inside]
kind = "fully-connected"
link = { gb_per_s = 50, latency_us = 1.5, efficiency = 0.9, protocol = "infiniband" }
[[tiers]]
name = "leaf"
children = 4
links = 8
per_gpu = true
rails = true
link = { gb_per_s = 50, latency_us = 1.5, efficiency = 0.9, protocol = "infiniband" }
[[tiers]]
name = "spine"
children = 0
links = 16
link = { gb_per_s = 12.5 }
"""


def test_toml_json_and_python_are_the_same(tmp_path):
    (tmp_path / "t.toml").write_text(TOML, encoding="utf-8")
    (tmp_path / "t.JSON").write_text(json.dumps(of("hosts")), encoding="utf-8")
    expected = Description.from_dict(of("hosts"))
    assert Description.from_file(tmp_path / "t.toml") == expected
    assert Description.from_file(str(tmp_path / "t.JSON")) == expected


def test_the_example_of_the_format_reads(tmp_path):
    example = textwrap.dedent(plain.__doc__.split(":\n\n")[1])
    (tmp_path / "example.toml").write_text(example, encoding="utf-8")
    host, leaf, spine = Description.from_file(tmp_path / "example.toml").tiers
    assert (host.reduces, leaf.per_gpu) == (True, True)
    assert spine.links * spine.link.bytes_per_s == pytest.approx(4 * 8 * 50e9 / 2)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("t.toml", b"kind = 'ring'\nlink = {\n", "t.toml: not a TOML file .*line 2"),
        ("t.json", b'{"kind": "ring",\n oops}', r"t.json: not a JSON file .*line 2"),
        ("t.json", b'["ring"]', "t.json: must hold a JSON object"),
        ("t.json", b"[" * 100_000, "t.json: its values are nested too deeply"),
        ("t.toml", b"\xff\xfe\x00", "t.toml: must be a readable text file"),
        ("t.json", b'{"kind": "ring", "link": {"gb_per_s": NaN}}', "gb_per_s = nan: must be"),
    ],
)
def test_files_that_are_none_are_named(tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match=sentence) as caught:
        Description.from_file(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(ConfigError, match="No such file or directory"):
        Description.from_file(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="Is a directory"):
        Description.from_file(tmp_path)
    with pytest.raises(ConfigError, match="must be a readable text file"):
        Description.from_file("a\0b.toml")


def test_only_regular_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    for path in (tmp_path / "pipe.toml", "/dev/zero"):
        with pytest.raises(ConfigError, match="must be a regular file"):
            Description.from_file(path)


def test_every_mistake_names_the_file(tmp_path):
    file = tmp_path / "mine.json"
    for values in ({}, {"kind": "ring"}, of("ring", link={"gb_per_s": -1}), of("ring", shape=[1])):
        file.write_text(json.dumps(values), encoding="utf-8")
        with pytest.raises(ConfigError) as alone:
            Description.from_dict(values)
        with pytest.raises(ConfigError) as caught:
            Description.from_file(file)
        assert caught.value.value == f"mine.json: {alone.value.value}"
        assert caught.value.problem == alone.value.problem


def test_sizes_have_limits():
    tier = {"name": "switch", "children": 1, "link": SLOW}
    Description.from_dict(of("tiers", tiers=[tier] * MAX_TIERS))
    with pytest.raises(ConfigError, match="17 tiers: must be at most 16"):
        Description.from_dict(of("tiers", tiers=[tier] * (MAX_TIERS + 1)))
    one = Connection(between=("a", "b"), link=LinkSpec(bytes_per_s=1e9))
    with pytest.raises(ConfigError, match="131,073 connections: must be at most 131,072"):
        Description(kind="graph", gpus=("a", "b"), connections=(one,) * (MAX_CONNECTIONS + 1))


def test_names_have_whole_characters():
    with pytest.raises(ConfigError, match=r"gpus\[0\] = .*must be a text without halves"):
        Description.from_dict(of("graph", gpus=["a\ud83d", "b"]))
    Description.from_dict(of("graph", gpus=["a", "\U0001f600\x7f"]))

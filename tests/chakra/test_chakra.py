"""Chakra traces: written for a result, read by another program, replayed here."""

from __future__ import annotations

import json

import pytest

from triosim import Scenario, TrainScenario, replay, simulate, train, write_chakra
from triosim.chakra.schema import Kind, attributes, messages, packed
from triosim.cli import main
from triosim.errors import TraceFormatError

RING = Scenario(
    case=1, gpus=4, resident=True, ptp_convention="link", ptp_bandwidth_gb_per_s=50, latency_us=3
)
PIPELINE = Scenario(case=4, gpus=3, micro_batch_size=4, ptp_bandwidth_gb_per_s=50)
MESH = TrainScenario(model="llama3-8b", layers=2, gpus=8, pp=2, tp=2)


def run(scenario):
    return (train if isinstance(scenario, TrainScenario) else simulate)(scenario)


@pytest.mark.parametrize(
    ("scenario", "network"),
    [
        (RING, {"algorithm": "ring", "link_gb_per_s": 50, "latency_us": 3}),
        (Scenario(case=2, gpus=8, topology="dgx-h100"), {"topology": "dgx-h100"}),
        (PIPELINE, {"topology": "mesh:3", "link_gb_per_s": 50}),
        (MESH, {"topology": "dgx-h100"}),
    ],
    ids=["ring", "ddp on a machine", "pipeline", "train"],
)
def test_the_way_out_and_back_is_the_same_step(scenario, network, tmp_path):
    """The engine folds identical ranks, the replay runs every one: every span must agree."""
    result = run(scenario)
    write_chakra(result, tmp_path)
    again = replay(tmp_path, **network)
    assert again.tasks.total_s == pytest.approx(result.tasks.total_s, rel=1e-9)
    assert all(check.passed for check in again.checks)
    assert again.warnings == ()
    for rank in (0, scenario.gpus - 1):
        ours, theirs = (
            sorted(zip(r.expand([rank]).name, r.expand([rank]).end_ms, strict=True))
            for r in (result, again)
        )
        assert [name for name, _ in ours] == [name for name, _ in theirs]
        assert [t for _, t in ours] == pytest.approx([t for _, t in theirs], rel=1e-9, abs=1e-9)


def test_the_replayed_step_takes_its_closed_form(tmp_path):
    """Computing, then one ring all-reduce on the new links: 2(n-1) (a + S/(n B))."""
    result = simulate(RING)
    write_chakra(result, tmp_path)
    [size] = set(result.timeline.query("phase == 'all-reduce'")["bytes"])
    again = replay(tmp_path, algorithm="ring", link_gb_per_s=20, latency_us=7)
    ring_ms = 2 * 3 * (7e-6 + size / 4 / 20e9) * 1e3
    assert again.total_ms == pytest.approx(result.compute_ms + ring_ms, rel=1e-9)


def test_another_program_reads_the_files(tmp_path):
    """MLCommons' own messages and reader, where `mlc-chakra` is installed."""
    theirs = pytest.importorskip("chakra.schema.protobuf.et_def_pb2", reason="no mlc-chakra")
    files = pytest.importorskip("chakra.src.third_party.utils.protolib")
    result = simulate(PIPELINE)
    write_chakra(result, tmp_path)
    kinds = {
        "forward": "COMP_NODE", "backward": "COMP_NODE", "optimizer": "COMP_NODE",
        "fetch": "MEM_LOAD_NODE", "send": "COMM_SEND_NODE", "recv": "COMM_RECV_NODE",
    }  # fmt: skip
    for rank in range(3):
        with (tmp_path / f"triosim.{rank}.et").open("rb") as file:
            head, nodes = theirs.GlobalMetadata(), []
            assert files.decodeMessage(file, head)
            while files.decodeMessage(file, node := theirs.Node()):
                nodes.append(node)
        assert head.version
        frame = result.expand([rank])
        told = sorted((theirs.NodeType.Name(n.type), n.name) for n in nodes)
        assert told == sorted((kinds[r.phase], r.name) for r in frame.itertuples())
        micros = sum(n.duration_micros for n in nodes)
        lengths = frame["end_ms"] - frame["start_ms"]
        assert micros * 1e-3 == pytest.approx(lengths.sum(), abs=0.5e-3 * len(nodes))
        seen = set()
        for node in nodes:
            assert seen.issuperset([*node.data_deps, *node.ctrl_deps])
            seen.add(node.id)
            values = {a.name: a for a in node.attr}
            assert values["is_cpu_op"].WhichOneof("value") == "bool_val"
            if node.type == theirs.COMM_SEND_NODE:
                assert values["comm_src"].int32_val == rank
                assert abs(values["comm_dst"].int32_val - rank) == 1
                assert values["comm_size"].int64_val > 0


def node(number, kind, *, micros=0, after=(), name="node", **attrs):
    return messages().node(
        id=number, name=name, type=kind, duration_micros=micros, data_deps=after,
        attr=attributes(**attrs),
    )  # fmt: skip


def write(folder, ranks, name="run"):
    for rank, nodes in enumerate(ranks):
        data = packed(messages().metadata(version="0.0.4"), nodes)
        (folder / f"{name}.{rank}.et").write_bytes(data)


def all_reduce(number, size=8_000_000, kind=0, after=()):
    return node(
        number, Kind.COMM_COLL, after=after, comm_type=("int64", kind),
        comm_size=("int64", size), pg_name=("string", "0"),
    )  # fmt: skip


def test_a_trace_by_hand(tmp_path):
    """Two GPUs compute 100 and 300 us, reduce 8 MB over 100 GB/s (80 us), then compute 50 us."""
    cpu = {"is_cpu_op": ("bool", True)}
    write(
        tmp_path,
        [
            [
                node(7, Kind.COMP, micros=10, **cpu),
                node(9, Kind.COMP, micros=micros, after=[7, 4711]),
                all_reduce(12, after=[9]),
                node(11, Kind.COMP, micros=50, after=[12]),  # ids say nothing about the order
            ]
            for micros in (100, 300)
        ],
    )
    result = replay(tmp_path, algorithm="ring", link_gb_per_s=100)
    assert result.total_ms == pytest.approx(0.010 + 0.300 + 0.080 + 0.050)
    assert result.breakdown["compute"] == pytest.approx((0.150 + 0.350) / 2)
    assert result.breakdowns[0].classes_s["imbalance"] == pytest.approx(200e-6)
    assert result.breakdowns[0].classes_s["launch_wait"] == pytest.approx(10e-6)
    assert result.warnings == ("dependencies on nodes that are not there were left out: 2.",)


@pytest.mark.parametrize(
    ("ranks", "problem"),
    [
        ([[all_reduce(1)], [node(1, Kind.COMP)]], None),  # a group of one rank
        ([[all_reduce(1)], [all_reduce(1), all_reduce(2)]], "rank 0 of its group never joins"),
        ([[all_reduce(1)], [all_reduce(1, size=4)]], "meets all-reduce of 4 on rank 1"),
        ([[all_reduce(1, kind=3)]] * 2, "comm_type 3"),
        ([[node(1, Kind.COMM_SEND, comm_dst=("int32", 1))], [node(1, Kind.COMP)]], "no receive"),
        ([[node(1, Kind.COMM_RECV)]] * 2, "does not say with whom"),
        ([[node(1, 4, after=[2]), node(2, 4, after=[1])]], "in a circle"),
        ([[node(1, 4), node(1, 4)]], "ids of others"),
        ([[node(1, 4, duration_s=("double", -1.0))]], "its duration is -1.0"),
        ([[]], "without nodes"),
    ],
)
def test_traces_that_do_not_fit_together(ranks, problem, tmp_path):
    write(tmp_path, ranks)
    if problem is None:
        assert replay(tmp_path).total_ms == 0
        return
    with pytest.raises(TraceFormatError, match=problem):
        replay(tmp_path)


def test_files_that_are_none(tmp_path):
    with pytest.raises(TraceFormatError, match="no such folder"):
        replay(tmp_path / "absent")
    with pytest.raises(TraceFormatError, match=r"called NAME\.RANK\.et"):
        replay(tmp_path)
    (tmp_path / "run.1.et").write_bytes(b"")
    with pytest.raises(TraceFormatError, match="rank 0 is missing"):
        replay(tmp_path)
    for junk in (b"\xff" * 40, b"\x05ab", b"\x1f\x8bno gzip", b"\x80"):
        (tmp_path / "run.0.et").write_bytes(junk)
        with pytest.raises(TraceFormatError, match=r"run\.0\.et"):
            replay(tmp_path)
    (tmp_path / "other.0.et").write_bytes(b"")
    with pytest.raises(TraceFormatError, match="several runs"):
        replay(tmp_path)


@pytest.mark.parametrize("told", ['{"0": [0, 7]}', '{"0": 3}', "[", '{"0": [1]}'])
def test_groups_that_cannot_be(told, tmp_path):
    write(tmp_path, [[all_reduce(1)]] * 2)
    (tmp_path / "comm_groups.json").write_text(told)
    with pytest.raises(TraceFormatError, match=r"comm_groups\.json"):
        replay(tmp_path)


def test_the_commands(capsys, tmp_path):
    folder, out = tmp_path / "traces", tmp_path / "timeline.json.gz"
    assert main(["-case", "2", "-GPUnumber", "2", "--quiet", "--chakra", str(folder)]) == 0
    words = ["replay", str(folder), "--algorithm", "ring", "--bandwidth", "50"]
    assert main([*words, "--json", "-", "--perfetto", str(out)]) == 0
    told = json.loads(capsys.readouterr().out)
    again = replay(folder, algorithm="ring", link_gb_per_s=50)
    assert told["total_ms"] == again.total_ms
    assert "peak_memory_bytes" not in told
    assert out.read_bytes().startswith(b"\x1f\x8b")
    assert main([*words, "--bandwidth", "-1"]) == 2
    assert "--bandwidth" in capsys.readouterr().err

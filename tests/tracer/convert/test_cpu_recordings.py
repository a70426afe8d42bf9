"""Recordings of torch 2.13 on a CPU: small models whose operators are known by hand."""

import gzip
import json
from collections import Counter

import pytest

from tracer.convert import TP_OPS, convert, read_file, save
from tracer.convert.cut import cut
from tracer.convert.join import join
from tracer.convert.names import ACCUMULATE
from tracer.convert.nesting import nest
from tracer.convert.partners import find_partners, is_split
from tracer.convert.steps import find_steps
from triosim import Scenario, simulate
from triosim.trace import read_trace
from triosim.trace.parameters import find_parameters

EVALUATE = "autograd::engine::evaluate_function: "
GRADIENT = EVALUATE + ACCUMULATE
# Linear(16, 32), ReLU, Linear(32, 4), cross entropy
MLP_FORWARD = [
    "aten::linear", "aten::relu", "aten::linear", "aten::cross_entropy_loss", "aten::ones_like",
]  # fmt: skip
MLP_BACKWARD = [
    EVALUATE + "NllLossBackward0", EVALUATE + "LogSoftmaxBackward0",
    EVALUATE + "AddmmBackward0", GRADIENT, EVALUATE + "TBackward0", GRADIENT,
    EVALUATE + "ReluBackward0",
    EVALUATE + "AddmmBackward0", GRADIENT, EVALUATE + "TBackward0", GRADIENT,
]  # fmt: skip
MLP_BYTES = (16 * 32 + 32 + 32 * 4 + 4) * 4
ADAM_SINGLE = [
    "aten::add_", "aten::lerp_", "aten::mul_", "aten::addcmul_", "aten::item", "aten::sqrt",
    "aten::div", "aten::add_", "aten::addcdiv_",
]  # fmt: skip
FUSED = ["aten::_foreach_add_", "aten::_fused_adam_"]
FOREACH = [
    "aten::empty", "aten::to", "aten::lift_fresh", "aten::detach_", "aten::_foreach_add_",
    "aten::_foreach_lerp_", "aten::_foreach_mul_", "aten::_foreach_addcmul_", *["aten::item"] * 8,
    "aten::_foreach_sqrt", "aten::_foreach_div_", "aten::_foreach_add_", "aten::_foreach_addcdiv_",
]  # fmt: skip
# name: forward, backward and optimizer operators, bytes of the parameters, batch, flagged
PAIRS = {
    "mlp_adam_foreach": (MLP_FORWARD, MLP_BACKWARD, FOREACH, MLP_BYTES, 8, 6),
    "mlp_adam_fused": (MLP_FORWARD, MLP_BACKWARD, FUSED, MLP_BYTES, 8, 6),
    "mlp_checkpoint": (MLP_FORWARD, MLP_BACKWARD, ["aten::add_"] * 4, MLP_BYTES, 8, 6),
    "mlp_ddp_rank0": (
        MLP_FORWARD,
        [
            *MLP_BACKWARD, *["aten::as_strided"] * 4,
            *["torch.distributed.ddp.reducer::copy_bucket_to_grad"] * 4,
        ],
        ADAM_SINGLE * 4, MLP_BYTES, 8, 6,
    ),
    "mlp_gradaccum": (
        ["aten::slice", *MLP_FORWARD[:3], "aten::slice", *MLP_FORWARD[3:]] * 2, MLP_BACKWARD * 2,
        ["aten::add_"] * 4, MLP_BYTES, 8, 12,
    ),
    "mlp_autocast_bf16": (
        MLP_FORWARD,
        [
            *MLP_BACKWARD[:2], EVALUATE + "ToCopyBackward0",
            EVALUATE + "AddmmBackward0", EVALUATE + "TBackward0",
            *[EVALUATE + "ToCopyBackward0", GRADIENT] * 2, EVALUATE + "ReluBackward0",
            EVALUATE + "AddmmBackward0", EVALUATE + "TBackward0",
            *[EVALUATE + "ToCopyBackward0", GRADIENT] * 2,
        ],
        ["aten::add_"] * 4, MLP_BYTES, 8, 2 + 2 * (1 + 1 + 2),
    ),
    "cnn_arg": (
        [
            "aten::conv2d", "aten::add_", "aten::batch_norm", "aten::relu", "aten::max_pool2d",
            "aten::conv2d", "aten::relu_", "aten::adaptive_avg_pool2d", "aten::flatten",
            "aten::dropout", "aten::linear", "aten::cross_entropy_loss", "aten::ones_like",
        ],
        [
            *MLP_BACKWARD[:6], EVALUATE + "MulBackward0", EVALUATE + "ViewBackward0",
            EVALUATE + "AdaptiveAvgPool2DBackward0", EVALUATE + "ReluBackward0",
            EVALUATE + "ConvolutionBackward0", GRADIENT,
            EVALUATE + "MaxPool2DWithIndicesBackward0", EVALUATE + "ReluBackward0",
            EVALUATE + "NativeBatchNormBackward0", GRADIENT, GRADIENT,
            EVALUATE + "ConvolutionBackward0", GRADIENT, GRADIENT,
        ],
        ["aten::mul_", "aten::add_", "aten::add_"] * 7, 3962 * 4, 4, 7,
    ),
}  # fmt: skip
NAMES = [*PAIRS, "cnn_manual", "transformer_arg"]
PARAMETER_BYTES = {name: facts[3] for name, facts in PAIRS.items()} | {
    "cnn_manual": 3962 * 4,
    "transformer_arg": 24_000 * 4,
}


@pytest.fixture(scope="session")
def pair(traces):
    def find(name):
        folder = traces / "torch_2_13"
        return folder / f"profiler_{name}.json.gz", folder / f"graph_{name}.json.gz"

    return find


def read_json(path):
    return json.loads(gzip.decompress(path.read_bytes()))


@pytest.fixture(scope="session")
def pieces(pair):
    """The operators of a recording before they become a trace, with their partners."""

    def find(name):
        profiler, graph = (read_file(path) for path in pair(name))
        nest(profiler)
        (step,) = find_steps(profiler)
        nodes = join(step.rows, graph).nodes
        parts = cut(step.rows, step.kernels, nodes)
        find_partners(step.rows, parts, nodes)
        return parts

    return find


@pytest.mark.parametrize("name", PAIRS)
def test_operators(pair, name):
    forward, backward, optimizer, _, batch, flagged = PAIRS[name]
    trace, report = convert(*pair(name))
    by_phase = {
        phase: [op.name for op in trace.operators if op.phase == phase]
        for phase in ("forward", "backward", "optimizer")
    }
    assert by_phase["forward"] == forward
    assert by_phase["backward"] == backward
    assert by_phase["optimizer"] == optimizer
    assert trace.batch_size == batch
    assert report.tensor_parallel == flagged
    assert (trace.meta["device"], trace.meta["gpu"]) == ("cpu", "cpu")


def test_operators_of_a_transformer(pair):
    """Children of the thread and of Optimizer.step, counted in the file itself."""
    profiler, graph = pair("transformer_arg")
    nodes = read_json(graph)["nodes"]
    step = next(n["id"] for n in nodes if n["name"].startswith("Optimizer.step"))
    direct = [n["name"] for n in nodes if n["ctrl_deps"] == 2]
    _, report = convert(profiler, graph)
    backward = sum(name.startswith(EVALUATE) for name in direct)
    assert report.stages == {
        "forward": len(direct) - backward - 2,  # zero_grad and step
        "backward": backward,
        "optimizer": sum(n["ctrl_deps"] == step for n in nodes),
    }
    assert report.batch_size == 2


@pytest.mark.parametrize("name", NAMES)
def test_every_row_has_its_node(pair, name):
    _, report = convert(*pair(name))
    # two operators of the checkpoint end by an exception and are in the profiler file only
    assert report.join_rows - report.joined == (2 if name == "mlp_checkpoint" else 0)
    assert report.join_how == "record function id"


@pytest.mark.parametrize("name", NAMES)
def test_time_is_that_of_the_outermost_rows(pair, name):
    """No row of these files overlaps another but by nesting, so their lengths add up."""
    profiler, _ = pair(name)
    rows = [
        (round(e["ts"] * 1000), round((e["ts"] + e["dur"]) * 1000), e["name"], e["tid"])
        for e in read_json(profiler)["traceEvents"]
        if e["ph"] == "X" and e["cat"] == "cpu_op"
    ]
    total = end = 0
    for start, stop, *_ in sorted(rows, key=lambda row: (row[0], -row[1])):
        if start >= end:
            total += stop - start
            end = stop
    inside = sum(stop - start for start, stop, what, _ in rows if what.startswith("c10d::"))
    trace, report = convert(*pair(name))
    assert report.compute_busy_s == pytest.approx((total - inside) * 1e-9, abs=1e-6)
    assert trace.total_s == pytest.approx(report.compute_busy_s, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_partners_are_those_of_the_arrows(pair, pieces, name):
    """PyTorch draws an arrow from each forward row to its backward row."""
    arrows = {}
    for event in read_json(pair(name)[0])["traceEvents"]:
        if event.get("cat") == "fwdbwd":
            arrows.setdefault(event["id"], {})[event["ph"]] = round(event["ts"] * 1000)
    parts = pieces(name)
    owners = {}
    for row, piece in parts.owner.items():
        owners.setdefault(row.start, piece)
    checked = 0
    for arrow in arrows.values():
        backward, forward = owners[arrow["f"]], owners[arrow["s"]]
        assert backward.stage == "backward"
        assert backward.partner is forward
        checked += 1
    assert checked == len(arrows) > 0
    partnered = sum(piece.partner is not None for piece in parts.operators)
    assert partnered == checked


@pytest.mark.parametrize("name", NAMES)
def test_gradients_have_the_bytes_of_the_parameters(pair, name, tmp_path):
    trace, report = convert(*pair(name))
    passes = 2 if name == "mlp_gradaccum" else 1
    found = [op.inputs[0].bytes for op in trace.operators if op.name == GRADIENT]
    assert sum(found) == passes * PARAMETER_BYTES[name]
    save(trace, report, tmp_path)
    parameters = find_parameters(read_trace(tmp_path))
    assert parameters.bytes == PARAMETER_BYTES[name]
    assert parameters.unresolved == []


@pytest.mark.parametrize("name", NAMES)
def test_the_trace_simulates(pair, name, tmp_path):
    trace, report = convert(*pair(name))
    save(trace, report, tmp_path)
    written = read_trace(tmp_path)
    assert written.warnings == ()
    result = simulate(Scenario(trace_dir=str(tmp_path), gpus=1, resident=True))
    assert result.total_ms == pytest.approx(sum(op.time_s for op in written.operators) * 1e3)


def test_checkpointing_counts_as_backward(pieces):
    """The first layer is run again inside the backward operator that needs it."""
    parts = pieces("mlp_checkpoint")
    inside = [
        piece
        for piece in parts.operators
        if piece.stage == "backward" and any(row.name == "aten::linear" for row in piece.rows)
    ]
    assert [piece.name for piece in inside] == [EVALUATE + "AddmmBackward0"]
    assert sum(piece.name == "aten::linear" for piece in parts.operators) == 2


def test_communication_of_ddp(pair, tmp_path):
    """One bucket of all gradients; the call and gloo's own thread are one communication."""
    trace, report = convert(*pair("mlp_ddp_rank0"))
    (one,) = report.communications
    assert (one.name, one.collective, one.bytes) == ("c10d::allreduce_", "allreduce", MLP_BYTES)
    assert one.duration_us == pytest.approx(8402.011)
    save(trace, report, tmp_path)
    header, line = (tmp_path / "communication.csv").read_text().splitlines()
    assert header == "name,collective,bytes,group,start_us,duration_us"
    assert line.startswith("c10d::allreduce_,allreduce,2704,")
    # the call itself, 1,423.591 us inside the last AccumulateGrad, is no computation
    last = [op for op in trace.operators if op.name == GRADIENT][-1]
    assert last.time_s < 1423e-6
    save(*convert(*pair("mlp_adam_fused")), tmp_path)
    assert not (tmp_path / "communication.csv").exists()


def test_autocast_computes_in_bfloat16(pair):
    trace, _ = convert(*pair("mlp_autocast_bf16"))
    linear = [op for op in trace.operators if op.name == "aten::linear"]
    assert [op.dtype for op in linear] == ["bf16", "bf16"]
    assert linear[0].inputs[1].element_bytes == 4  # the parameter itself stays float32


def test_both_ways_to_start_the_observer_give_the_same_operators(pair):
    one, other = (convert(*pair(name))[0] for name in ("cnn_arg", "cnn_manual"))
    assert [(op.id, op.name, op.phase, op.tensor_parallel) for op in one.operators] == [
        (op.id, op.name, op.phase, op.tensor_parallel) for op in other.operators
    ]


def test_tp_ops_choose_what_is_split(pair, pieces):
    trace, _ = convert(*pair("cnn_arg"), tp_ops=("aten::conv2d",))
    flagged = Counter(op.name for op in trace.operators if op.tensor_parallel)
    assert flagged == {"aten::conv2d": 2, EVALUATE + "ConvolutionBackward0": 2}
    parts = pieces("transformer_arg")
    names = {piece.name for piece in parts.operators if is_split(piece, TP_OPS)}
    assert {"aten::embedding", "aten::linear"} <= names
    assert not any("norm" in name.lower() or "dropout" in name.lower() for name in names)


def test_a_name_with_quotes_is_repaired(pair):
    trace, report = convert(*pair("probe_quote"))
    assert [op.name for op in trace.operators] == ["aten::ones", "aten::add_"]
    assert report.repairs == {"names with unescaped quotes were repaired": 2}


def test_without_the_execution_trace_sizes_remain(pair):
    with_graph, _ = convert(*pair("cnn_arg"))
    trace, report = convert(pair("cnn_arg")[0])
    assert [op.name for op in trace.operators] == [op.name for op in with_graph.operators]
    assert [op.tensor_parallel for op in trace.operators] == [
        op.tensor_parallel for op in with_graph.operators
    ]
    assert any("no execution trace" in text for text in report.warnings)
    first = trace.operators[0]
    assert [t.shape for t in first.inputs] == [t.shape for t in with_graph.operators[0].inputs]
    ids = [t.id for op in trace.operators for t in (*op.inputs, *op.outputs)]
    assert len(ids) == len(set(ids))
    assert trace.batch_size == 4


def test_content_instead_of_paths(pair):
    profiler, graph = pair("mlp_adam_fused")
    from_paths, _ = convert(profiler, graph)
    from_bytes, report = convert(profiler.read_bytes(), gzip.decompress(graph.read_bytes()))
    assert from_bytes.operators == from_paths.operators
    assert report.profiler == "profiler file"

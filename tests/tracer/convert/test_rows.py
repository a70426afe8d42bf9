"""Nesting, steps, joining and cutting on recordings of a few rows."""

import json

import pytest

from tracer.convert import convert, read_file
from tracer.convert.join import join
from tracer.convert.nesting import nest
from tracer.convert.shares import busy, shares, spans, without
from tracer.convert.steps import find_steps
from triosim.errors import TraceFormatError

EVALUATE = "autograd::engine::evaluate_function: "


def read(*events, make):
    profile = read_file(make.profile(*events))
    nest(profile)
    return profile


def times_us(trace):
    return {op.name: round(op.time_s * 1e6, 3) for op in trace.operators}


def test_shares_of_a_union():
    pieces = [(0, 10, 0), (5, 12, 1), (6, 8, 2), (20, 25, 0)]
    assert shares(pieces, 3) == [15, 2, 0]
    assert spans(pieces, 3) == [25, 7, 2]
    assert busy([(0, 10), (5, 12), (20, 25)]) == 17
    assert busy([]) == 0
    assert without(0, 10, [(2, 4), (3, 5), (9, 12)]) == [(0, 2), (5, 9)]


def test_rows_nest_on_their_own_thread_only(make):
    profile = read(
        make.row("outer", 0, 100),
        make.row("other thread", 10, 20, tid=2),
        make.row("inner", 10, 20),
        make.row("after", 100, 5),
        make=make,
    )
    parents = {row.name: row.parent.name if row.parent else None for row in profile.rows}
    assert parents == {"outer": None, "inner": "outer", "after": None, "other thread": None}


def test_a_launch_at_the_first_or_last_instant_belongs_to_the_operator(make):
    profile = read(
        make.row("a", 0, 10), make.row("b", 10, 10), make.kernel(1, 0, 50, 5),
        make.kernel(2, 20, 60, 5), make=make,
    )  # fmt: skip
    assert [k.row.name for k in profile.kernels] == ["a", "b"]


def test_equal_times_are_told_apart_by_their_index(make):
    """In whole microseconds a parent and its only child may look alike."""
    profile = read(
        make.row("child", 5, 0, Ev_Idx=1),
        make.row("parent", 5, 0, Ev_Idx=0),
        make=make,
    )
    assert {r.name: r.parent and r.parent.name for r in profile.rows} == {
        "parent": None,
        "child": "parent",
    }


def test_one_launch_of_many_kernels(make):
    graph_launch, first = make.kernel(1, 5, 50, 10, name="k1")
    graph_launch["name"] = "cudaGraphLaunch"
    second = first | {"name": "k2", "ts": 70}
    trace, report = convert(make.profile(make.row("aten::mm", 0, 20), graph_launch, first, second))
    assert times_us(trace) == {"aten::mm": 20}
    assert trace.operators[0].busy_time_s == pytest.approx(30e-6)
    assert report.file.launches == {"cudaGraphLaunch": 2}


def test_kernels_launched_by_an_annotation_become_an_operator(make):
    trace, report = convert(
        make.profile(make.row("my graph", 0, 20, cat="user_annotation"), make.kernel(1, 5, 50, 10))
    )
    assert times_us(trace) == {"my graph": 10}
    assert report.attributed == 1


def test_a_kernel_without_launch_row_is_placed_by_its_external_id(make):
    ran = make.kernel(1, 5, 50, 10)[1]
    ran["args"] = {"correlation": 77, "External id": 5}
    other = make.kernel(2, 6, 80, 10)
    events = [make.row("aten::mm", 0, 20, External_id=5), ran, other]
    trace, report = convert(make.profile(*events))
    assert times_us(trace) == {"aten::mm": 20}
    assert report.repairs == {"kernels without a launch row were placed by their external id": 1}
    # in older versions the id equals the correlation and names nothing
    ran["args"] = {"correlation": 5, "External id": 5}
    _, report = convert(make.profile(*events))
    assert report.unmatched == {"kernels without a launch row": 1}
    assert report.attributed == 0.5


def test_kernels_from_before_the_recording_do_not_count(make):
    early = make.kernel(9, 0, 10, 500)[1]
    events = make.profile(make.row("aten::mm", 100, 20), make.kernel(1, 105, 150, 10), early)
    _, report = convert(events)
    assert report.attributed == 1
    assert report.unmatched["kernels launched before the recording"] == 1
    assert report.unmatched_s["kernels launched before the recording"] == pytest.approx(500e-6)


@pytest.mark.parametrize(
    ("category", "call"),
    [
        ("cuda_driver", "cuLaunchKernelEx"),
        ("Runtime", "cudaLaunchKernel"),
        ("cuda_runtime", "hipExtLaunchKernel"),
        ("cuda_runtime", "cudaLaunchCooperativeKernel"),
        ("hip_runtime", "hipModuleLaunchKernel"),
    ],
)
def test_launches_are_found_by_correlation_not_by_name(make, category, call):
    launch, ran = make.kernel(1, 5, 50, 10)
    trace, _ = convert(
        make.profile(make.row("aten::mm", 0, 20), launch | {"cat": category, "name": call}, ran)
    )
    assert times_us(trace) == {"aten::mm": 10}


def test_old_category_names(make):
    launch, ran = make.kernel(1, 5, 50, 10)
    events = [make.row("aten::mm", 0, 20, cat="Operator"), launch | {"cat": "Runtime"}]
    trace, _ = convert(make.profile(*events, ran | {"cat": "Kernel"}))
    assert times_us(trace) == {"aten::mm": 10}


def step(make, number, begin, kernels=True):
    """A profiler step of 100 us with one operator."""
    rows = [
        make.row(f"ProfilerStep#{number}", begin, 100, cat="user_annotation"),
        make.row("aten::mm", begin + 10, 20),
    ]
    launch, ran = make.kernel(number, begin + 15, begin + 50, number)
    return [*rows, launch, ran] if kernels else [*rows, launch]


def test_the_last_complete_step_is_taken(make):
    events = make.profile(step(make, 4, 0), step(make, 5, 200), step(make, 6, 400, kernels=False))
    trace, report = convert(events)
    assert (report.step, report.step_label, report.steps) == (5, "ProfilerStep#5", (4, 5, 6))
    assert times_us(trace) == {"aten::mm": 5}
    assert times_us(convert(events, step=4)[0]) == {"aten::mm": 4}
    with pytest.raises(TraceFormatError, match=r"step 6 .* has no kernels"):
        convert(events, step=6)


def iteration(make, begin, i):
    """Forward, zero_grad, backward, optimizer: zero_grad does not begin the step."""
    return [
        make.row("aten::linear", begin, 10),
        make.row("Optimizer.zero_grad#SGD.zero_grad", begin + 20, 5, cat="user_annotation"),
        make.row(EVALUATE + "AddmmBackward0", begin + 30, 10),
        make.row("Optimizer.step#SGD.step", begin + 50, 20, cat="user_annotation"),
        make.row("aten::add_", begin + 55, 10 + i),
    ]


def test_without_profiler_steps_the_optimizer_ends_a_step(make):
    events = make.profile(*(iteration(make, 100 * i, i) for i in range(3)))
    trace, report = convert(events, step=1)
    assert report.steps == (0, 1, 2)
    assert [op.phase for op in trace.operators] == ["forward", "backward", "optimizer"]
    assert times_us(trace)["aten::add_"] == 11


def test_without_an_optimizer_the_loader_begins_a_step(make):
    rows = [
        [
            make.row("enumerate(DataLoader)#X.__next__", at, 5, cat="user_annotation"),
            make.row("aten::mm", at + 10, 10),
        ]
        for at in (0, 100, 200)
    ]
    profile = read(*rows, make=make)
    assert [len(found.rows) for found in find_steps(profile)] == [2, 2, 2]


def test_what_runs_between_backward_and_optimizer(make):
    """Clipping belongs to the optimizer; what follows the optimizer does not."""
    trace, _ = convert(
        make.profile(
            make.row("ProfilerStep#1", 0, 500, cat="user_annotation"),
            make.row("aten::linear", 1, 10),
            make.row(EVALUATE + "AddmmBackward0", 20, 10),
            make.row("aten::_foreach_norm", 40, 10),
            make.row("Optimizer.step#SGD.step", 60, 20, cat="user_annotation"),
            make.row("aten::add_", 65, 10),
            make.row("aten::sum", 90, 10),
        )
    )
    assert [op.phase for op in trace.operators] == [
        "forward", "backward", "optimizer", "optimizer", "forward",
    ]  # fmt: skip


def test_reentrant_checkpointing_is_cut_into_its_operators(make):
    """CheckpointFunctionBackward runs the forward pass and autograd again inside itself."""
    trace, _ = convert(
        make.profile(
            make.row("CheckpointFunction", 0, 15, Sequence_number=1),
            make.row("aten::linear", 1, 10),
            make.row(EVALUATE + "CheckpointFunctionBackward", 20, 60),
            make.row("CheckpointFunctionBackward", 21, 58),
            make.row("aten::linear", 25, 10, Sequence_number=5),
            make.row(EVALUATE + "AddmmBackward0", 40, 10, Sequence_number=5, Fwd_thread_id=1),
            make.row(EVALUATE + "torch::autograd::AccumulateGrad", 60, 10),
        )
    )
    assert [(op.name.rsplit(" ")[-1], op.phase, op.tensor_parallel) for op in trace.operators] == [
        ("aten::linear", "forward", True),
        ("aten::linear", "backward", True),
        ("AddmmBackward0", "backward", True),
        ("torch::autograd::AccumulateGrad", "backward", False),
    ]


def test_compiled_graphs_are_cut_into_their_kernels(make):
    trace, report = convert(
        make.profile(
            make.row("Torch-Compiled Region: 0/0", 0, 100),
            make.row("CompiledFunction", 5, 90),
            make.row("## Call CompiledFxGraph abc ##", 10, 80, cat="user_annotation"),
            make.row("triton_poi_fused_relu_0", 20, 10),
            make.kernel(1, 21, 150, 10),
        )
    )
    assert times_us(trace) == {"triton_poi_fused_relu_0": 10}
    assert any("compiled kernels have names of their own" in text for text in report.warnings)


def test_communication_inside_an_operator_is_cut_out(make):
    trace, report = convert(
        make.profile(
            make.row(EVALUATE + "AddmmBackward0", 0, 100),
            make.row("aten::mm", 5, 20),
            make.kernel(1, 6, 200, 10),
            make.row("c10d::allreduce_", 50, 40),
            make.row(
                "record_param_comms", 55, 30, **{
                    "Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000,
                    "dtype": "BFloat16", "Process Group Name": "dp",
                    "Process Group Ranks": "[0, 1]",
                },
            ),
            make.kernel(2, 60, 220, 30, name="ncclDevKernel_AllReduce_Sum_bf16_RING_LL"),
        )
    )  # fmt: skip
    assert times_us(trace) == {EVALUATE + "AddmmBackward0": 10}
    (one,) = report.communications
    assert (one.collective, one.bytes, one.group) == ("allreduce", 2000, "dp [0, 1]")
    assert (one.start_us, one.duration_us) == (220, 30)
    assert report.attributed == 1


@pytest.mark.parametrize("shift", [0, 1, 3])
def test_joining_by_names_finds_the_rotation(make, shift):
    """Without record functions the sequences of names must agree, but may begin elsewhere."""
    words = ["aten::a", "aten::b", "aten::a", "aten::c"]
    profile = read(*(make.row(w, 10 * i, 5, Ev_Idx=i) for i, w in enumerate(words)), make=make)
    turned = words[shift:] + words[:shift]
    nodes = [make.node(i + 3, w, 2, rf_id=0) for i, w in enumerate(turned)]
    joined = join(profile.rows, read_file(make.graph(*nodes)))
    assert joined.share == 1
    assert [joined.nodes[row].name for row in profile.rows] == words
    assert [joined.nodes[row].id for row in profile.rows] == [3 + (i - shift) % 4 for i in range(4)]
    assert joined.how == ("order of names, rotated" if shift else "order of names")


def test_joining_counts_names_where_the_sequences_differ(make):
    profile = read(*(make.row(f"aten::{w}", 10 * i, 5) for i, w in enumerate("abac")), make=make)
    nodes = [make.node(i + 3, f"aten::{w}", 2, rf_id=0) for i, w in enumerate("abxa")]
    joined = join(profile.rows, read_file(make.graph(*nodes)))
    assert joined.how == "count of names"
    assert [joined.nodes[r].id if r in joined.nodes else 0 for r in profile.rows] == [3, 4, 6, 0]


def test_record_function_ids_count_only_where_the_names_agree(make):
    profile = read(
        make.row("aten::a", 0, 5, Record_function_id=3),
        make.row("aten::b", 10, 5, Record_function_id=4),
        make.row("say /hi/", 20, 5, Record_function_id=5),
        make=make,
    )
    nodes = [make.node(3, "aten::a", 2), make.node(4, "aten::z", 2), make.node(5, "say \\hi\\", 2)]
    joined = join(profile.rows, read_file(make.graph(*nodes)))
    assert [row.name for row in joined.nodes] == ["aten::a", "say /hi/"]


def test_the_step_that_the_execution_trace_covers_is_taken(make):
    events, nodes = [], []
    for number in (1, 2, 3):
        at = 100 * number
        events += [
            make.row(f"ProfilerStep#{number}", at, 90, cat="user_annotation"),
            make.row("aten::mm", at + 10, 20, Record_function_id=number * 10),
        ]
    nodes = [make.node(20, "aten::mm", 2, [make.tensor(30, 4, 4)], [make.tensor(32, 4, 4)])]
    files = make.profile(*events), make.graph(*nodes)
    _, report = convert(*files)
    assert (report.step, report.joined) == (2, 1)
    # Another step does the same work, so its names still find the tensors.
    _, report = convert(*files, step=3)
    assert (report.joined, report.join_how) == (1, "order of names")


def test_backward_operators_read_and_write_what_the_operators_inside_them_do(make, linear_step):
    trace, _ = convert(*linear_step)
    backward = trace.operators[1]
    assert [t.id for t in backward.inputs] == [16, 10]
    assert [t.id for t in backward.outputs] == [18]
    linear = trace.operators[0]
    assert [t.kind for t in linear.inputs] == ["input", "weight"]
    assert (linear.dtype, linear.bytes) == ("fp32", 4 * (32 + 16 + 8))


def test_what_passes_between_inner_operators_is_no_output(make):
    dy, x, t1, dx, dw = (make.tensor(n, 4, 4) for n in (10, 12, 14, 16, 18))
    view = make.tensor(20, 4, 4, storage=13)  # a view of x
    nodes = make.graph(
        make.node(3, EVALUATE + "MulBackward0", 2),
        make.node(4, "MulBackward0", 3, [dy], scope=1),
        make.node(5, "aten::t", 4, [x], [view]),
        make.node(6, "aten::mul", 4, [dy, view], [t1]),
        make.node(7, "aten::sum", 4, [t1], [dx]),
        make.node(8, "aten::mm", 4, [dy, x], [dw]),
    )
    names = [n["name"] for n in json.loads(nodes)["nodes"][2:]]
    rows = [
        make.row(name, at, length, Record_function_id=i + 3)
        for i, (name, at, length) in enumerate(
            zip(names, (0, 1, 10, 20, 30, 40), (60, 58, 5, 5, 5, 5), strict=True)
        )
    ]
    trace, _ = convert(make.profile(*rows), nodes)
    (op,) = trace.operators
    assert [t.id for t in op.inputs] == [10, 12]
    assert [t.id for t in op.outputs] == [16, 18]


def test_one_id_for_two_memories_is_made_two(make, tmp_path):
    first, second = make.tensor(10, 4), make.tensor(10, 4, storage=99)
    nodes = make.graph(make.node(3, "aten::a", 2, [first]), make.node(4, "aten::b", 2, [second]))
    rows = [
        make.row("aten::a", 0, 5, Record_function_id=3),
        make.row("aten::b", 10, 5, Record_function_id=4),
    ]
    trace, report = convert(make.profile(*rows), nodes)
    ids = [op.inputs[0].id for op in trace.operators]
    assert ids[0] == 10 != ids[1]
    assert report.repairs == {"tensor ids that stood for two memories were made two": 1}

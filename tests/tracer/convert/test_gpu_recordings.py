"""Published recordings of GPUs; the numbers are those of the index beside the files."""

import csv

import pytest

from tracer.convert import convert, read_file, save
from triosim import Scenario, simulate
from triosim.errors import TraceFormatError
from triosim.trace import PHASES, read_trace
from triosim.trace.parameters import find_parameters

# name: events, cpu_op rows, kernels, kernel sum ms, kernel busy ms, launches, of which steps
FILES = {
    "r01_hta_mi250_rocm62_toytrain": (
        220, 70, 14, 0.110881, 0.110881, {"hipLaunchKernel": 12, "hipExtModuleLaunchKernel": 2},
    ),
    "r03_hta_a100_resnet_ddp2_nccl_meta": (
        40_573, 14_346, 2_700, 162.53234, 155.215315,
        {"cudaLaunchKernel": 2550, "cudaLaunchKernelExC": 150},
    ),
    "r07_hta_triton_culaunchkernel": (71, 3, 1, 0.00176, 0.00176, {"cuLaunchKernel": 1}),
    "r08_hta_event_sync_multi_stream": (149, 6, 3, 0.369, 0.369, {"cudaLaunchKernel": 3}),
    "r11_pair_simple_add_kineto": (111, 28, 4, 0.016, 0.016, {"cudaLaunchKernel": 4}),
    "r19_pair_param_linear20_kineto_40iters": (
        86_859, 36_998, 8_716, 369.343, 369.343, {"cudaLaunchKernel": 8716},
    ),
    "r21_pair_param_dlrm8_rank0_kineto": (
        3_290, 1_633, 245, 6.832, 6.571, {"cudaLaunchKernel": 245},
    ),
    "r32a_kineto_out_of_order_before_fix": (75, 4, 1, 2e-05, 2e-05, {"cudaLaunchKernel": 1}),
    "r36_tracelens_mi300_torch_compile_triton": (
        246, 41, 12, 12.549021, 12.549021,
        {"hipExtModuleLaunchKernel": 7, "hipModuleLaunchKernel": 5},
    ),
}  # fmt: skip


@pytest.fixture(scope="session")
def kineto(traces):
    return traces / "kineto"


@pytest.fixture(scope="session")
def vgg13(shared):
    folder = shared / "upstream" / "tracer"
    return convert(folder / "profiler_vgg13-iter41.json.gz", folder / "graph_vgg13-iter41.json.gz")


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_whole(kineto, name):
    events, cpu_rows, kernels, total_ms, busy_ms, launches = FILES[name]
    _, report = convert(kineto / f"{name}.json.gz")
    assert (report.file.events, report.file.cpu_rows) == (events, cpu_rows)
    assert report.file.kernels == kernels
    assert report.file.kernel_sum_s * 1e3 == pytest.approx(total_ms, abs=1e-9)
    assert report.file.kernel_busy_s * 1e3 == pytest.approx(busy_ms, abs=1e-9)
    assert report.file.launches == launches
    assert report.file.without_launch == 0
    assert report.attributed == 1.0
    assert not any(what.startswith("kernels") for what in report.unmatched)


def test_vgg13_loses_nothing(vgg13):
    trace, report = vgg13
    assert (report.kernels, report.written) == (292, 77)
    assert report.kernel_s * 1e3 == pytest.approx(346.344, abs=1e-9)
    assert report.attributed == 1.0
    assert report.compute_busy_s * 1e3 == pytest.approx(346.340, abs=1e-9)
    assert report.span_s * 1e3 == pytest.approx(347.021, abs=1e-9)
    assert trace.total_s * 1e3 == pytest.approx(346.340, abs=1e-9)
    assert (report.joined, report.join_rows) == (900, 900)
    assert report.warnings == ()
    assert (trace.batch_size, trace.meta["gpu"]) == (512, "NVIDIA H100 80GB HBM3")


def test_vgg13_equals_the_original_conversion(vgg13, upstream, tmp_path):
    """Ids, names, order, stages and flags of the same model at another batch size."""
    columns = ("OperatorID", "OperatorName", "gpuid", "stage", "tpflag")
    save(*vgg13, tmp_path)
    with (tmp_path / "trace.csv").open() as file:
        ours = [[row[column] for column in columns] for row in csv.DictReader(file)]
    with (upstream / "vgg13" / "trace.csv").open() as file:
        theirs = [[row[column] for column in columns] for row in csv.DictReader(file)]
    assert ours == theirs


def test_the_two_times_mean_what_they_mean_in_the_original(vgg13, upstream):
    """In both the span exceeds the kernels' time by the gaps between kernels.

    A gap does not depend on the batch: about 1 us between two kernels of one operator.
    """
    original = {op.id: op for op in read_trace(upstream / "vgg13").operators}
    for op in vgg13[0].operators:
        gap_us = (op.busy_time_s - op.time_s) * 1e6
        other_us = (original[op.id].busy_time_s - original[op.id].time_s) * 1e6
        assert gap_us >= -1e-6
        assert gap_us == pytest.approx(other_us, abs=15)


def test_vgg13_simulates(vgg13, tmp_path):
    save(*vgg13, tmp_path)
    trace = read_trace(tmp_path)
    assert find_parameters(trace).bytes == 532_191_392
    result = simulate(Scenario(trace_dir=str(tmp_path), gpus=1, resident=True))
    assert result.total_ms == pytest.approx(346.340, abs=1e-6)


def test_one_of_forty_iterations(kineto):
    """The forward pass stands before zero_grad; a step still begins with it."""
    files = (
        kineto / "r19_pair_param_linear20_kineto_40iters.json.gz",
        kineto / "r19_pair_param_linear20_et_1.0.1.json.gz",
    )
    trace, report = convert(*files, step=2)
    assert len(report.steps) == 40
    assert report.kernels == 220
    assert report.kernel_s * 1e3 == pytest.approx(9.728, abs=0.02)
    assert (report.joined, report.join_rows) == (928, 928)
    # its fills of the gradients are the optimizer's work, wherever they stand
    phases = [op.phase for op in trace.operators if op.name != "aten::zero_"]
    assert phases == sorted(phases, key=PHASES.index)
    # 21 layers of 1024 x 1024 with a bias
    assert find_parameters(trace).bytes == 21 * (1024 * 1024 + 1024) * 4
    _, last = convert(*files)
    assert (last.step, last.kernels) == (39, 220)
    assert 8.368 < last.kernel_s * 1e3 < 10  # the clock of the GPU rises after 20 iterations


def test_annotations_do_not_hide_operators(kineto):
    trace, report = convert(
        kineto / "r21_pair_param_dlrm8_rank0_kineto.json.gz",
        kineto / "r21_pair_param_dlrm8_rank0_et_1.0.1.json.gz",
    )
    assert (report.joined, report.join_rows, report.join_how) == (1672, 1672, "order of names")
    assert report.kernels == 245
    assert report.attributed == 1.0
    names = [op.name for op in trace.operators]
    assert names[:2] == ["aten::linear", "aten::relu"]
    assert not any("##" in name or "ProfilerStep" in name for name in names)
    # 8 communication kernels of 5.798 ms (index); the rest of 6.832 ms is computation
    assert len(report.communications) == 8
    assert report.communication_s * 1e3 == pytest.approx(5.798, abs=1e-6)
    assert report.compute_busy_s * 1e3 <= 6.832 - 5.798 + 1e-9
    kinds = [one.collective for one in report.communications]
    assert kinds.count("allreduce") == 3
    assert not any("c10d" in name or "comms" in name for name in names)
    sizes = [one.bytes for one in report.communications if one.collective == "allreduce"]
    assert sizes == [394_241 * 4, 112 * 4, 226_960 * 4]


def test_communication_of_three_ddp_steps(kineto):
    """21 kernels of 46.876493 ms in three steps (index)."""
    reports = [
        convert(kineto / "r03_hta_a100_resnet_ddp2_nccl_meta.json.gz", step=step)[1]
        for step in (4, 5, 6)
    ]
    assert sum(len(report.communications) for report in reports) == 21
    total_s = sum(report.communication_s for report in reports)
    assert total_s * 1e3 == pytest.approx(46.876493, abs=1e-6)
    assert sum(report.kernels for report in reports) == 2700
    # ResNet-50 has 25,557,032 parameters, each reduced once
    for report in reports:
        reduced = [one for one in report.communications if one.collective == "allreduce"]
        assert sum(one.bytes for one in reduced) == 25_557_032 * 4
        assert {one.group for one in reduced} == {"0 [0, 1]"}


def test_a_recording_without_a_gpu_says_so(kineto):
    trace, report = convert(kineto / "r06_hta_cpu_only_gloo_300ranks.json.gz")
    assert report.file.cpu_rows == 7_379
    assert report.file.kernels == 0
    assert any("no GPU kernels" in text for text in report.warnings)
    assert trace.meta["device"] == "cpu"
    assert trace.total_s > 0
    assert [one.bytes for one in report.communications] == [321_271 * 4, 2_082_411 * 4]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("r28_chakra_workload_graph_not_pytorch.json.gz", "a Chakra workload graph, not a PyTorch"),
        ("r14_hta_old_cat_names_kernel_runtime.json.gz", r"4 kernels and no operators \(cpu_op\)"),
        ("r22_param_et_1.0.3-chakra_resnet_1gpu.json.gz", "has no times; give the profiler file"),
        ("r40_speedscope_simple-partial.json", "line 7, .* the file is cut off here"),
        ("r40_speedscope_only-begin-events.json", "none of its 3 events is an operator"),
    ],
)
def test_what_is_no_recording_of_a_step(kineto, file, message):
    with pytest.raises(TraceFormatError, match=message) as caught:
        convert(kineto / file)
    assert str(caught.value).startswith(file)


# schema, layout, nodes, thread nodes, nodes of scope 0, 1 and 7, record_param_comms
GRAPHS = {
    "r11_pair_simple_add_et_1.0.1": ("1.0.1", "flat", 38, [2], (28, 0, 10), 0),
    "r19_pair_param_linear20_et_1.0.1": ("1.0.1", "flat", 931, [2, 519], (818, 108, 5), 0),
    "r21_pair_param_dlrm8_rank0_et_1.0.1": ("1.0.1", "flat", 1675, [2, 1113], (1579, 54, 42), 13),
    "r22_param_et_1.0.3-chakra_resnet_1gpu": (
        "1.0.3-chakra.0.0.4", "nested", 14_391, [2, 3167], (13_320, 1026, 45), 27,
    ),
    "r26_param_et_1.1.1-chakra_pt2_triton": (
        "1.1.1-chakra.0.0.4", "nested", 20, [2], (14, 0, 6), 0,
    ),
    "r27_chakra_et_1.0.2-chakra_collectives": (
        "1.0.2-chakra.0.0.4", "nested", 263, [2], (250, 0, 13), 20,
    ),
}  # fmt: skip
DEVICES = {
    "r11_pair_simple_add_et_1.0.1": {"cuda:0": 14, "cpu": 38},
    "r26_param_et_1.1.1-chakra_pt2_triton": {"cuda:0": 22},
    # 310 arguments, 20 in lists, 60 in lists of lists; the index counts the first only
    "r27_chakra_et_1.0.2-chakra_collectives": {"cpu": 110, "cuda:0": 310 + 20 + 60},
}


@pytest.mark.parametrize("name", GRAPHS)
def test_an_execution_trace_is_read_whole(kineto, name):
    schema, layout, nodes, threads, scopes, collectives = GRAPHS[name]
    graph = read_file(kineto / f"{name}.json.gz")
    assert (graph.schema, graph.layout, len(graph.nodes)) == (schema, layout, nodes)
    assert graph.thread_nodes == threads
    assert tuple(sum(n.scope == s for n in graph.nodes) for s in (0, 1, 7)) == scopes
    assert sum(n.name == "record_param_comms" for n in graph.nodes) == collectives
    assert graph.warnings == []


@pytest.mark.parametrize("name", DEVICES)
def test_every_tensor_of_an_execution_trace_is_found(kineto, name):
    graph = read_file(kineto / f"{name}.json.gz")
    tensors = [t for n in graph.nodes for t in (*n.inputs, *n.outputs)]
    counts = {device: sum(t.device == device for t in tensors) for device in DEVICES[name]}
    assert counts == DEVICES[name]

"""One pass on its own: launches, overlap, what it is made of. SEMINAR K2, ORACLES T4, F4."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from triosim.hardware import Gpu, load_gpu
from triosim.hardware.stacks import Constant, load_stack
from triosim.train import TrainScenario, make_plan
from triosim.train.blocks import Blocks
from triosim.train.costs import Costs
from triosim.train.network import Wires
from triosim.train.passes import PassWriter, simulate_pass
from triosim.train.plan import Plan


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """So many kernels of so many seconds."""

    count: int
    seconds: float

    def write(self, writer: PassWriter, costs: Costs, wires: Wires) -> None:
        for _ in range(self.count):
            writer.kernel("kernel", "forward", self.seconds)


@dataclass(frozen=True, kw_only=True, eq=False)
class Send:
    """A transfer of so many seconds that the next kernel waits for, or that nothing waits for."""

    seconds: float
    awaited: bool = True

    def write(self, writer: PassWriter, costs: Costs, wires: Wires) -> None:
        writer.transfer(
            "send", "send/recv", "test", self.seconds, size_bytes=8.0, sent_bytes=7.0,
            awaited=self.awaited,
        )  # fmt: skip


def plan(**settings: object) -> Plan:
    return make_plan(TrainScenario(gpus=1, dp_shard=1, **settings))


def costs(*, graphs: bool = False, launch_us: float = 5.0, slowdown: float = 0.0) -> Costs:
    exact = {
        "launch_us": launch_us, "collective_us": launch_us, "graph_us": 10.0,
        "overlap_slowdown": slowdown,
    }  # fmt: skip
    constants = {name: Constant(value, value, value) for name, value in exact.items()}
    stack = replace(load_stack("generic"), **constants)
    return Costs(
        gpu=load_gpu("h100-sxm"), stack=stack, precision="bf16", compiled=False, cuda_graphs=graphs
    )


def milliseconds(steps, own: Costs) -> tuple[float, dict[str, float]]:
    made = simulate_pass(steps, own, Wires(plan()))
    parts: dict[str, float] = {}
    for part in made.parts:
        parts[part.kind] = parts.get(part.kind, 0.0) + part.seconds * 1e3
    return made.seconds * 1e3, parts


@pytest.mark.parametrize(("gpu_ms", "eager_ms", "graph_ms"), [(1.2, 1.5, 1.2), (3.0, 3.0, 3.0)])
def test_a_gpu_waits_for_launches(gpu_ms, eager_ms, graph_ms):
    """SEMINAR K2: 300 kernels of 5 us launch each; CUDA graphs gain 20 %, or nothing."""
    steps = [Run(count=300, seconds=gpu_ms * 1e-3 / 300)]
    total, parts = milliseconds(steps, costs())
    assert total == pytest.approx(eager_ms)
    assert parts["compute"] == pytest.approx(gpu_ms)
    assert parts.get("launch_wait", 0.0) == pytest.approx(eager_ms - gpu_ms, abs=1e-9)
    total, _ = milliseconds(steps, costs(graphs=True))
    assert total == pytest.approx(graph_ms)


def test_a_pass_is_the_sum_of_its_parts():
    steps = [Run(count=3, seconds=1e-5), Send(seconds=4e-5), Run(count=2, seconds=1e-5)]
    total, parts = milliseconds(steps, costs())
    assert total == pytest.approx(0.09)
    assert parts == pytest.approx({"compute": 0.05, "exposed_communication": 0.04})


def test_a_transfer_that_nothing_waits_for_is_hidden_and_slows_what_runs_beside_it():
    steps = [Send(seconds=4e-5, awaited=False), Run(count=8, seconds=1e-5)]
    total, parts = milliseconds(steps, costs())
    assert total == pytest.approx(0.08)
    assert "exposed_communication" not in parts
    total, _ = milliseconds(steps, costs(slowdown=0.25))
    # In 40 us beside the transfer 32 us of work get done: 48 are left.
    assert total == pytest.approx(0.04 + 0.048)


def test_what_is_launched_late_arrives_late():
    """Two launches of 5 us each round; a kernel and a transfer of 1 us each in between."""
    steps = [Run(count=1, seconds=1e-6), Send(seconds=1e-6)]
    total, parts = milliseconds(steps, costs())
    assert total == pytest.approx(0.010)
    assert parts == pytest.approx(
        {"compute": 0.001, "exposed_communication": 0.001, "launch_wait": 0.008}
    )


@pytest.mark.parametrize("name", ["h100-sxm", "a100-80gb", "b200", "mi300x", "v100", "cpu"])
def test_no_operator_beats_peak_or_bandwidth(name):
    """ORACLES F4, for every operator of every part under every stack's shares."""
    gpu: Gpu = load_gpu(name)
    own = plan(
        model="llama3-8b", gpu=name, machine="switch", compile=True, stack="torchtitan-eager"
    )
    blocks = Blocks(own, Wires(own))
    for part in ("embedding", "dense", "norm", "head", "loss"):
        for op in blocks.block(part).ops:
            work = op.work
            least = max(work.flops / gpu.peak(work.dtype), work.bytes / gpu.memory_bytes_per_s)
            assert blocks.costs.op_s(op) >= least * (1 - 1e-12)


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_a_split_product_takes_at_least_its_share(step, tp):
    """ORACLES T4."""
    one, split = step(gpus=1), step(gpus=tp, tp=tp)
    for whole, part in zip(
        one.writer.blocks.block("dense").forward,
        [op for op in split.writer.blocks.block("dense").forward if not op.collective],
        strict=True,
    ):
        if whole.kind == "gemm":
            costs_of = one.writer.blocks.costs
            assert costs_of.op_s(part) >= costs_of.op_s(whole) / tp * (1 - 1e-12)


@pytest.mark.parametrize("recompute", ["none", "selective-op", "full"])
def test_async_tensor_parallelism_saves_at_most_what_was_exposed(step, recompute):
    settings = {
        "model": "llama3-8b", "gpus": 8, "tp": 8, "sequence_parallel": True, "compile": True,
        "micro_batch_size": 4, "recompute": recompute, "machine": "dgx-h100",
    }  # fmt: skip
    vanilla, overlapped = step(**settings), step(**settings, async_tp=True)
    exposed = sum(
        row.exposed_s for row in vanilla.communication if row.purpose == "tensor parallel"
    )
    saved = vanilla.step_s - overlapped.step_s
    assert 0 < saved <= exposed


def test_async_tensor_parallelism_sends_the_same_bytes(step):
    settings = {"gpus": 4, "tp": 4, "sequence_parallel": True, "micro_batch_size": 2}
    vanilla, overlapped = step(**settings), step(**settings, async_tp=True)
    assert overlapped.sent_bytes("tensor parallel") == pytest.approx(
        vanilla.sent_bytes("tensor parallel")
    )


def test_inside_a_composite_task_are_its_kernels(step):
    result = step(gpus=2, recompute="full")
    tasks = result.tasks.tasks(0, "compute").tolist()
    layer = next(t for t in tasks if result.tasks.program.name[t].startswith("layer 0 forward"))
    frame = result.inside(layer)
    compute = frame[frame.stream == "compute"]
    parts = result.tasks.program.parts[layer]
    assert compute.end_ms.max() == pytest.approx(1e3 * sum(part.seconds for part in parts))
    assert (compute.start_ms >= -1e-9).all()
    assert result.inside(tasks[-1]).empty  # the optimizer


@pytest.mark.parametrize("stack", ["megatron-2021", "megatron-core", "deepspeed"])
@pytest.mark.parametrize("precision", ["fp32", "tf32", "fp16", "fp8-tensorwise", "fp8-rowwise"])
def test_every_precision_runs_under_every_kind_of_stack(step, stack, precision):
    result = step(gpus=2, stack=stack, precision=precision)
    assert result.step_ms > 0
    assert result.peak_dtype == (precision[:3] if precision.startswith("fp8") else precision)

"""Questions K1 to K3: fused kernels, replayed launches, and four published gains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial
from statistics import median

from triosim.compile import (
    Access,
    Buffer,
    LaunchCosts,
    Node,
    OperatorGraph,
    fuse,
    kernels_of,
    launch_timeline,
    total_bytes,
    unfused,
)
from triosim.lab.question import CHOICE, Parameter, Quantity, Question, Slip
from triosim.train import TrainScenario, train
from triosim.validation import load_source, rows_of

LAB = "compile"
BF16_BYTES = 2
ROWS = Parameter(name="rows", label="Rows", low=1024, high=65_536,
                 marks=(1024, 4096, 16_384, 65_536))  # fmt: skip
COLUMNS = Parameter(name="columns", label="Columns", low=512, high=16_384,
                    marks=(512, 1024, 4096, 16_384))  # fmt: skip
MEMORY = Parameter(name="tb_per_s", label="Memory (TB/s)", low=0.1, high=10, step=0.1, whole=False)


def passes_us(*, rows: float, columns: float, tb_per_s: float, passes: float = 4) -> float:
    """Passes over the array, at the speed of memory."""
    return passes * rows * columns * BF16_BYTES / tb_per_s / 1e6


def chain(elements: int) -> OperatorGraph:
    """relu(x) + r, times g, in bf16."""
    steps = {"relu": ("x",), "add": ("relu out", "r"), "mul": ("add out", "g")}

    def access(name: str) -> Access:
        return Access(buffer=name, index="c0", sizes=(elements,), bytes=BF16_BYTES * elements)

    nodes = tuple(
        Node(
            name=name, kind="pointwise", reads=tuple(map(access, reads)),
            writes=(access(f"{name} out"),), space=(elements,), flops=elements, members=(name,),
        )
        for name, reads in steps.items()
    )  # fmt: skip
    names = {a.buffer for node in nodes for a in (*node.reads, *node.writes)}
    size = Buffer(bytes=BF16_BYTES * elements, element_bytes=BF16_BYTES)
    return OperatorGraph(
        nodes=nodes, buffers=dict.fromkeys(names, size), outputs=frozenset({"mul out"})
    )


def _bytes_run(*, rows: float, columns: float, fused: bool) -> int:
    graph = chain(int(rows * columns))
    return total_bytes(kernels_of(fuse(graph)) if fused else unfused(graph))


def _passes_run(*, rows: float, columns: float, tb_per_s: float, fused: bool = True) -> float:
    return _bytes_run(rows=rows, columns=columns, fused=fused) / tb_per_s / 1e6


def _saved_run(*, rows: float, columns: float, tb_per_s: float) -> float:
    alone, fused = (_bytes_run(rows=rows, columns=columns, fused=f) for f in (False, True))
    return (alone - fused) / 1e6


K1 = Question(
    id="K1",
    lab=LAB,
    text="relu, then + r, then \u00d7 g on a 16,384 \u00d7 4,096 array in bf16, memory at 2.4 "
    "TB/s. How "
    "long does it take as one fused kernel?",
    given={"rows": 16_384, "columns": 4096, "tb_per_s": 2.4},
    parameters=(ROWS, COLUMNS, MEMORY),
    answer=Quantity(
        label="Fused",
        unit="\u00b5s",
        formula=r"\frac{4\cdot 2\,n}{\mathrm{B/s}}",
        closed=passes_us,
        engine=_passes_run,
    ),
    also=(
        Quantity(
            label="Three kernels",
            unit="\u00b5s",
            formula=r"\frac{8\cdot 2\,n}{\mathrm{B/s}}",
            closed=lambda **v: passes_us(passes=8, **v),
            engine=lambda **v: _passes_run(fused=False, **v),
        ),
        Quantity(
            label="Saved",
            unit="MB",
            closed=lambda rows, columns, **_: 4 * rows * columns * BF16_BYTES / 1e6,
            engine=_saved_run,
        ),
    ),
    slips=(
        Slip(
            name="not fused",
            closed=lambda **v: passes_us(passes=8, **v),
            hint="Those are three kernels: 2 + 3 + 3 passes. Fused, what lies between stays in "
            "registers.",
        ),
        Slip(
            name="r and g forgotten",
            closed=lambda **v: passes_us(passes=2, **v),
            hint="r and g have to be read as well: x, r, g in, one result out.",
        ),
        Slip(
            name="4 bytes",
            closed=lambda **v: passes_us(passes=8, **v) * 2,
            hint="That is unfused in fp32. In bf16 an element has 2 bytes.",
        ),
        Slip(
            name="the write forgotten",
            closed=lambda **v: passes_us(passes=3, **v),
            hint="Three arrays are read, and the result is written: four passes.",
        ),
    ),
    why="Four passes of 134 MB instead of eight: 224 against 447 \u00b5s, 537 MB saved.",
)
KERNELS = Parameter(name="kernels", label="Kernels", low=10, high=1000, step=10)
LAUNCH = Parameter(
    name="launch_us", label="Launch (\u00b5s)", low=0.5, high=20, step=0.5, whole=False
)
GPU_MS = Parameter(
    name="gpu_ms", label="Work on the GPU (ms)", low=0.1, high=10, step=0.1, whole=False
)


def launched_ms(*, kernels: float, launch_us: float, gpu_ms: float) -> float:
    """The CPU launches ahead: the longer of both."""
    return max(kernels * launch_us / 1e3, gpu_ms)


def graph_gain(*, gpu_ms: float, **launches: float) -> float:
    """1 - GPU / max(launches, GPU), in percent."""
    return 100 * (1 - gpu_ms / launched_ms(gpu_ms=gpu_ms, **launches))


def _timeline_ms(mode: str, kernels: float, launch_us: float, gpu_ms: float) -> float:
    costs = LaunchCosts(launch_s=launch_us * 1e-6, guard_s=0, break_s=0, replay_s=0)
    work = [[gpu_ms * 1e-3 / kernels] * int(kernels)]
    return launch_timeline(work, costs, mode).step_s * 1e3


def _launched_run(**v: float) -> float:
    return _timeline_ms("compiled", **v)


def _replayed_run(**v: float) -> float:
    return _timeline_ms("cuda-graphs", **v)


def _graph_gain_run(**v: float) -> float:
    return 100 * (1 - _replayed_run(**v) / _launched_run(**v))


K2 = Question(
    id="K2",
    lab=LAB,
    text="300 kernels, each launched in 5 \u00b5s, together 1.2 ms of work for the GPU. By how "
    "much do "
    "CUDA graphs shorten this?",
    given={"kernels": 300, "launch_us": 5, "gpu_ms": 1.2},
    parameters=(KERNELS, LAUNCH, GPU_MS),
    answer=Quantity(
        label="Shorter by",
        unit="%",
        formula=r"1-\frac{t_{\mathrm{GPU}}}{\max(n\,t_{\mathrm{launch}},\,t_{\mathrm{GPU}})}",
        closed=graph_gain,
        engine=_graph_gain_run,
        tolerance=0.02,
        differs="The GPU waits for the first launch, and works on the last kernel after the last.",
    ),
    also=(
        Quantity(
            label="Without graphs",
            unit="ms",
            formula=r"\max(n\,t_{\mathrm{launch}},\,t_{\mathrm{GPU}})",
            closed=launched_ms,
            engine=_launched_run,
            tolerance=0.01,
        ),
        Quantity(
            label="With graphs",
            unit="ms",
            closed=lambda gpu_ms, **_: gpu_ms,
            engine=_replayed_run,
        ),
        Quantity(
            label="With 3 ms of work, without graphs",
            unit="ms",
            closed=launched_ms,
            engine=_launched_run,
            at={"gpu_ms": 3.0},
            tolerance=0.01,
        ),
        Quantity(
            label="With 3 ms of work, with graphs",
            unit="ms",
            closed=lambda gpu_ms, **_: gpu_ms,
            engine=_replayed_run,
            at={"gpu_ms": 3.0},
        ),
    ),
    slips=(
        Slip(
            name="speed for time",
            closed=lambda **v: 100 * (1 / (1 - graph_gain(**v) / 100) - 1),
            hint="That is by how much faster it gets, 1.5/1.2. The question is how much shorter.",
        ),
        Slip(
            name="launches on top",
            closed=lambda kernels, launch_us, gpu_ms: (
                100 * (1 - gpu_ms / (gpu_ms + kernels * launch_us / 1e3))
            ),
            hint="Launches and work overlap: without graphs it takes the longer of the two, 1.5 "
            "ms.",
        ),
        Slip(
            name="no gain",
            closed=lambda **_: 0.0,
            hint="Launching takes 300 \u00d7 5 \u00b5s = 1.5 ms, longer than the work: the GPU "
            "waits.",
        ),
    ),
    why="1.5 ms of launches hide behind nothing: 1.5 \u2192 1.2 ms. With 3 ms of work the "
    "launches are "
    "hidden already, and graphs gain nothing.",
)
TOKENS = 2 * 8192  # of a GPU and step
PAGE_8, PAGE_128 = "8 GPUs, web page: 0.386 s", "128 GPUs, web page: 0.408 s"
PAPER_8, PAPER_128 = "8 GPUs, paper: 0.163 s", "128 GPUs, paper: 0.375 s"
# Tokens/s of a GPU, eager and compiled: Llama 8B in bf16, two sequences of 8,192. TorchTitan's
# page (docs of December 2024), and arXiv 2410.06511, section 3, as others quote it.
RATES: Mapping[str, tuple[float, float]] = {
    PAGE_8: (5762, 6667), PAGE_128: (5605, 6514), PAPER_128: (5645, 6482), PAPER_8: (6258, 6674),
}  # fmt: skip
PAIRS = tuple(RATES)


def saved_s(pair: str) -> float:
    """Seconds of a step that compiling saved: tokens / eager rate - tokens / compiled rate."""
    eager, compiled = RATES[pair]
    return TOKENS / eager - TOKENS / compiled


def _saved_in_table_s(pair: str) -> float:
    """The same out of the published runs that this project is validated against."""
    gpus = 8 if pair in (PAGE_8, PAPER_8) else 128
    steps = {
        row.scenario.compiled: row.published_s
        for row in rows_of(load_source("torchtitan"))
        if row.size == "8B"
        and row.scenario.precision == "bf16"
        and (row.scenario.gpus, row.scenario.micro_batch_size) == (gpus, 2)
        and row.where.startswith("arXiv") == (pair in (PAPER_8, PAPER_128))
    }
    eager_s, compiled_s = steps[False], steps[True]
    assert eager_s is not None
    assert compiled_s is not None
    return eager_s - compiled_s


def _odd(**_: float) -> str:
    """The pair furthest from the median of the four."""
    saved = {pair: saved_s(pair) for pair in PAIRS}
    middle = median(saved.values())
    return max(saved, key=lambda pair: abs(saved[pair] - middle))


@lru_cache(maxsize=2)
def _simulated_s(gpus: int) -> float:
    """What compiling saves in a step, by the engine."""
    eager, compiled = (
        train(
            TrainScenario(
                model="llama3-8b", gpu="h100-96gb", machine="seminar-h100", gpus=gpus,
                micro_batch_size=2, global_batch=2 * gpus, seq_len=8192, recompute="selective-op",
                stack=stack,
            )
        ).step_s
        for stack in ("torchtitan-eager", "torchtitan-compile")
    )  # fmt: skip
    return eager - compiled


def _odd_run(**_: float) -> str:
    """The pair furthest from what the engine saves on as many GPUs."""

    def distance_s(pair: str) -> float:
        return abs(saved_s(pair) - _simulated_s(8 if pair in (PAGE_8, PAPER_8) else 128))

    return max(PAIRS, key=distance_s)


def gain_if(eager_s: float, save_s: float) -> float:
    """The gain in throughput, in percent, of a step that gets shorter."""
    return 100 * (eager_s / (eager_s - save_s) - 1)


def _gain_if_run(**_: float) -> float:
    """The engine's step with so much time saved, as idle time that goes away."""
    eager_s, save_s = TOKENS / RATES[PAPER_128][0], saved_s(PAPER_8)
    base = train(
        TrainScenario(layers=1, hidden=1024, heads=16, ffn=4096, vocab=1000, seq_len=1024, gpus=1)
    )
    slow, fast = (
        train(replace(base.scenario, extra_ms_per_step=1e3 * seconds - base.step_ms))
        for seconds in (eager_s, eager_s - save_s)
    )
    return 100 * (slow.step_s / fast.step_s - 1)


K3 = Question(
    id="K3",
    lab=LAB,
    kind=CHOICE,
    text="torch.compile on Llama 8B: seconds saved per step, from four published pairs of "
    "throughputs. Which pair does not fit the others?",
    options=PAIRS,
    given={},
    answer=Quantity(
        label="The odd one",
        formula=r"\Delta t=\frac{\text{tokens}}{\text{eager rate}}"
        r"-\frac{\text{tokens}}{\text{compiled rate}}",
        closed=_odd,
        engine=_odd_run,
    ),
    also=(
        *(
            Quantity(
                label=f"Saved, {pair.partition(':')[0]}",
                unit="s",
                closed=partial(saved_s, pair),
                engine=partial(_saved_in_table_s, pair),
            )
            for pair in PAIRS
        ),
        Quantity(
            label="Gain at 128 GPUs if 0.163 s were right",
            unit="%",
            formula=r"\frac{t}{t-0.163\,\mathrm{s}}-1",
            closed=lambda: gain_if(TOKENS / RATES[PAPER_128][0], saved_s(PAPER_8)),
            engine=_gain_if_run,
            tolerance=1e-3,
            differs="A step's idle time starts only once the first kernel has been launched.",
        ),
    ),
    slips=(
        Slip(
            name="more GPUs, more saved",
            closed=lambda: PAGE_128,
            hint="It saves most, but two others are within 10 % of it. In percent the gain is "
            "larger there; in seconds it is the same.",
        ),
    ),
    why="Three pairs save 0.38 to 0.41 s whatever the number of GPUs; one saves 0.163 s. If that "
    "were right, 128 GPUs would gain 6 % and not 15 %.",
)

QUESTIONS = (K1, K2, K3)

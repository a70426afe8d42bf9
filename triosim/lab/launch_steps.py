"""Launches of a layer, eager, fused and replayed, and what a graph break costs: for the lab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from triosim.compile import (
    CompiledBlock,
    LaunchCosts,
    LaunchTimeline,
    compile_block,
    launch_timeline,
)
from triosim.errors import ConfigError
from triosim.train import TrainResult, TrainScenario, make_plan, simulate_step
from triosim.train.costs import Costs
from triosim.workload import Block, block_of, load_model

US = 1e-6
NO_BREAK = "no break"
GPT2, LLAMA = "GPT-2, one GPU", "Llama 3 8B, one GPU"
MODELS: Mapping[str, str] = {GPT2: "gpt2", LLAMA: "llama3-8b"}
# After which module the graph of a layer may break, as it is called in each model.
BREAKS: Mapping[str, Mapping[str, str]] = {
    NO_BREAK: {GPT2: "", LLAMA: ""},
    "after the first norm": {GPT2: "ln_1", LLAMA: "input_layernorm"},
    "after attention": {GPT2: "attn", LLAMA: "self_attn"},
    "after the second norm": {GPT2: "ln_2", LLAMA: "post_attention_layernorm"},
}
EAGER, FUSED, REPLAYED = WAYS = ("eager", "fused", "replayed")
_MODES = {EAGER: "eager", FUSED: "compiled", REPLAYED: "cuda-graphs"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """One layer's forward of a model, and what a launch costs."""

    model: str
    tokens: int
    launch_us: float
    broken: str = NO_BREAK

    @property
    def module(self) -> str:
        """The module after which the graph breaks; "" for none."""
        if self.broken not in BREAKS:
            raise ConfigError("break", self.broken, f"must be one of {', '.join(BREAKS)}")
        return BREAKS[self.broken][self.model]

    @property
    def costs(self) -> LaunchCosts:
        return LaunchCosts(launch_s=self.launch_us * US)


@dataclass(frozen=True, kw_only=True, slots=True)
class Lane:
    """One way to run the same work."""

    name: str
    timeline: LaunchTimeline
    kernels: int


def layer_lanes(setup: Setup) -> list[Lane]:
    """The forward pass of one layer: eager, fused, and replayed as CUDA graphs."""
    scenario = TrainScenario(model=MODELS[setup.model], gpus=1, seq_len=setup.tokens)
    costs = Costs.of(make_plan(scenario))
    block = layer_block(setup)
    eager = [[costs.kernel_s(op.work) for op in block.forward if op.work.kernels]]
    compiled = compiled_layer(setup)
    fused = [
        [costs.kernel_s(kernel.work) for kernel in graph.kernels if kernel.launches]
        for graph in compiled.forward
    ]
    return [lane(name, eager if name == EAGER else fused, setup.costs) for name in WAYS]


def equal_lanes(kernels: int, launch_us: float, gpu_ms: float) -> list[Lane]:
    """So many equal kernels, launched one by one and replayed; no guards, as in question K2."""
    costs = LaunchCosts(launch_s=launch_us * US, guard_s=0, break_s=0, replay_s=0)
    work = [[gpu_ms * 1e-3 / kernels] * kernels]
    return [lane(name, work, costs) for name in (EAGER, REPLAYED)]


def lane(name: str, work: Sequence[Sequence[float]], costs: LaunchCosts) -> Lane:
    """One way, executed."""
    return Lane(
        name=name,
        timeline=launch_timeline(work, costs, _MODES[name]),
        kernels=sum(map(len, work)),
    )


def layer_block(setup: Setup) -> Block:
    """The layer's operators, in bf16."""
    return block_of(
        load_model(MODELS[setup.model]), "dense", batch=1, seq=setup.tokens, dtype="bf16",
        implementation="sdpa",
    )  # fmt: skip


def compiled_layer(setup: Setup) -> CompiledBlock:
    """The layer as torch.compile runs it, with its break."""
    block, module = layer_block(setup), setup.module
    prefix = next(op.module for op in block.forward).partition("{}.")[0]
    return compile_block(block, breaks=(f"{prefix}{{}}.{module}",) if module else ())


@dataclass(frozen=True, kw_only=True, slots=True)
class Broken:
    """A layer and a whole step with one break, or without."""

    name: str
    graphs: int
    kernels: int
    moved_mb: float
    step_ms: float
    waits_ms: float
    replayed_ms: float


def breaks_compared(setup: Setup) -> list[Broken]:
    """Every break of the list: forward and backward of a layer, and steps of the model."""
    found = []
    for name in BREAKS:
        asked = Setup(
            model=setup.model, tokens=setup.tokens, launch_us=setup.launch_us, broken=name
        )
        layer = compiled_layer(asked)
        plain, replayed = (_step(asked, cuda_graphs=graphs) for graphs in (False, True))
        found.append(
            Broken(
                name=name,
                graphs=len(layer.forward) + len(layer.backward),
                kernels=layer.launches,
                moved_mb=layer.bytes / 1e6,
                step_ms=plain.step_ms,
                waits_ms=plain.breakdown["launch_wait"],
                replayed_ms=replayed.step_ms,
            )
        )
    return found


def _step(setup: Setup, *, cuda_graphs: bool) -> TrainResult:
    """A step of one sequence on one GPU."""
    return simulate_step(
        TrainScenario(
            model=MODELS[setup.model], gpus=1, seq_len=setup.tokens, compile=True,
            cuda_graphs=cuda_graphs, graph_breaks=setup.module or None,
            constants={"compiled_launch_us": setup.launch_us},
        )
    )  # fmt: skip

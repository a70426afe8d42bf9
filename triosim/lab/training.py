"""Questions A1 to A3: a configuration read, its utilisation, and two runs compared."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from triosim.hardware import load_gpu
from triosim.lab.question import CHOICE, Parameter, Quantity, Question, Slip
from triosim.lab.slips import gb_for_gib
from triosim.pipelines import pipeline
from triosim.train import TrainScenario, make_plan
from triosim.train.network import Wires
from triosim.train.plan import Plan
from triosim.train.state import State
from triosim.train.step import make_blocks
from triosim.workload import load_model, model_flops_per_token

LAB = "training"
GIB = 2**30
STATE_BYTES = 16
PSI_B = 405.0
DP = Parameter(name="dp", label="dp", low=1, high=64, marks=(1, 2, 4, 8, 16, 32, 64))
TP = Parameter(name="tp", label="tp", low=1, high=8, marks=(1, 2, 4, 8))
PP = Parameter(name="pp", label="pp", low=1, high=16, marks=(1, 2, 4, 8, 16))


def parameters_b(*, dp: float, tp: float, pp: float, **_: float) -> float:
    """Psi over all three axes, where the stage is sharded."""
    return PSI_B / (dp * tp * pp)


def state_gib(**sizes: float) -> float:
    """16 bytes for each of them."""
    return STATE_BYTES * parameters_b(**sizes) * 1e9 / GIB


@lru_cache(maxsize=16)
def _plan(dp: int, tp: int, pp: int, batch: int) -> Plan:
    return make_plan(
        TrainScenario(
            model="llama3.1-405b", gpus=dp * tp * pp, dp_shard=dp, tp=tp, pp=pp,
            machine="seminar-h100", global_batch=batch, seq_len=8192,
        )
    )  # fmt: skip


def plan_of(**sizes: float) -> Plan:
    """The mesh of `dp`, `tp` and `pp` on the seminar's machine with `batch` sequences a step.

    Raises `ConfigError` for sizes that the model cannot be divided by.
    """
    return _plan(*(int(sizes[name]) for name in ("dp", "tp", "pp", "batch")))


def _parameters_run(**sizes: float) -> float:
    """Mean over the stages; the first and the last hold a table as well."""
    plan = plan_of(**sizes)
    state = State(make_blocks(plan, Wires(plan)))
    return sum(state.sharded(stage) for stage in range(plan.stages)) / plan.stages / 1e9


def _state_run(**sizes: float) -> float:
    return STATE_BYTES * _parameters_run(**sizes) * 1e9 / GIB


def inside_a_host(**sizes: float) -> str:
    """The axes whose groups stay in a host of 8."""
    mesh = plan_of(**sizes).mesh
    axes = ("pp", "dp_shard", "tp")
    inside = [axis for axis in axes if mesh.hosts_per_group(axis, 8) == 1]
    return ", ".join(inside)


A1 = Question(
    id="A1",
    lab=LAB,
    text="Llama 405B on 512 GPUs: dp 8 \u00d7 tp 8 \u00d7 pp 8, everything sharded, 16 bytes a "
    "parameter. "
    "How much state does a GPU hold?",
    given={"dp": 8, "tp": 8, "pp": 8, "batch": 256},
    parameters=(DP, TP, PP),
    answer=Quantity(
        label="State on a GPU",
        unit="GiB",
        formula=r"\frac{16\,\Psi}{dp\cdot tp\cdot pp}",
        closed=state_gib,
        engine=_state_run,
        tolerance=5e-3,
        differs="The model has 405.85 billion parameters, and norms are on every tp rank.",
    ),
    also=(
        Quantity(
            label="Parameters of a GPU",
            unit="billion",
            closed=parameters_b,
            engine=_parameters_run,
            tolerance=5e-3,
        ),
        Quantity(
            label="Sequences of a dp rank",
            unit="sequences",
            formula=r"\frac{256}{dp}",
            closed=lambda dp, batch, **_: batch / dp,
            engine=lambda **v: float(plan_of(**v).global_batch / plan_of(**v).sizes["dp_shard"]),
        ),
        Quantity(
            label="Axis that stays in a host of 8",
            formula=r"\text{the innermost, of size 8}",
            closed=lambda **_: "tp",
            engine=inside_a_host,
        ),
    ),
    slips=(
        gb_for_gib(state_gib),
        Slip(
            name="dp forgotten",
            closed=lambda dp, **v: state_gib(dp=1, **v),
            hint="That is a whole stage's share of a tp rank. FSDP divides it over dp as well.",
        ),
        Slip(
            name="weights alone",
            closed=lambda **v: state_gib(**v) / 8,
            hint="That counts 2 bytes for the weights. Gradients and Adam's state make it 16.",
        ),
    ),
    why="0.79 billion parameters. While a stage is gathered, its 12.7 GB of bf16 weights stand "
    "beside that.",
)
RATE = Parameter(name="tokens_per_s", label="Tokens/s of a GPU", low=100, high=20_000, step=100)
PEAK = Parameter(name="peak_tflops", label="Peak (TFLOP/s)", low=100, high=5000, step=1)
GFLOP = Parameter(name="gflop", label="GFLOP of a token", low=1, high=5000, step=0.1, whole=False)


def mfu(*, tokens_per_s: float, gflop: float, peak_tflops: float) -> float:
    """Tokens/s x FLOP a token / peak, in percent."""
    return 100 * tokens_per_s * gflop / 1e3 / peak_tflops


def _gflop_run() -> float:
    return model_flops_per_token(load_model("llama3-8b"), 8192) / 1e9


def _peak_run() -> float:
    return load_gpu("h100-96gb").peak("bf16") / 1e12


A2 = Question(
    id="A2",
    lab=LAB,
    text="Llama 8B, compiled, 8 H100s: 6,667 tokens/s on each GPU; a token takes 57.9 GFLOP, the "
    "peak is 989 TFLOP/s. What is the model FLOPs utilisation?",
    given={"tokens_per_s": 6667, "gflop": 57.9, "peak_tflops": 989},
    parameters=(RATE, GFLOP, PEAK),
    answer=Quantity(
        label="MFU",
        unit="%",
        formula=r"\frac{\text{tokens/s}\cdot\text{FLOP per token}}{\text{peak}}",
        closed=mfu,
        engine=lambda tokens_per_s, **_: mfu(
            tokens_per_s=tokens_per_s, gflop=_gflop_run(), peak_tflops=_peak_run()
        ),
        tolerance=2e-3,
        differs="57.9 and 989 are rounded.",
    ),
    also=(
        Quantity(
            label="Model FLOP/s of a GPU",
            unit="TFLOP/s",
            closed=lambda tokens_per_s, gflop, **_: tokens_per_s * gflop / 1e3,
            engine=lambda tokens_per_s, **_: tokens_per_s * _gflop_run() / 1e3,
            tolerance=2e-3,
        ),
    ),
    slips=(
        Slip(
            name="sparse peak",
            closed=lambda **v: mfu(**v) / 2,
            hint="That divides by the peak with sparsity, twice the dense one.",
        ),
        Slip(
            name="forward alone",
            closed=lambda **v: mfu(**v) / 3,
            hint="That counts forward. Backward is twice as much, and 57.9 GFLOP hold both.",
        ),
        Slip(
            name="6 P alone",
            closed=lambda gflop, **v: mfu(gflop=6 * 8.03, **v),
            hint="6 FLOP for each parameter leave out attention, which has no weights.",
        ),
    ),
    why="386 of 989 TFLOP/s.",
    published="TorchTitan's page says 33 to 39 %.",
)
TAKE_1F1B = "1F1B: it needs less to go wrong"
TAKE_BOTH = "Interleaved: faster and smaller, as theory says"
TAKE_WORRIED = "Interleaved: faster and smaller, but it should not be smaller"
NOTHING_SURE = "None: they cannot be compared"
MEASURED = {"1f1b": (100.0, 82.5), "interleaved": (128.0, 72.7)}


def in_flight(*, stages: float, microbatches: float, chunks: float, **_: float) -> float:
    """Interleaved: min(m, p (1 + (p-1)/(p v))) stage equivalents (arXiv 2205.05198)."""
    return min(microbatches, stages * (1 + (stages - 1) / (stages * chunks)))


def _held(schedule: str, v: Mapping[str, float]) -> float:
    return pipeline(
        schedule,
        stages=int(v["stages"]),
        microbatches=int(v["microbatches"]),
        chunks=int(v["chunks"]) if schedule == "interleaved" else 1,
    ).peak_in_flight[0]


def _interleaved_run(**v: float) -> float:
    return _held("interleaved", v)


def _plain_run(**v: float) -> float:
    return _held("1f1b", v)


def _chosen(interleaved: float, plain: float) -> str:
    (rate, memory), (other_rate, other_memory) = MEASURED["interleaved"], MEASURED["1f1b"]
    if rate < other_rate or memory > other_memory:
        return TAKE_1F1B
    return TAKE_WORRIED if interleaved >= plain else TAKE_BOTH


def _choose(**v: float) -> str:
    return _chosen(in_flight(**v), min(v["microbatches"], v["stages"]))


def _choose_run(**v: float) -> str:
    return _chosen(_interleaved_run(**v), _plain_run(**v))


A3 = Question(
    id="A3",
    lab=LAB,
    kind=CHOICE,
    text="Llama 405B, measured: 1F1B 100 tokens/s and 82.5 GiB, interleaved 128 tokens/s and "
    "72.7 GiB. Which do you take, and what do you make of the memory?",
    options=(TAKE_1F1B, TAKE_BOTH, TAKE_WORRIED, NOTHING_SURE),
    given={"stages": 8, "microbatches": 8, "chunks": 2},
    answer=Quantity(label="Take", closed=_choose, engine=_choose_run),
    also=(
        Quantity(
            label="Interleaved holds, m = 8",
            unit="micro-batches",
            formula=r"\min\left(m,\;p\left(1+\frac{p-1}{p\,v}\right)\right)",
            closed=in_flight,
            engine=_interleaved_run,
        ),
        Quantity(
            label="1F1B holds",
            unit="micro-batches",
            formula=r"\min(m,\,p)",
            closed=lambda stages, microbatches, **_: min(microbatches, stages),
            engine=_plain_run,
        ),
        Quantity(
            label="Interleaved over 1F1B at large m",
            unit="\u00d7",
            formula=r"1+\frac{p-1}{p\,v}",
            closed=lambda **v: in_flight(**v) / v["stages"],
            engine=lambda **v: _interleaved_run(**v) / _plain_run(**v),
            at={"microbatches": 64},
        ),
    ),
    slips=(
        Slip(
            name="theory says so",
            closed=lambda **_: TAKE_BOTH,
            hint="Interleaving holds as many activations at m = p and up to 1.44 times as many at "
            "larger m: never fewer. The two runs differ in something unstated.",
        ),
    ),
    why="It wins on both, so take it. But memory fell by 12 % where theory has the same or more: "
    "the runs differ in something that is not stated (the micro-batches are not).",
)

QUESTIONS = (A1, A2, A3)

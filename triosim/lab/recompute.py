"""Questions R1 to R3: what activations take, and what recomputing them costs and buys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from triosim.hardware import Work
from triosim.lab.question import Parameter, Quantity, Question, Slip
from triosim.train import TrainResult, TrainScenario, train
from triosim.workload import Block, Layout, block_of, load_model

LAB = "recompute"
MODEL = "megatron-22b"
GIB = 2**30
SEQ = Parameter(name="seq", label="Sequence s", low=512, high=16_384,
                marks=(512, 1024, 2048, 4096, 8192, 16_384))  # fmt: skip
BATCH = Parameter(name="batch", label="Micro-batch b", low=1, high=16)
TP = Parameter(name="tp", label="Tensor-parallel degree t", low=1, high=8, marks=(1, 2, 4, 8))
THE_22B = {"seq": 2048, "batch": 4, "hidden": 6144, "heads": 64, "tp": 8}


def kept_gb(
    *, seq: float, batch: float, hidden: float, heads: float, tp: float, kind: str = "none"
) -> float:
    """sbh(10 + 24/t + 5as/ht), sbh/t 34, 2sbh (Korthikanti et al., arXiv 2205.05198)."""
    size = seq * batch * hidden / 1e9
    if kind == "full":
        return 2 * size
    if kind == "sp+selective":
        return 34 * size / tp
    return size * (10 + (24 + 5 * heads * seq / hidden) / tp)


def score_share(*, seq: float, hidden: float, heads: float, tp: float, **_: float) -> float:
    """What grows with s^2, in percent of everything."""
    scores = 5 * heads * seq / hidden / tp
    return 100 * scores / (10 + 24 / tp + scores)


def _block(
    implementation: str, v: Mapping[str, float], *, sequence_parallel: bool = False
) -> Block:
    model = load_model(MODEL)
    # As if it had learned as many positions as are asked for.
    model = replace(model, seq_len=max(model.seq_len, int(v["seq"])))
    return block_of(
        model, "dense", batch=int(v["batch"]), seq=int(v["seq"]), dtype="fp16",
        implementation=implementation,
        layout=Layout(tp=int(v["tp"]), sequence_parallel=sequence_parallel),
    )  # fmt: skip


def _none_run(**v: float) -> float:
    return _block("megatron", v).saved_bytes / 1e9


def _selective_run(**v: float) -> float:
    """Flash attention leaves out the scores, as selective recomputation does."""
    return _block("flash", v, sequence_parallel=True).saved_bytes / 1e9


def _full_run(**v: float) -> float:
    entry = _block("megatron", v).entry
    assert entry is not None
    return entry.bytes / 1e9


def _share_run(**v: float) -> float:
    whole = _block("megatron", v).saved_bytes
    return 100 * (1 - _block("flash", v).saved_bytes / whole)


def _extra_run(**v: float) -> float:
    block = _block("megatron", v)
    return 100 * block.forward_flops / (block.forward_flops + block.backward_flops)


NORMS = "The engine also keeps the statistics of norms: below 0.1 %."
R1 = Question(
    id="R1",
    lab=LAB,
    text="A GPT of 22B (s 2,048, b 4, h 6,144, 64 heads, t 8, fp16) recomputes nothing. How much "
    "does a GPU keep of one layer for backward?",
    given=THE_22B,
    parameters=(SEQ, BATCH, TP),
    answer=Quantity(
        label="Nothing recomputed",
        unit="GB",
        formula=r"s\,b\,h\left(10+\frac{24}{t}+\frac{5\,a\,s}{h\,t}\right)",
        closed=kept_gb,
        engine=_none_run,
        tolerance=1e-3,
        differs=NORMS,
    ),
    also=(
        Quantity(
            label="Sequence parallel and selective",
            unit="GB",
            formula=r"\frac{34\,s\,b\,h}{t}",
            closed=lambda **v: kept_gb(kind="sp+selective", **v),
            engine=_selective_run,
            tolerance=3e-3,
            differs=NORMS,
        ),
        Quantity(
            label="Full",
            unit="GB",
            formula=r"2\,s\,b\,h",
            closed=lambda **v: kept_gb(kind="full", **v),
            engine=_full_run,
        ),
    ),
    slips=(
        Slip(
            name="no scores",
            closed=lambda **v: kept_gb(**v) * (1 - score_share(**v) / 100),
            hint="The scores and their softmax are missing: 5 a s/h more, half of everything here.",
        ),
        Slip(
            name="all over t",
            closed=lambda tp, **v: kept_gb(tp=1, **v) / tp,
            hint="That divides everything by t. Without sequence parallelism 10 s b h (norms, "
            "dropout, inputs) stay whole on each GPU.",
        ),
        Slip(
            name="GiB for GB",
            closed=lambda **v: kept_gb(**v) * 1e9 / GIB,
            hint="That is in GiB. The question asks for GB.",
        ),
    ),
    why="50.3 M elements times 26.33 bytes. Sequence parallelism with selective recomputation "
    "leaves 16 %, full recomputation 8 %.",
)
R2 = Question(
    id="R2",
    lab=LAB,
    text="The same layer: which share of what is kept grows with s\u00b2?",
    given=THE_22B,
    parameters=(SEQ, TP),
    answer=Quantity(
        label="Share of the scores",
        unit="%",
        formula=r"\frac{5as/(ht)}{10+24/t+5as/(ht)}",
        closed=score_share,
        engine=_share_run,
        tolerance=3e-3,
        differs=NORMS,
    ),
    also=(
        Quantity(
            label="Extra FLOPs of full recomputation",
            unit="%",
            formula=r"\frac{\text{forward}}{\text{forward}+\text{backward}}=\frac13",
            closed=lambda **_: 100 / 3,
            engine=_extra_run,
            tolerance=5e-3,
            differs="The engine counts element-wise operations as well.",
        ),
    ),
    slips=(
        Slip(
            name="t forgotten",
            closed=lambda tp, **v: score_share(tp=1, **v),
            hint="That is for t = 1. Tensor parallelism divides the scores by 8, but not all of "
            "the rest.",
        ),
        Slip(
            name="all over t",
            closed=lambda tp, hidden, heads, seq, **_: (
                100 * (5 * heads * seq / hidden / tp) / (34 / tp + 5 * heads * seq / hidden)
            ),
            hint="The scores are divided by t as well as the 24; only the 10 is not.",
        ),
    ),
    why="13.33 of 26.33. Selective recomputation saves exactly this, for little work.",
)
LOSS = Parameter(name="loss_percent", label="Throughput lost (%)", low=1, high=50)
EFFICIENCY = Parameter(
    name="efficiency", label="GEMM efficiency before", low=0.1, high=1, step=0.01, whole=False
)
AFTER = Parameter(
    name="efficiency_after", label="GEMM efficiency after", low=0.1, high=1, step=0.01, whole=False
)


def break_even(*, loss_percent: float, **_: float) -> float:
    """1/(1 - x) - 1."""
    return 100 * (1 / (1 - loss_percent / 100) - 1)


def _small(**settings: object) -> TrainResult:
    return train(
        TrainScenario(
            layers=2, hidden=1024, heads=16, ffn=4096, vocab=16_000, seq_len=1024, gpus=1,
            machine="switch", **settings,  # type: ignore[arg-type]
        )
    )  # fmt: skip


def _break_even_run(*, loss_percent: float, **_: float) -> float:
    """The engine's step, and the same with so much idle time that the throughput is lost."""
    fast = _small()
    idle_ms = fast.step_ms * (1 / (1 - loss_percent / 100) - 1)
    slow = train(replace(fast.scenario, extra_ms_per_step=idle_ms))
    return 100 * (fast.tokens_per_s / slow.tokens_per_s - 1)


def _after_run(*, loss_percent: float, efficiency: float, efficiency_after: float) -> float:
    """A large product at both efficiencies, and the throughput that is left."""
    work = Work(kind="gemm", flops=2.0 * 16_384**3, bytes=3 * 2 * 16_384**2, dtype="bf16")
    seconds = [
        _small(constants={"gemm": share}).writer.blocks.costs.kernel_s(work)
        for share in (efficiency, efficiency_after)
    ]
    return (1 - loss_percent / 100) * seconds[0] / seconds[1]


R3 = Question(
    id="R3",
    lab=LAB,
    text="A change halves the memory and costs 10 % of the throughput. By how much must the freed "
    "memory raise the throughput again for it to pay?",
    given={"loss_percent": 10, "efficiency": 0.60, "efficiency_after": 0.68},
    parameters=(LOSS, EFFICIENCY, AFTER),
    answer=Quantity(
        label="Break-even gain",
        unit="%",
        formula=r"\frac{1}{1-x}-1",
        closed=break_even,
        engine=_break_even_run,
        tolerance=1e-6,
    ),
    also=(
        Quantity(
            label="If b doubles and GEMM efficiency goes from 0.60 to 0.68",
            unit="\u00d7",
            formula=r"0.9\cdot\frac{0.68}{0.60}",
            closed=lambda loss_percent, efficiency, efficiency_after: (
                (1 - loss_percent / 100) * efficiency_after / efficiency
            ),
            engine=_after_run,
            tolerance=1e-3,
            differs="A kernel's start-up does not get faster.",
        ),
    ),
    slips=(
        Slip(
            name="as much as was lost",
            closed=lambda loss_percent, **_: loss_percent,
            hint="10 % of the smaller throughput is less than 10 % of the old one: 0.9 \u00b7 1.1 "
            "= "
            "0.99.",
        ),
        Slip(
            name="twice",
            closed=lambda **_: 100.0,
            hint="Memory halves, but only throughput has to come back: from 0.9 to 1.",
        ),
    ),
    why="1/0.9. With b doubled, 0.9 \u00b7 0.68/0.60 = 1.02: take it, barely.",
)

QUESTIONS = (R1, R2, R3)

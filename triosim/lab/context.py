"""Questions L1 to L3: attention over a sequence that several ranks hold parts of."""

from __future__ import annotations

from functools import lru_cache

from triosim.collective import collective
from triosim.lab.question import NUMBER, RANKING, Parameter, Quantity, Question, Slip
from triosim.train import TrainResult, TrainScenario, simulate_step
from triosim.workload import block_of, load_model

LAB = "context"
BF16_BYTES = 2
MODEL = "llama3-8b"  # h 4096, KV 1024
SEQ = Parameter(
    name="seq", label="Sequence", low=8192, high=2**20, marks=tuple(8192 * 2**i for i in range(8))
)
DEGREE = Parameter(name="cp", label="Context-parallel degree c", low=2, high=32,
                   marks=(2, 4, 8, 16, 32))  # fmt: skip


def ring_mb(*, seq: float, kv: float, cp: float, **_: float) -> float:
    """2(c-1)/c s h_kv elements (ORACLES X1)."""
    return 2 * (cp - 1) / cp * seq * kv * BF16_BYTES / 1e6


def ulysses_mb(*, seq: float, hidden: float, kv: float, cp: float) -> float:
    """(2h + 2h_kv)(c-1)/c^2 s elements (arXiv 2309.14509)."""
    return (2 * hidden + 2 * kv) * (cp - 1) / cp**2 * seq * BF16_BYTES / 1e6


@lru_cache(maxsize=32)
def _step(context: str, cp: int, tp: int, seq: int) -> TrainResult:
    """A layer of the model on ideal links."""
    return simulate_step(
        TrainScenario(
            model=MODEL, layers=1, machine="switch", gpus=cp * tp, dp_shard=1, cp=cp, tp=tp,
            seq_len=seq, context=context, constants={"overlap_slowdown": 0.0},
        )
    )  # fmt: skip


def _sent_bytes(context: str, *, cp: int, tp: int = 1, seq: int) -> float:
    """What a rank sends in a layer's forward pass."""
    result = _step(context, cp, tp, seq)
    unit = next(unit for unit in result.plan.virtual_stages[0] if unit.layer == 0)
    moved = result.writer.blocks.simulate(unit, "forward").moved
    return sum(m.sent_bytes for m in moved.values())


def _ring_run(*, seq: float, cp: float, **_: float) -> float:
    return _sent_bytes("ring", cp=int(cp), seq=int(seq)) / 1e6


def _ulysses_run(*, seq: float, cp: float, **_: float) -> float:
    return _sent_bytes("ulysses", cp=int(cp), seq=int(seq)) / 1e6


WAYS = ("ring, c = 4", "ring, c = 8", "Ulysses, c = 4", "Ulysses, c = 8")


def _order(megabytes: tuple[float, ...]) -> tuple[str, ...]:
    return tuple(name for _, name in sorted(zip(megabytes, WAYS, strict=True)))


def _ranking(**v: float) -> tuple[str, ...]:
    return _order(
        (ring_mb(cp=4, **v), ring_mb(cp=8, **v), ulysses_mb(cp=4, **v), ulysses_mb(cp=8, **v))
    )


def _ranking_run(**v: float) -> tuple[str, ...]:
    return _order((_ring_run(cp=4, **v), _ring_run(cp=8, **v), _ulysses_run(cp=4, **v),
                   _ulysses_run(cp=8, **v)))  # fmt: skip


def _crossover_run(*, seq: float, **_: float) -> float:
    """The largest of a few degrees at which Ulysses does not send less, by the engine.

    Both are equal at the crossover itself where that is a power of two; else it lies between.
    """
    degrees = [cp for cp in (2, 4, 8) if _ulysses_run(seq=seq, cp=cp) < _ring_run(seq=seq, cp=cp)]
    below = min(degrees) / 2
    # Between two degrees the difference, times c^2/(c-1), is a straight line in c.
    ends = [
        (cp, (_ring_run(seq=seq, cp=cp) - _ulysses_run(seq=seq, cp=cp)) * cp**2 / (cp - 1))
        for cp in (below, 2 * below)
    ]
    (low, under), (high, over) = ends
    return low + (high - low) * -under / (over - under)


L1 = Question(
    id="L1",
    lab=LAB,
    text="131,072 tokens, h 4,096, KV 1,024 (grouped queries), bf16. Order by what a rank sends "
    "for a layer's forward pass, least first.",
    kind=RANKING,
    options=WAYS,
    given={"seq": 131_072, "hidden": 4096, "kv": 1024},
    parameters=(SEQ,),
    answer=Quantity(
        label="Least first",
        formula=r"\begin{aligned}\text{ring }&2\,\frac{c-1}{c}\,s\,h_{kv}\\ "
        r"\text{Ulysses }&(2h+2h_{kv})\,\frac{c-1}{c^2}\,s\end{aligned}",
        closed=_ranking,
        engine=_ranking_run,
    ),
    also=(
        *(
            Quantity(
                label=label,
                unit="MB",
                closed=closed,
                engine=engine,
                at={"cp": cp},
            )
            for label, closed, engine, cp in (
                (WAYS[0], ring_mb, _ring_run, 4),
                (WAYS[2], ulysses_mb, _ulysses_run, 4),
                (WAYS[1], ring_mb, _ring_run, 8),
                (WAYS[3], ulysses_mb, _ulysses_run, 8),
            )
        ),
        Quantity(
            label="Ulysses sends less from c above",
            formula=r"c>1+\frac{h}{h_{kv}}",
            closed=lambda hidden, kv, **_: 1 + hidden / kv,
            engine=_crossover_run,
        ),
    ),
    slips=(
        Slip(
            name="Ulysses always",
            closed=lambda **_: (WAYS[3], WAYS[2], WAYS[0], WAYS[1]),
            hint="Ulysses also moves queries and the result, which are four times as wide here. "
            "It pays only from c > 1 + h/h_kv = 5.",
        ),
        Slip(
            name="ring always",
            closed=lambda **_: (WAYS[0], WAYS[1], WAYS[3], WAYS[2]),
            hint="What the ring sends hardly falls with c. Ulysses' share falls like 1/c.",
        ),
        Slip(
            name="plain attention",
            closed=lambda **_: (WAYS[3], WAYS[2], WAYS[1], WAYS[0]),
            hint="That is closer to plain attention, where K and V are as wide as the queries. "
            "And a ring over 8 sends more than one over 4.",
        ),
    ),
    why="294 < 403 < 470 < 503 MB. The ring sends K and V (1,024 wide) almost whole; Ulysses sends "
    "everything, but only its share.",
)


def slowest(*, cp: float, **_: float) -> float:
    """(2c-1)/c of the mean work: the last rank looks back at all blocks (ORACLES X3)."""
    return (2 * cp - 1) / cp


def _slowest_run(*, cp: float, seq: float, **_: float) -> float:
    """Attention of the slowest rank of contiguous parts over that of even ones."""

    def attention_s(context: str) -> float:
        result = _step(context, int(cp), 1, int(seq))
        unit = next(unit for unit in result.plan.virtual_stages[0] if unit.layer == 0)
        rows = result.writer.blocks.simulate(unit, "forward").rows()
        return sum(
            end - start
            for stream, name, _, start, end in rows
            if stream == "compute" and "attention" in name
        )

    return attention_s("ring") / attention_s("ring-zigzag")


def tokens_to_hide(
    *, kv: float, hidden: float, tflops: float, gb_per_s: float, **_: float
) -> float:
    """4 T^2 h / FLOP/s = 2 T h_kv 2 bytes / B: T = h_kv FLOP/s / (h B)."""
    return kv * tflops * 1e12 / (hidden * gb_per_s * 1e9)


def _tokens_run(*, tflops: float, gb_per_s: float, kv: float, **_: float) -> float:
    """Where the engine's block of attention takes as long as the engine's hop.

    Work grows with the square of the tokens and the message with the tokens: one size says it.
    A rank's own block is half masked; those that come by a hop are whole, so twice the work.
    """
    tokens = 1024
    block = block_of(load_model(MODEL), "dense", batch=1, seq=tokens)
    work = 2 * sum(op.flops for op in block.forward if op.kind == "attention")
    hop = collective(
        "send", size_bytes=2 * tokens * kv * BF16_BYTES, ranks=2, algorithm="direct",
        link_gb_per_s=gb_per_s,
    )  # fmt: skip
    return tokens * hop.time_ms * 1e-3 / (work / (tflops * 1e12))


L2 = Question(
    id="L2",
    lab=LAB,
    text="Causal attention on a ring of 8 ranks, each with a contiguous part of the sequence. How "
    "many times the mean work does the slowest rank have?",
    given={
        "cp": 8,
        "seq": 131_072,
        "hidden": 4096,
        "kv": 1024,
        "tflops": 600,
        "gb_per_s": 450,
    },
    parameters=(DEGREE,),
    answer=Quantity(
        label="Slowest over mean",
        unit="\u00d7",
        formula=r"\frac{2c-1}{c}",
        closed=slowest,
        engine=_slowest_run,
        tolerance=0.01,
        differs="The engine's blocks of attention have a start-up each.",
    ),
    also=(
        Quantity(
            label="Tokens of a rank that hide a hop at 450 GB/s",
            unit="tokens",
            formula=r"T=\frac{h_{kv}\cdot\mathrm{FLOP/s}}{h\,B}",
            closed=tokens_to_hide,
            engine=_tokens_run,
        ),
        Quantity(
            label="At 50 GB/s",
            unit="tokens",
            closed=tokens_to_hide,
            engine=_tokens_run,
            at={"gb_per_s": 50},
        ),
    ),
    slips=(
        Slip(
            name="the limit",
            closed=lambda **_: 2.0,
            hint="2 is the limit for very many ranks. With 8 the last rank's own block is half "
            "masked.",
        ),
        Slip(
            name="even",
            closed=lambda **_: 1.0,
            hint="All have as many tokens, but a late token looks back at more. Zig-zag parts make "
            "it even.",
        ),
        Slip(
            name="slowest over fastest",
            closed=lambda cp, **_: 2 * cp - 1,
            hint="That compares with the first rank, which sees only its own half block. Compare "
            "with the mean.",
        ),
        Slip(
            name="blocks of the last rank",
            closed=lambda cp, **_: cp - 0.5,
            hint="Those are the blocks of the last rank, 7.5. The mean has 4.",
        ),
    ),
    why="The last rank has 7.5 blocks, the mean is 4.",
)


def tensor_elements(*, ways: float, **_: float) -> float:
    """Two all-reduces of s h: 2 x 2(t-1)/t."""
    return 2 * 2 * (ways - 1) / ways


def sequence_elements(*, ways: float, group: float) -> float:
    """Ulysses: (2 + 2/g)(c-1)/c^2, g query heads to a KV head."""
    return (2 + 2 / group) * (ways - 1) / ways**2


def _elements_run(*, ways: float, tensor: bool, seq: int = 8192) -> float:
    tp, cp = (int(ways), 1) if tensor else (1, int(ways))
    sent = _sent_bytes("ulysses", cp=cp, tp=tp, seq=seq)
    return sent / BF16_BYTES / (seq * load_model(MODEL).hidden)


L3 = Question(
    id="L3",
    lab=LAB,
    kind=NUMBER,
    text="Prefill with 4:1 grouped queries, 8 ranks. How many times more does a rank send per "
    "layer with TP 8 than with SP 8 (Ulysses)?",
    given={"ways": 8, "group": 4},
    parameters=(Parameter(name="ways", label="Ranks", low=2, high=8, marks=(2, 4, 8)),),
    answer=Quantity(
        label="TP over SP",
        unit="\u00d7",
        formula=r"\frac{4\,(t-1)/t}{(2+2/g)\,(c-1)/c^2}",
        closed=lambda **v: tensor_elements(**v) / sequence_elements(**v),
        engine=lambda ways, **_: (
            _elements_run(ways=ways, tensor=True) / _elements_run(ways=ways, tensor=False)
        ),
    ),
    also=(
        Quantity(
            label="TP 8",
            unit="s\u00b7h elements",
            closed=tensor_elements,
            engine=lambda ways, **_: _elements_run(ways=ways, tensor=True),
        ),
        Quantity(
            label="SP 8",
            unit="s\u00b7h elements",
            closed=sequence_elements,
            engine=lambda ways, **_: _elements_run(ways=ways, tensor=False),
        ),
    ),
    slips=(
        Slip(
            name="as many ways",
            closed=lambda ways, **_: ways,
            hint="Ulysses divides by the ranks, but grouped queries save more: K and V are a "
            "quarter as wide.",
        ),
        Slip(
            name="one all-reduce",
            closed=lambda **v: tensor_elements(**v) / sequence_elements(**v) / 2,
            hint="A layer has two all-reduces forward: after attention and after the MLP.",
        ),
    ),
    why="Two all-reduces of 2 \u00b7 7/8 make 3.5; (2 + 1/2) \u00b7 7/64 make 0.273.",
)

QUESTIONS = (L1, L2, L3)

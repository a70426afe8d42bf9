"""Questions T1 to T3: what tensor parallelism sends, and what it leaves whole."""

from __future__ import annotations

from triosim.collective import collective
from triosim.lab.collectives import LINK, NIC, flat_ring_run, hierarchical_ms, hierarchical_run
from triosim.lab.question import Parameter, Quantity, Question, Slip
from triosim.train import TrainScenario, simulate_step
from triosim.workload import Layout, block_of, load_model

LAB = "tensor"
BF16_BYTES = 2
BATCH = Parameter(name="batch", label="Micro-batch b", low=1, high=32)
SEQ = Parameter(
    name="seq", label="Sequence s", low=512, high=131_072,
    marks=tuple(512 * 2**i for i in range(9)),
)  # fmt: skip
HIDDEN = Parameter(
    name="hidden", label="Hidden h", low=1024, high=16_384, marks=(1024, 2048, 4096, 8192, 16_384)
)
TP = Parameter(name="tp", label="Tensor-parallel degree t", low=2, high=16, marks=(2, 4, 8, 16))
LAYERS = Parameter(name="layers", label="Layers", low=1, high=128)


def message_mb(*, batch: float, seq: float, hidden: float, **_: float) -> float:
    """s b h elements of 2 bytes."""
    return batch * seq * hidden * BF16_BYTES / 1e6


def one_ms(*, tp: float, gb_per_s: float, **sizes: float) -> float:
    """2(t-1)/t s b h bytes / B."""
    return 2 * (tp - 1) / tp * message_mb(**sizes) / gb_per_s


def step_ms(*, layers: float, passes: float = 4, **values: float) -> float:
    """Two all-reduces a layer forward, two backward (arXiv 1909.08053)."""
    return passes * layers * one_ms(**values)


def _one_run(*, tp: float, gb_per_s: float, **sizes: float) -> float:
    return collective(
        size_bytes=message_mb(**sizes) * 1e6,
        ranks=int(tp),
        algorithm="ring",
        link_gb_per_s=gb_per_s,
    ).time_ms


def _step_run(*, layers: float, tp: float, recompute: str = "none", **values: float) -> float:
    """The engine's all-reduces of a layer, forward and backward; each takes the ring's time."""
    one = simulate_step(
        TrainScenario(
            layers=1, hidden=int(values["hidden"]), heads=32, kv_heads=8, ffn=14_336,
            vocab=32_000, gpus=int(tp), tp=int(tp), seq_len=int(values["seq"]), machine="switch",
            micro_batch_size=int(values["batch"]), recompute=recompute,
        )
    )  # fmt: skip
    unit = next(unit for unit in one.plan.virtual_stages[0] if unit.layer == 0)
    passes = (one.writer.blocks.simulate(unit, kind) for kind in ("forward", "backward"))
    sent = sum(
        moved.sent_bytes
        for each in passes
        for (_, why), moved in each.moved.items()
        if why == "tensor parallel"
    )
    return layers * sent / values["gb_per_s"] / 1e6


T1 = Question(
    id="T1",
    lab=LAB,
    text="Tensor parallel over 8 GPUs at 450 GB/s: micro-batch 2, sequence 8,192, hidden 4,096, "
    "bf16, 32 layers. How long do the all-reduces of a step take?",
    given={"batch": 2, "seq": 8192, "hidden": 4096, "tp": 8, "gb_per_s": 450, "layers": 32},
    parameters=(BATCH, SEQ, HIDDEN, TP, LINK, LAYERS),
    answer=Quantity(
        label="All layers, forward and backward",
        unit="ms",
        formula=r"4L\cdot 2\,\frac{t-1}{t}\cdot\frac{2\,s\,b\,h}{B}",
        closed=step_ms,
        engine=_step_run,
    ),
    also=(
        Quantity(
            label="One all-reduce",
            unit="ms",
            formula=r"2\,\frac{t-1}{t}\cdot\frac{2\,s\,b\,h}{B}",
            closed=lambda layers, **v: one_ms(**v),
            engine=lambda layers, **v: _one_run(**v),
        ),
        Quantity(
            label="With full recomputation",
            unit="ms",
            formula=r"6L\cdot\ldots",
            closed=lambda **v: step_ms(passes=6, **v),
            engine=lambda **v: _step_run(recompute="full", **v),
        ),
    ),
    slips=(
        Slip(
            name="forward alone",
            closed=lambda **v: step_ms(passes=2, **v),
            hint="That is two all-reduces a layer. Backward has two more.",
        ),
        Slip(
            name="no (n\u22121)/n",
            closed=lambda tp, **v: step_ms(tp=tp, **v) * tp / (tp - 1),
            hint="The factor (t \u2212 1)/t is missing: a GPU already has its own part of the sum.",
        ),
        Slip(
            name="one layer",
            closed=lambda layers, **v: step_ms(layers=1, **v),
            hint="That is one layer; there are 32.",
        ),
        Slip(
            name="one all-reduce a layer",
            closed=lambda **v: step_ms(passes=1, **v),
            hint="Attention and MLP each need one, forward and backward: four a layer.",
        ),
    ),
    why="134 MB each, 0.522 ms; 32 layers of four. Full recomputation runs forward again: six.",
)


def two_hosts(*, batch: float, seq: float, hidden: float, **rest: float) -> dict[str, float]:
    """The values of an all-reduce over hosts."""
    return {"size_mb": message_mb(batch=batch, seq=seq, hidden=hidden), **rest}


def inside_ms(*, hosts: float, per_host: float, gb_per_s: float, **sizes: float) -> float:
    """As if all ranks were in one host."""
    ranks = hosts * per_host
    return 2 * (ranks - 1) / ranks * message_mb(**sizes) / gb_per_s


def _flat_ms(**values: float) -> float:
    return inside_ms(**{**values, "gb_per_s": values["nic_gb_per_s"]})


T2 = Question(
    id="T2",
    lab=LAB,
    text="The same message (micro-batch 2, sequence 8,192, hidden 4,096), but 16 tensor-parallel "
    "ranks over two hosts with a NIC of 50 GB/s for each GPU. How long does one hierarchical "
    "all-reduce take?",
    given={
        "batch": 2,
        "seq": 8192,
        "hidden": 4096,
        "hosts": 2,
        "per_host": 8,
        "gb_per_s": 450,
        "nic_gb_per_s": 50,
    },
    parameters=(BATCH, SEQ, HIDDEN, LINK, NIC),
    answer=Quantity(
        label="Hierarchical",
        unit="ms",
        formula=r"2\,\frac{G-1}{G}\frac{S}{B_1}+2\,\frac{N-1}{N}\frac{S/G}{B_2}",
        closed=lambda **v: hierarchical_ms(**two_hosts(**v)),
        engine=lambda **v: hierarchical_run(**two_hosts(**v)),
    ),
    also=(
        Quantity(
            label="Flat ring",
            unit="ms",
            formula=r"2\,\frac{GN-1}{GN}\frac{S}{B_2}",
            closed=_flat_ms,
            engine=lambda **v: flat_ring_run(**two_hosts(**v)),
        ),
        Quantity(
            label="Hierarchical against 8 ranks in a host",
            unit="\u00d7",
            closed=lambda **v: hierarchical_ms(**two_hosts(**v)) / inside_ms(**{**v, "hosts": 1}),
            engine=lambda **v: hierarchical_run(**two_hosts(**v)) / _one_run(tp=v["per_host"], **v),
        ),
        Quantity(
            label="Flat ring against 8 ranks in a host",
            unit="\u00d7",
            closed=lambda **v: _flat_ms(**v) / inside_ms(**{**v, "hosts": 1}),
            engine=lambda **v: flat_ring_run(**two_hosts(**v)) / _one_run(tp=v["per_host"], **v),
        ),
    ),
    slips=(
        Slip(
            name="flat ring",
            closed=_flat_ms,
            hint="That is one ring through all 16, at a NIC's speed. Hierarchically each NIC "
            "carries an eighth.",
        ),
        Slip(
            name="no host between",
            closed=inside_ms,
            hint="That is 16 ranks in one host. Half of them are behind NICs.",
        ),
        Slip(
            name="one shared NIC",
            closed=lambda **v: hierarchical_ms(sharing=v["per_host"], **two_hosts(**v)),
            hint="That is one NIC for a host. Each GPU has its own.",
        ),
    ),
    why="0.522 ms inside and 0.336 ms between hosts: 1.64 times one host. A flat ring: 9.6 times.",
)
HEADS = Parameter(name="heads", label="Heads", low=1, high=128)
KV_HEADS = Parameter(name="kv_heads", label="KV heads", low=1, high=128)
HEAD_DIM = Parameter(name="head_dim", label="Width of a head", low=16, high=256)


def qkv_rows(*, heads: float, kv_heads: float, head_dim: float, tp: float) -> float:
    """Rows of Q, K and V on a rank; a KV head is copied where there are fewer than ranks."""
    return head_dim * (heads / tp + 2 * max(1.0, kv_heads / tp))


def divided_rows(*, heads: float, kv_heads: float, head_dim: float, tp: float) -> float:
    """All rows over t."""
    return head_dim * (heads + 2 * kv_heads) / tp


def _qkv_run(*, tp: float, **_: float) -> float:
    """Rows of the three weights of a Llama 3 8B layer (32 heads, 8 KV heads of 128)."""
    block = block_of(load_model("llama3-8b"), "dense", batch=1, seq=128, layout=Layout(tp=int(tp)))
    own = ("q_proj.weight", "k_proj.weight", "v_proj.weight")
    return float(sum(value.shape[0] for value in block.parameters if value.path.endswith(own)))


T3 = Question(
    id="T3",
    lab=LAB,
    text="Grouped queries: 32 heads, 8 KV heads, 128 wide. 16 tensor-parallel ranks, so each KV "
    "head is held twice. How many rows of the Q, K and V weights are on a rank?",
    given={"heads": 32, "kv_heads": 8, "head_dim": 128, "tp": 16},
    parameters=(TP,),
    answer=Quantity(
        label="Rows on a rank",
        unit="rows",
        formula=r"d\left(\frac{a}{t}+2\max\left(1,\frac{a_{kv}}{t}\right)\right)",
        closed=qkv_rows,
        engine=_qkv_run,
    ),
    also=(
        Quantity(
            label="One sixteenth of all rows",
            unit="rows",
            formula=r"\frac{d\,(a+2a_{kv})}{t}",
            closed=divided_rows,
            engine=lambda tp, **_: _qkv_run(tp=1) / tp,
        ),
        Quantity(
            label="More than its share by",
            unit="\u00d7",
            closed=lambda **v: qkv_rows(**v) / divided_rows(**v),
            engine=lambda tp, **_: _qkv_run(tp=tp) / (_qkv_run(tp=1) / tp),
        ),
    ),
    slips=(
        Slip(
            name="divided evenly",
            closed=divided_rows,
            hint="That divides all rows by 16. A rank needs whole KV heads, and 8 do not reach 16 "
            "ranks: each is copied.",
        ),
        Slip(
            name="queries alone",
            closed=lambda head_dim, heads, tp, **_: head_dim * heads / tp,
            hint="Those are the queries' rows. Each rank also holds a K and a V head.",
        ),
        Slip(
            name="no grouped queries",
            closed=lambda head_dim, heads, tp, **_: head_dim * 3 * heads / tp,
            hint="That is plain attention with 32 KV heads. Here there are 8.",
        ),
    ),
    why="Two query heads (256 rows), one K and one V head (128 each): 1.33 times its share.",
)

QUESTIONS = (T1, T2, T3)

"""Questions F1 to F3: what FSDP holds, sends and hides."""

from __future__ import annotations

import numpy as np

from triosim.collective import collective
from triosim.lab.collectives import HOSTS, LINK, NIC, PER_HOST
from triosim.lab.networks import hosts as hosts_of
from triosim.lab.question import Parameter, Quantity, Question, Slip
from triosim.lab.slips import elements_for_bytes, four_bytes, gb_for_gib, no_own_part
from triosim.network.topology.description import Description
from triosim.train import TrainResult, TrainScenario, train

LAB = "fsdp"
GIB = 2**30
STATE_BYTES = 16  # 2 + 2 for weights and gradients, 12 for Adam and the master copy
PSI_8B = 8.03
GPUS = Parameter(name="gpus", label="GPUs", low=2, high=1024, marks=(2, 4, 8, 16, 32, 64, 128, 512))
MORE = Parameter(
    name="more_gpus", label="More GPUs", low=2, high=1024, marks=(8, 16, 32, 64, 128, 512, 1024)
)
BLOCK = Parameter(name="block_m", label="Parameters of a block (million)", low=1, high=5000)
FLOP = Parameter(name="tflop", label="Work of the block (TFLOP)", low=0.01, high=100, step=0.01,
                 whole=False)  # fmt: skip
SPEED = Parameter(name="tflops", label="Speed (TFLOP/s)", low=10, high=2000, step=10)


def state_gib(*, psi_b: float, gpus: float, **_: float) -> float:
    """16 bytes for each parameter, over N (ZeRO-3; Rajbhandari et al., arXiv 1910.02054)."""
    return STATE_BYTES * psi_b * 1e9 / gpus / GIB


def fall_gib(*, psi_b: float, gpus: float, more_gpus: float) -> float:
    return state_gib(psi_b=psi_b, gpus=gpus) - state_gib(psi_b=psi_b, gpus=more_gpus)


def _step(gpus: int, **settings: object) -> TrainResult:
    """Llama 3 8B with every layer recomputed, so that only state and traffic matter."""
    return train(
        TrainScenario(
            model="llama3-8b", machine="switch", gpus=gpus, seq_len=1024, recompute="full",
            **settings,  # type: ignore[arg-type]
        )
    )  # fmt: skip


def _state_run(gpus: int) -> float:
    """The most that parameters, gradients and optimizer state take together."""
    held = _step(gpus).fullest.bytes_by_category
    names = ("parameters", "gradients", "optimizer")
    total = np.sum([held[name] for name in names], axis=0)
    return float(total.max()) / GIB


def _fall_run(*, gpus: float, more_gpus: float, **_: float) -> float:
    return _state_run(int(gpus)) - _state_run(int(more_gpus))


def fsdp_gb(*, psi_b: float, gpus: float) -> float:
    """3 Psi (N-1)/N elements of 2 bytes: two gathers, one reduce-scatter (ORACLES Z2)."""
    return 3 * 2 * psi_b * (gpus - 1) / gpus


def _sent_run(*, gpus: float, ddp: bool = False, **_: float) -> float:
    replicas = {"dp_replicate": int(gpus), "dp_shard": 1} if ddp else {}
    run = _step(int(gpus), **replicas)
    return (run.sent_bytes("parameters") + run.sent_bytes("gradients")) / 1e9


def gather_ms(
    *, block_m: float, hosts: float, per_host: float, gb_per_s: float, nic_gb_per_s: float,
    **_: float,
) -> float:  # fmt: skip
    """max((N-1)/N S/(G B2), (GN-1)/(GN) S/B1) (ORACLES C11), S of 2 bytes a parameter."""
    size_mb, ranks = 2 * block_m, hosts * per_host
    between = (hosts - 1) / hosts * size_mb / per_host / nic_gb_per_s
    return max(between, (ranks - 1) / ranks * size_mb / gb_per_s)


def one_nic_ms(
    *, block_m: float, hosts: float, per_host: float, nic_gb_per_s: float, **_: float
) -> float:
    """A flat ring: everything through each NIC."""
    ranks = hosts * per_host
    return (ranks - 1) / ranks * 2 * block_m / nic_gb_per_s


def _gather(algorithm: str, *, block_m: float, hosts: float, per_host: float, gb_per_s: float,
            nic_gb_per_s: float) -> float:  # fmt: skip
    network: Description = hosts_of(int(per_host), gb_per_s, nic_gb_per_s)
    return collective(
        "all-gather",
        size_bytes=2e6 * block_m,
        ranks=int(hosts * per_host),
        algorithm=algorithm,
        topology=network,
    ).time_ms


def _gather_run(*, tflop: float, tflops: float, **values: float) -> float:
    return _gather("hierarchical-pipelined", **values)


def _flat_run(*, tflop: float, tflops: float, **values: float) -> float:
    return _gather("ring", **values)


def _times_hidden(*, tflop: float, tflops: float, **values: float) -> float:
    return 1e3 * tflop / tflops / gather_ms(**values)


def _times_hidden_run(*, tflop: float, tflops: float, **values: float) -> float:
    return 1e3 * tflop / tflops / _gather("hierarchical-pipelined", **values)


F1 = Question(
    id="F1",
    lab=LAB,
    text="Llama 3.1 8B (8.03 billion parameters, 16 bytes each for weights, gradients and Adam) "
    "goes from 8 to 128 GPUs under FSDP. By how much does the state on a GPU fall?",
    given={"psi_b": PSI_8B, "gpus": 8, "more_gpus": 128},
    parameters=(GPUS, MORE),
    answer=Quantity(
        label="Fall of the state on a GPU",
        unit="GiB",
        formula=r"16\,\Psi\left(\frac{1}{8}-\frac{1}{128}\right)",
        closed=fall_gib,
        engine=_fall_run,
        tolerance=2e-3,
        differs="The model has 8,030,261,248 parameters, 0.003 % more than 8.03 billion.",
    ),
    slips=(
        gb_for_gib(fall_gib),
        Slip(
            name="weights alone",
            closed=lambda **v: fall_gib(**v) / 8,
            hint="That counts the 2 bytes of the weights. Gradients and Adam's state are sharded "
            "as well: 16 bytes in all.",
        ),
        Slip(
            name="nothing sharded before",
            closed=lambda psi_b, gpus, more_gpus: (
                STATE_BYTES * psi_b * 1e9 / GIB - state_gib(psi_b=psi_b, gpus=more_gpus)
            ),
            hint="That compares with a whole copy. On 8 GPUs the state is already divided by 8.",
        ),
    ),
    why="14.96 GiB on 8 GPUs, 0.93 on 128.",
    published="TorchTitan: 82.4 GiB on 8 and 67.0 on 128 GPUs, 15.4 less (compiled 15.0).",
)
F2 = Question(
    id="F2",
    lab=LAB,
    text="The same model on 8 GPUs under FSDP, bf16, parameters gathered again in backward. How "
    "much does a GPU send in a step?",
    given={"psi_b": PSI_8B, "gpus": 8},
    parameters=(GPUS,),
    answer=Quantity(
        label="FSDP",
        unit="GB",
        formula=r"3\cdot 2\,\Psi\,\frac{N-1}{N}",
        closed=fsdp_gb,
        engine=_sent_run,
        tolerance=1e-4,
        differs="The model has 0.003 % more parameters than 8.03 billion.",
    ),
    also=(
        Quantity(
            label="FSDP on 128",
            unit="GB",
            closed=fsdp_gb,
            engine=_sent_run,
            at={"gpus": 128},
            tolerance=1e-4,
        ),
        Quantity(
            label="DDP on 8",
            unit="GB",
            formula=r"2\cdot 2\,\Psi\,\frac{N-1}{N}",
            closed=lambda **v: fsdp_gb(**v) * 2 / 3,
            engine=lambda **v: _sent_run(ddp=True, **v),
            tolerance=1e-4,
        ),
    ),
    slips=(
        Slip(
            name="gathered once",
            closed=lambda **v: fsdp_gb(**v) * 2 / 3,
            hint="That is one gather and one reduce-scatter, as in DDP. Parameters were given back "
            "after forward and are gathered again.",
        ),
        no_own_part(lambda psi_b, **_: 6 * psi_b),
        four_bytes(fsdp_gb),
        elements_for_bytes(fsdp_gb),
    ),
    why="Gather, gather again, reduce-scatter: three times 7/8 of 16.06 GB.",
)
F3 = Question(
    id="F3",
    lab=LAB,
    text="All-gather of one block (218 million parameters, bf16) over 16 hosts, each with 8 GPUs "
    "and 8 NICs of 50 GB/s (450 GB/s inside). How long does it take?",
    given={
        "block_m": 218,
        "hosts": 16,
        "per_host": 8,
        "gb_per_s": 450,
        "nic_gb_per_s": 50,
        "tflop": 8.25,
        "tflops": 400,
    },
    parameters=(BLOCK, HOSTS, PER_HOST, LINK, NIC, FLOP, SPEED),
    answer=Quantity(
        label="All-gather",
        unit="ms",
        formula=r"\max\left(\frac{N-1}{N}\frac{S}{G\,B_2},\;\frac{GN-1}{GN}\frac{S}{B_1}\right)",
        closed=gather_ms,
        engine=_gather_run,
        tolerance=1e-6,
    ),
    also=(
        Quantity(
            label="Flat ring",
            unit="ms",
            formula=r"\frac{GN-1}{GN}\frac{S}{B_2}",
            closed=one_nic_ms,
            engine=_flat_run,
        ),
        Quantity(
            label="The block computes",
            unit="ms",
            formula=r"\frac{8.25\ \mathrm{TFLOP}}{400\ \mathrm{TFLOP/s}}",
            closed=lambda tflop, tflops, **_: 1e3 * tflop / tflops,
            engine=lambda **v: _times_hidden_run(**v) * _gather_run(**v),
            tolerance=1e-6,
        ),
        Quantity(
            label="That is longer by",
            unit="\u00d7",
            closed=_times_hidden,
            engine=_times_hidden_run,
            tolerance=1e-6,
        ),
    ),
    slips=(
        Slip(
            name="one NIC",
            closed=one_nic_ms,
            hint="That sends everything through one NIC at a time. A host's eight NICs each bring "
            "an eighth, and the GPUs hand it on inside.",
        ),
        four_bytes(gather_ms),
        elements_for_bytes(gather_ms),
    ),
    why="436 MB, of which 15/16 come from other hosts over 400 GB/s. The block computes for "
    "20.6 ms: twenty times as long, so the gather is hidden.",
)

QUESTIONS = (F1, F2, F3)

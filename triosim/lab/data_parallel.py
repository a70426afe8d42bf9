"""Questions D1 to D3: the all-reduce of gradients, and what backward hides of it."""

from __future__ import annotations

from triosim.collective import collective
from triosim.lab import buckets as step
from triosim.lab.collectives import LINK, SPEEDS
from triosim.lab.question import Parameter, Quantity, Question, Slip
from triosim.lab.slips import no_own_part

LAB = "data-parallel"
FP32_BYTES = 4
PARAMETERS = Parameter(
    name="parameters_m", label="Parameters (million)", low=0.1, high=1e5, whole=False,
    marks=(5, 10, 25.56, 50, 100, 138.36, 350, 1000),
)  # fmt: skip
GPUS = Parameter(
    name="gpus", label="GPUs", low=2, high=1024, marks=(2, 4, 8, 16, 32, 64, 256, 1024)
)
BACKWARD = Parameter(name="backward_ms", label="Backward (ms)", low=1, high=200)
BUCKETS = Parameter(name="buckets", label="Equal buckets", low=1, high=16)
GRADIENTS = Parameter(
    name="gradients_mb", label="Gradients (MB)", low=1, high=1000, step=0.01, whole=False
)
ALGBW = Parameter(
    name="algbw_gb_per_s", label="algbw of the all-reduce (GB/s)", low=0.1, high=1000, whole=False,
    marks=(0.5, 1, 1.278, 2, 5, *SPEEDS),
)  # fmt: skip


def gradients_bytes(parameters_m: float) -> float:
    """Of 32-bit gradients."""
    return parameters_m * 1e6 * FP32_BYTES


def reduce_ms(*, parameters_m: float, gpus: float, gb_per_s: float) -> float:
    """2(n-1)/n S/B."""
    return 2 * (gpus - 1) / gpus * gradients_bytes(parameters_m) / gb_per_s / 1e6


def algbw_ms(*, parameters_m: float, gb_per_s: float, **_: float) -> float:
    """S over an algorithm bandwidth."""
    return gradients_bytes(parameters_m) / gb_per_s / 1e6


def _reduce_run(*, parameters_m: float, gpus: float, gb_per_s: float) -> float:
    return collective(
        size_bytes=gradients_bytes(parameters_m),
        ranks=int(gpus),
        algorithm="ring",
        link_gb_per_s=gb_per_s,
    ).time_ms


def exposed_ms(
    *, backward_ms: float, buckets: float, gradients_mb: float, algbw_gb_per_s: float
) -> float:
    """t + (k-1) max(0, t - r): the last bucket's time t, and the queue before it.

    k buckets become ready every r = backward/k and go one after the other.
    """
    one = bucket_ms(buckets=buckets, gradients_mb=gradients_mb, algbw_gb_per_s=algbw_gb_per_s)
    return one + (buckets - 1) * max(0.0, one - backward_ms / buckets)


def bucket_ms(*, buckets: float, gradients_mb: float, algbw_gb_per_s: float, **_: float) -> float:
    """One bucket's all-reduce."""
    return gradients_mb / buckets / algbw_gb_per_s


def all_buckets_ms(*, gradients_mb: float, algbw_gb_per_s: float, **_: float) -> float:
    """All of them, nothing hidden."""
    return gradients_mb / algbw_gb_per_s


def _exposed_run(*, buckets: float, **values: float) -> float:
    return step.exposed_ms(buckets=int(buckets), **values)


# Layers have a whole number of bytes.
TOLERANCE = 1e-6

D1 = Question(
    id="D1",
    lab=LAB,
    text="ResNet-50: 25.56 million gradients in fp32, a ring all-reduce over 8 GPUs, each link "
    "65 GB/s. How long does it take?",
    given={"parameters_m": 25.56, "gpus": 8, "gb_per_s": 65},
    parameters=(PARAMETERS, GPUS, LINK),
    answer=Quantity(
        label="8 GPUs",
        unit="ms",
        formula=r"2\,\frac{n-1}{n}\cdot\frac{4\,\Psi}{B}",
        closed=reduce_ms,
        engine=_reduce_run,
    ),
    also=(
        Quantity(label="16 GPUs", unit="ms", closed=reduce_ms, engine=_reduce_run, at={"gpus": 16}),
    ),
    slips=(
        Slip(
            name="algbw for busbw",
            closed=algbw_ms,
            hint="That takes 65 GB/s for algbw, S/t. It is the speed of a link, and every byte "
            "passes a link almost twice.",
        ),
        no_own_part(lambda **v: 2 * algbw_ms(**v)),
        Slip(
            name="one pass",
            closed=lambda **v: reduce_ms(**v) / 2,
            hint="That is half: a reduce-scatter without the all-gather, or 2-byte gradients.",
        ),
    ),
    why="102.24 MB, of which each GPU sends 2 \u00b7 7/8. More GPUs hardly change it: the factor "
    "tends to 2. Read as algbw, 65 GB/s would give 1.57 ms for any number of GPUs.",
)
D2 = Question(
    id="D2",
    lab=LAB,
    text="Backward takes 40 ms. Four equal buckets of gradients (102.24 MB together) are ready at "
    "10, 20, 30 and 40 ms; algbw 10 GB/s. How much communication is exposed?",
    given={"backward_ms": 40, "buckets": 4, "gradients_mb": 102.24, "algbw_gb_per_s": 10},
    parameters=(BACKWARD, BUCKETS, GRADIENTS, ALGBW),
    answer=Quantity(
        label="Exposed",
        unit="ms",
        formula=r"t+(k-1)\max(0,\,t-r),\quad t=\frac{S}{k\,\mathrm{algbw}}",
        closed=exposed_ms,
        engine=_exposed_run,
        tolerance=TOLERANCE,
        differs="A bucket holds a whole number of bytes.",
    ),
    also=(
        Quantity(
            label="One bucket",
            unit="ms",
            closed=exposed_ms,
            engine=_exposed_run,
            at={"buckets": 1},
            tolerance=TOLERANCE,
        ),
    ),
    slips=(
        Slip(
            name="no overlap",
            closed=all_buckets_ms,
            hint="That is all four buckets. Three of them are over before backward ends.",
        ),
        Slip(
            name="all hidden",
            closed=lambda **_: 0.0,
            hint="The last bucket is ready only when backward ends: nothing is left to hide it.",
        ),
        Slip(
            name="one bucket too many",
            closed=lambda **v: 2 * bucket_ms(**v),
            hint="The third bucket is done at 32.6 ms, before the fourth is ready.",
        ),
    ),
    why="A bucket takes 2.56 ms and the next one is 10 ms away: only the last is exposed.",
)
D3 = Question(
    id="D3",
    lab=LAB,
    text="The same step with algbw 1.278 GB/s: a bucket takes 20 ms. How much is exposed now?",
    given={"backward_ms": 40, "buckets": 4, "gradients_mb": 102.24, "algbw_gb_per_s": 1.278},
    parameters=(BACKWARD, BUCKETS, GRADIENTS, ALGBW),
    answer=Quantity(
        label="Exposed",
        unit="ms",
        formula=r"t+(k-1)\max(0,\,t-r),\quad t=\frac{S}{k\,\mathrm{algbw}}",
        closed=exposed_ms,
        engine=_exposed_run,
        tolerance=TOLERANCE,
        differs="A bucket holds a whole number of bytes.",
    ),
    slips=(
        Slip(
            name="last bucket alone",
            closed=bucket_ms,
            hint="Buckets queue: the second is ready at 20 ms, but the first keeps the link until "
            "30 ms.",
        ),
        Slip(
            name="starts at 0",
            closed=lambda backward_ms, **v: all_buckets_ms(**v) - backward_ms,
            hint="The link is idle until the first bucket is ready, at 10 ms.",
        ),
        Slip(
            name="no overlap",
            closed=all_buckets_ms,
            hint="That is all four buckets after backward. The first starts at 10 ms.",
        ),
        Slip(
            name="end for exposed",
            closed=lambda backward_ms, **v: backward_ms + exposed_ms(backward_ms=backward_ms, **v),
            hint="That is when the last bucket ends. Exposed is what comes after backward.",
        ),
    ),
    why="The link is busy from 10 ms on: 10 + 4 \u00b7 20 = 90 ms, and backward ends at 40 ms.",
)

QUESTIONS = (D1, D2, D3)

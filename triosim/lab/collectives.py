"""Questions C1 to C3: what a collective takes. Sizes are of the full array (nccl-tests)."""

from __future__ import annotations

from triosim.collective import collective
from triosim.lab.networks import GB, hosts
from triosim.lab.question import Parameter, Quantity, Question, Slip
from triosim.lab.slips import no_own_part
from triosim.network.closed_forms import bus_factor

LAB = "collectives"
SIZES_MB = tuple(float(f"{m}e{e}") for e in range(-1, 5) for m in (1, 2, 5))
SPEEDS = (10.0, 25.0, 50.0, 65.0, 100.0, 200.0, 300.0, 450.0, 900.0)
SIZE = Parameter(
    name="size_mb", label="Array (MB)", low=1e-4, high=1e5, whole=False, marks=SIZES_MB
)
RANKS = Parameter(name="ranks", label="GPUs", low=2, high=128)
LINK = Parameter(
    name="gb_per_s", label="Link, one direction (GB/s)", low=0.1, high=2000, whole=False,
    marks=SPEEDS,
)  # fmt: skip
LATENCY = Parameter(
    name="latency_us", label="Latency of a step (\u00b5s)", low=0.1, high=100, step=0.1, whole=False
)
HOSTS = Parameter(name="hosts", label="Hosts", low=2, high=16)
PER_HOST = Parameter(name="per_host", label="GPUs in a host", low=2, high=16)
NIC = Parameter(
    name="nic_gb_per_s", label="NIC of a GPU (GB/s)", low=0.1, high=2000, whole=False, marks=SPEEDS
)
MB = 1e6


def ring_ms(*, size_mb: float, ranks: float, gb_per_s: float, **_: float) -> float:
    """2(n-1)/n S/B (Patarasu and Yuan, 2009)."""
    return 2 * (ranks - 1) / ranks * size_mb / gb_per_s


def ring_run(*, size_mb: float, ranks: float, gb_per_s: float, **_: float) -> float:
    return collective(
        size_bytes=size_mb * MB, ranks=int(ranks), algorithm="ring", link_gb_per_s=gb_per_s
    ).time_ms


def _algbw_run(*, size_mb: float, ranks: float, gb_per_s: float) -> float:
    found = collective(
        size_bytes=size_mb * MB, ranks=int(ranks), algorithm="ring", link_gb_per_s=gb_per_s
    )
    assert found.algbw_gb_per_s is not None
    return found.algbw_gb_per_s


def _busbw_run(*, ranks: float, **values: float) -> float:
    return _algbw_run(ranks=ranks, **values) * bus_factor(int(ranks))


def crossover_mb(*, ranks: float, gb_per_s: float, latency_us: float) -> float:
    """(n - 1 - l) a B / (l - (n-1)/n) with l = ceil(log2 n): where both times are equal."""
    saved_mb = _latency_saved_mb(ranks=ranks, gb_per_s=gb_per_s, latency_us=latency_us)
    return saved_mb / (levels(ranks) - (ranks - 1) / ranks)


def levels(ranks: float) -> int:
    """Of a binomial tree: ceil(log2 n)."""
    return (int(ranks) - 1).bit_length()


def _latency_saved_mb(*, ranks: float, gb_per_s: float, latency_us: float) -> float:
    """What a link carries in the steps that a tree saves on the way up."""
    return (ranks - 1 - levels(ranks)) * latency_us * 1e-6 * gb_per_s * GB / MB


def crossover_run(*, ranks: float, gb_per_s: float, latency_us: float) -> float:
    """Halving the interval in which the tree stops being the faster one; 0 where it never is."""

    def tree_is_faster(size_mb: float) -> bool:
        tree, ring = (
            collective(
                size_bytes=size_mb * MB, ranks=int(ranks), algorithm=name, link_gb_per_s=gb_per_s,
                latency_us=latency_us,
            ).time_ms
            for name in ("tree", "ring")
        )  # fmt: skip
        return tree < ring

    low, high = 1 / MB, 1.0
    if not tree_is_faster(low):
        return 0.0
    while tree_is_faster(high):
        high *= 2
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if tree_is_faster(middle) else (low, middle)
    return high


def hierarchical_ms(
    *,
    size_mb: float,
    hosts: float,
    per_host: float,
    gb_per_s: float,
    nic_gb_per_s: float,
    sharing: float = 1,
) -> float:
    """Scatter inside, all-reduce of a share between hosts, gather inside (ORACLES C4).

    2(G-1)/G S/B1 + 2(N-1)/N S/G/B2, the second term times G where a host's GPUs share one NIC.
    """
    inside = 2 * (per_host - 1) / per_host * size_mb / gb_per_s
    between = 2 * (hosts - 1) / hosts * size_mb / per_host / nic_gb_per_s
    return inside + between * sharing


def flat_ring_ms(
    *, size_mb: float, hosts: float, per_host: float, nic_gb_per_s: float, **_: float
) -> float:
    """One ring through all GPUs runs at the speed of its slowest link, a NIC."""
    ranks = hosts * per_host
    return 2 * (ranks - 1) / ranks * size_mb / nic_gb_per_s


def _scatter_inside_ms(*, size_mb: float, per_host: float, gb_per_s: float, **_: float) -> float:
    return (per_host - 1) / per_host * size_mb / gb_per_s


def over_hosts_ms(
    algorithm: str,
    *,
    operation: str = "all-reduce",
    shared_nic: bool = False,
    size_mb: float,
    hosts_: float,
    per_host: float,
    gb_per_s: float,
    nic_gb_per_s: float,
) -> float:
    """The engine's time on hosts with a switch inside."""
    network = hosts(int(per_host), gb_per_s, nic_gb_per_s, shared_nic=shared_nic)
    return collective(
        operation,
        size_bytes=size_mb * MB,
        ranks=int(hosts_ * per_host),
        algorithm=algorithm,
        topology=network,
    ).time_ms


def hierarchical_run(*, hosts: float, **values: float) -> float:
    return over_hosts_ms("hierarchical", hosts_=hosts, **values)  # type: ignore[arg-type]


def flat_ring_run(*, hosts: float, **values: float) -> float:
    return over_hosts_ms("ring", hosts_=hosts, **values)  # type: ignore[arg-type]


def _shared_run(*, hosts: float, **values: float) -> float:
    return over_hosts_ms("hierarchical", hosts_=hosts, shared_nic=True, **values)  # type: ignore[arg-type]


C1 = Question(
    id="C1",
    lab=LAB,
    text="An all-reduce of 1 GB over 8 GPUs in a ring of 100 GB/s links. How long does it take?",
    given={"size_mb": 1000, "ranks": 8, "gb_per_s": 100},
    parameters=(SIZE, RANKS, LINK),
    answer=Quantity(
        label="Time",
        unit="ms",
        formula=r"2\,\frac{n-1}{n}\cdot\frac{S}{B}",
        closed=ring_ms,
        engine=ring_run,
    ),
    also=(
        Quantity(
            label="algbw",
            unit="GB/s",
            formula=r"\frac{S}{t}=\frac{B\,n}{2(n-1)}",
            closed=lambda ranks, gb_per_s, **_: gb_per_s * ranks / (2 * (ranks - 1)),
            engine=_algbw_run,
        ),
        Quantity(
            label="busbw",
            unit="GB/s",
            formula=r"\frac{S}{t}\cdot 2\,\frac{n-1}{n}=B",
            closed=lambda gb_per_s, **_: gb_per_s,
            engine=_busbw_run,
        ),
    ),
    slips=(
        no_own_part(lambda size_mb, gb_per_s, **_: 2 * size_mb / gb_per_s),
        Slip(
            name="algbw for busbw",
            closed=lambda size_mb, gb_per_s, **_: size_mb / gb_per_s,
            hint="That is S/B, as if the link's speed were algbw. Every byte passes a link twice, "
            "once to be added and once to be handed back.",
        ),
        Slip(
            name="one pass",
            closed=lambda **v: ring_ms(**v) / 2,
            hint="That is a reduce-scatter. An all-reduce also gathers: twice as much.",
        ),
        Slip(
            name="n\u22121 whole arrays",
            closed=lambda ranks, size_mb, gb_per_s: 2 * (ranks - 1) * size_mb / gb_per_s,
            hint="Each of the n \u2212 1 steps moves one n-th of the array, not all of it.",
        ),
    ),
    why="Every GPU sends 2 \u00b7 7/8 of the array: 1.75 GB at 100 GB/s.",
)
C2 = Question(
    id="C2",
    lab=LAB,
    text="5 \u00b5s for each step, links of 100 GB/s, 8 GPUs. Below which size does a binomial "
    "tree "
    "(not pipelined) beat the ring?",
    given={"ranks": 8, "gb_per_s": 100, "latency_us": 5},
    parameters=(RANKS, LINK, LATENCY),
    answer=Quantity(
        label="Crossover",
        unit="MB",
        formula=r"S=\frac{(n-1-\ell)\,\alpha B}{\ell-(n-1)/n},\;\ell=\lceil\log_2 n\rceil",
        closed=crossover_mb,
        engine=crossover_run,
        tolerance=1e-6,
        differs="The engine's crossover is searched for between two sizes.",
    ),
    also=(
        Quantity(
            label="With 64 GPUs",
            unit="MB",
            closed=crossover_mb,
            engine=crossover_run,
            at={"ranks": 64},
            tolerance=1e-6,
        ),
    ),
    slips=(
        Slip(
            name="latency alone",
            closed=lambda **v: 2 * _latency_saved_mb(**v),
            hint="The tree saves 2(n \u2212 1 \u2212 \u2113) steps, but it also sends more: "
            "2\u2113 whole arrays "
            "against 2(n \u2212 1)/n. Divide by the difference.",
        ),
        Slip(
            name="no (n\u22121)/n",
            closed=lambda ranks, **v: _latency_saved_mb(ranks=ranks, **v) / levels(ranks),
            hint="The ring's own bytes, (n \u2212 1)/n of the array each way, have to be "
            "subtracted.",
        ),
    ),
    why="The tree saves 4 of 7 steps each way (20 \u00b5s) and sends 3 \u2212 7/8 = 2.125 arrays "
    "more.",
)
C3 = Question(
    id="C3",
    lab=LAB,
    text="An all-reduce of 1 GB over two hosts of 8 GPUs: 450 GB/s inside, a NIC of 50 GB/s for "
    "each GPU. How long does the hierarchical algorithm take, one level after the other?",
    given={"size_mb": 1000, "hosts": 2, "per_host": 8, "gb_per_s": 450, "nic_gb_per_s": 50},
    parameters=(SIZE, HOSTS, PER_HOST, LINK, NIC),
    answer=Quantity(
        label="Hierarchical, a NIC for each GPU",
        unit="ms",
        formula=r"2\,\frac{G-1}{G}\frac{S}{B_1}+2\,\frac{N-1}{N}\frac{S/G}{B_2}",
        closed=hierarchical_ms,
        engine=hierarchical_run,
    ),
    also=(
        Quantity(
            label="One NIC for the host",
            unit="ms",
            formula=r"\text{second term}\times G",
            closed=lambda **v: hierarchical_ms(sharing=v["per_host"], **v),
            engine=_shared_run,
        ),
        Quantity(
            label="Flat ring",
            unit="ms",
            formula=r"2\,\frac{GN-1}{GN}\frac{S}{B_2}",
            closed=flat_ring_ms,
            engine=flat_ring_run,
        ),
    ),
    slips=(
        Slip(
            name="flat ring",
            closed=flat_ring_ms,
            hint="That is one ring through all 16 GPUs, which runs at a NIC's speed. Between hosts "
            "only an eighth of the array has to travel on each NIC.",
        ),
        Slip(
            name="one shared NIC",
            closed=lambda **v: hierarchical_ms(sharing=v["per_host"], **v),
            hint="That is one NIC for the host. Here each GPU has its own, and they work at once.",
        ),
        Slip(
            name="inside alone",
            closed=lambda **v: 2 * _scatter_inside_ms(**v),
            hint="That is the part inside a host. The hosts still have to add up their sums.",
        ),
        Slip(
            name="no gather inside",
            closed=lambda **v: hierarchical_ms(**v) - _scatter_inside_ms(**v),
            hint="The array is scattered inside the host before and gathered again after: the term "
            "inside counts twice.",
        ),
    ),
    why="3.89 ms inside (scatter and gather), 2.5 ms between hosts on eight NICs at once.",
)

QUESTIONS = (C1, C2, C3)

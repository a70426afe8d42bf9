"""Ready-made scenarios: the running example of the first page, and its doors."""

from __future__ import annotations

from dataclasses import dataclass

from triosim import Scenario
from triosim.train import TrainScenario


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """A scenario with what there is to see in it."""

    title: str
    text: str
    icon: str
    scenario: Scenario


# The seminar's: Llama 3.1 8B on one host with eight H100 of 95 GB, as TorchTitan published it.
RUNNING = TrainScenario(
    model="llama3-8b",
    gpu="h100-96gb",
    machine="seminar-h100",
    gpus=8,
    stack="torchtitan-2024",
    micro_batch_size=2,
    seq_len=8192,
    recompute="selective-op",
)
FIRST = Scenario(case=2, gpus=4, ptp_bandwidth_gb_per_s=25)
EXAMPLES = (
    Example(
        title="Data parallel",
        text="Does backward hide the all-reduce?",
        icon=":material/content_copy:",
        scenario=FIRST,
    ),
    Example(
        title="Pipeline",
        text="Where do the bubbles come from?",
        icon=":material/linear_scale:",
        scenario=Scenario(
            case=4,
            gpus=4,
            batch_size_sim=32,
            micro_batch_size=4,
            ptp_bandwidth_gb_per_s=300,
            resident=True,
        ),
    ),
    Example(
        title="Optical ring",
        text="A ring of circuits over a mesh of 16 GPUs.",
        icon=":material/hub:",
        scenario=Scenario(case=1, gpus=16, interconnect="optical", mesh_rows=4, circuit_setup_ms=1),
    ),
    Example(
        title="One slow GPU",
        text="What do seven do while one is half as fast?",
        icon=":material/hourglass_bottom:",
        scenario=Scenario(case=2, gpus=8, rank_speed={3: 0.5}),
    ),
    Example(
        title="Two hosts",
        text="What does leaving the host cost?",
        icon=":material/dns:",
        scenario=Scenario(case=2, gpus=16, topology="seminar-h100"),
    ),
    Example(
        title="A dead link",
        text="Who takes over on a torus of 16?",
        icon=":material/link_off:",
        scenario=Scenario(
            case=2,
            gpus=16,
            topology="torus:4x4",
            ptp_bandwidth_gb_per_s=25,
            dead_links=("5-6",),
        ),
    ),
)

"""Ready-made scenarios: the one on the first page and the doors beside it."""

from __future__ import annotations

from dataclasses import dataclass

from triosim import Scenario


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """A scenario with what there is to see in it."""

    title: str
    text: str
    icon: str
    scenario: Scenario


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
        title="Optical circuits",
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
        title="Two H100 hosts",
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

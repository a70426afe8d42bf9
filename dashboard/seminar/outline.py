"""The seminar's outline: its nodes in the mind map's order, and where each is to be seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from dashboard.compare_links import link_to as compare_link
from dashboard.examples import RUNNING
from dashboard.lab.fsdp import BLOCK as FSDP_BLOCK
from dashboard.links import Parameters
from dashboard.seminar.places import Place, place_of_question
from dashboard.settings import VERSION
from dashboard.sweep_links import SEARCH_MODE
from dashboard.train_links import link_to as train_link
from dashboard.validation_links import TABS as VALIDATION_TABS
from triosim.train import TrainScenario
from triosim.validation import load_source, rows_of

RACK: Parameters = {
    "v": VERSION, "net": "seminar-h100", "ranks": "16", "algo": "hierarchical",
}  # fmt: skip
SEARCH_405B: Parameters = {
    "v": VERSION, "part": SEARCH_MODE, "find_model": "llama3.1-405b", "find_gpus": "512",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A node: what there is to see, its questions, and links.

    The first link opens the first question with these `settings`; `more` are others by label.
    """

    title: str
    text: str
    questions: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    more: Mapping[str, Place] = field(default_factory=dict)

    def place(self, name: str) -> Place:
        """Where one of its questions is asked."""
        return place_of_question(name, self.settings if name == self.questions[0] else {})


@lru_cache(maxsize=1)
def published_pipelines() -> Sequence[TrainScenario]:
    """405B on 512 GPUs as TorchTitan ran it: 1F1B, and interleaved."""
    rows = rows_of(load_source("torchtitan"))
    return [row.scenario for row in rows if row.number in (12, 13)]


@lru_cache(maxsize=1)
def outline() -> Sequence[Node]:
    """All nodes, in the mind map's order."""
    first, second = published_pipelines()
    search = Place(page="pages/sweep.py", address=SEARCH_405B)
    train = Place(page="pages/train.py", address=train_link(RUNNING))
    machines = Place(page="pages/train.py", address={**train_link(first), "look": "Mesh"})
    both = Place(page="pages/compare.py", address=compare_link([first, second]))
    rack = Place(page="pages/network.py", address=RACK)
    why = Place(page="pages/validation.py", address={"v": VERSION, "aspect": VALIDATION_TABS[-1]})
    return (
        Node(
            title="What problem does TorchTitan solve?",
            text="405B on 512 GPUs: no single parallelism fits. Search says why each fails.",
            questions=("A1",), more={"A step of 8B": train, "Search for 405B": search},
        ),
        Node(
            title="Fully Sharded Data Parallel", text="Bytes on a rank, and the exposed gather.",
            questions=("F1", "F2", "F3"),
        ),
        Node(
            title="Tensor Parallel", text="Column, row, sequence parallel; leaving the host.",
            questions=("T1", "T2", "T3"),
        ),
        Node(
            title="Pipeline Parallel", text="Schedules, their bubbles and their memory.",
            questions=("P1", "P2", "P3"),
        ),
        Node(
            title="DTensor", text="Mesh and placements: who holds what, and what moves it.",
            questions=("M1", "M2", "M3"),
        ),
        Node(
            title="FSDP1 and FSDP2", text="A flat parameter, or rows of each.",
            questions=("F3",), settings={"view": FSDP_BLOCK, "shard": "4"},
        ),
        Node(
            title="RingAttention and Ulysses", text="Bytes, causal balance, the crossover.",
            questions=("L1", "L2"),
        ),
        Node(
            title="Arctic Ulysses", text="Prefill only: TP 8, SP 8, SP 2 \u00d7 TP 4.",
            questions=("L3",),
        ),
        Node(
            title="PyTorch 2: kernel fusion", text="Every pair scored; taken, or refused and why.",
            questions=("K1",),
        ),
        Node(
            title="Reducing activation recomputation",
            text="None, selective, full: bytes and time.",
            questions=("R1", "R2"),
        ),
        Node(
            title="CUDA graphs", text="Launches with and without, and their price.",
            questions=("K2",),
        ),
        Node(
            title="Eight H100 in a host, two hosts in a rack",
            text="NVSwitch, NICs and the ToR; the spine's speed is an assumption.",
            questions=("C3",), more={"Network": rack},
        ),
        Node(
            title="Why does torch.compile gain more on 128 GPUs?",
            text="Two published pairs, and what each hypothesis can explain.",
            questions=("K3",), more={"The published pairs": why},
        ),
        Node(
            title="What does the configuration say?",
            text="Machines, groups, and the links they use.",
            questions=("A1", "A2"), more={"405B on its machines": machines},
        ),
        Node(
            title="Which configuration is better?",
            text="It needs a goal: tokens/s, memory, cost.",
            questions=("A3",), more={"Compare both": both},
        ),
        Node(
            title="Half the memory for 10 % of the throughput", text="What the freed memory buys.",
            questions=("R3",),
        ),
    )  # fmt: skip

"""What a search found: every layout with its place, or why it has none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from triosim.legal import SCHEMA_VERSION
from triosim.search.candidates import Simulated, Sizes
from triosim.shown import Shown
from triosim.train import TrainScenario

# How a layout ended, the best first.
BEST, SLOWER, BOUNDED, OVER_LIMIT, NO_MEMORY, ILLEGAL = (
    "best", "slower", "bounded", "over limit", "out of memory", "not legal",
)  # fmt: skip
OUTCOMES: Mapping[str, str] = {
    BEST: "the fastest that fits",
    SLOWER: "simulated, and slower",
    BOUNDED: "cannot be faster, by a bound; not simulated",
    OVER_LIMIT: "costs or takes more than allowed",
    NO_MEMORY: "fits in no way that was tried",
    ILLEGAL: "not legal for this model, batch or number of GPUs",
}


_SHORT_NAMES = {"dp_replicate": "replicate", "dp_shard": "shard"}


@dataclass(frozen=True, kw_only=True)
class Ranked:
    """One layout.

    `scenario` is its best plan (of those that do not fit the smallest), None where none is legal;
    `at_least_ms` a bound of its step time where it was not simulated. `reason` says why it is not
    the best.
    """

    sizes: Sizes
    outcome: str
    reason: str
    scenario: TrainScenario | None
    figures: Simulated | None
    at_least_ms: float | None
    at_least_gib: float | None

    @property
    def step_ms(self) -> float | None:
        return None if self.figures is None else self.figures.step_ms

    @property
    def layout(self) -> str:
        """The axes of the mesh that are more than one GPU long."""
        sizes = [f"{_SHORT_NAMES.get(axis, axis)} {n:,}" for axis, n in self.sizes.items() if n > 1]
        return " \u00b7 ".join(sizes) or "one GPU"

    @property
    def plan(self) -> str:
        """The choices of the layout's best plan."""
        chosen = self.scenario
        if chosen is None:
            return ""
        kept = chosen.recompute == "none"
        said = [f"micro-batch {chosen.micro_batch_size}"]
        said.append("no recompute" if kept else f"{chosen.recompute} recompute")
        said += [f"ZeRO-{chosen.zero}"] if chosen.zero else []
        said += [chosen.schedule] if chosen.pp > 1 else []
        return ", ".join(said)

    def row(self) -> dict[str, Any]:
        """Plain values for a table."""
        chosen = self.scenario
        figures = self.figures
        return {
            **self.sizes,
            "outcome": self.outcome,
            "step_ms": self.step_ms,
            "at_least_ms": self.at_least_ms,
            "tokens_per_s_per_gpu": None if figures is None else figures.tokens_per_s_per_gpu,
            "mfu": None if figures is None else figures.mfu,
            "peak_memory_gib": None if figures is None else figures.peak_memory_bytes / 2**30,
            "at_least_gib": self.at_least_gib,
            "micro_batch_size": None if chosen is None else chosen.micro_batch_size,
            "recompute": None if chosen is None else chosen.recompute,
            "schedule": None if chosen is None or chosen.pp == 1 else chosen.schedule,
            "zero": None if chosen is None else chosen.zero,
            "reason": self.reason,
        }


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SearchResult(Shown):
    """All layouts, the best first; those that are not legal come last.

    `plans` were legal with their choices of micro-batch, recompute and schedule, of which
    `simulated` were run and the rest excluded by bounds. The first `exact` layouts are simulated,
    so that their order is certain.
    """

    ranked: tuple[Ranked, ...]
    plans: int
    simulated: int
    exact: int
    assumptions: tuple[str, ...]

    @property
    def best(self) -> Ranked | None:
        """The fastest layout that fits; None where none does."""
        return self.ranked[0] if self.ranked and self.ranked[0].outcome == BEST else None

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each layout."""
        return pd.DataFrame([one.row() for one in self.ranked])

    def counts(self) -> dict[str, int]:
        """How many layouts ended how."""
        counts = dict.fromkeys(OUTCOMES, 0)
        for one in self.ranked:
            counts[one.outcome] += 1
        return counts

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "schema_version": SCHEMA_VERSION,
            "plans": self.plans,
            "simulated": self.simulated,
            "exact": self.exact,
            "counts": self.counts(),
            "assumptions": list(self.assumptions),
            "layouts": [
                {
                    **one.row(),
                    "parts_ms": None if one.figures is None else _parts(one.figures),
                    "scenario": None if one.scenario is None else one.scenario.to_dict(),
                }
                for one in self.ranked
            ],
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"


def _parts(figures: Simulated) -> list[dict[str, Any]]:
    plain = asdict(figures)["parts_ms"]
    return [{"kind": kind, "part": part, "ms": ms} for (kind, part), ms in plain.items()]

"""Why a layout is not the best, in a few words."""

from __future__ import annotations

from triosim.compare import Delta
from triosim.search.candidates import Candidate, Simulated
from triosim.train import TrainScenario

GIB = 2**30
NOTABLE = 0.05  # of the step
ALIKE = 5e-4  # of the best's step: what rounds to 0.0 %
TENSOR = ("tensor parallel", "tokens", "context parallel")


def slower(
    mine: Simulated, scenario: TrainScenario, best: Simulated, *, across_hosts: bool, forced: bool
) -> str:
    """What takes most more than in the best layout.

    `forced` says that it does not fit without its recomputation.
    """
    more = mine.step_ms / best.step_ms - 1
    if more < ALIKE:
        return "as fast as the best" if more == 0 else "as fast as the best within 0.05 %"
    keys = mine.parts_ms.keys() | best.parts_ms.keys()
    grown = {key: mine.parts_ms.get(key, 0.0) - best.parts_ms.get(key, 0.0) for key in keys}
    kind, part = max(sorted(grown), key=grown.__getitem__)
    text = Delta(kind=kind, part=part, ms=grown[kind, part]).words
    text += f", {percent(grown[kind, part] / best.step_ms)} of the best's step more"
    if part == "recompute":
        text += f" ({scenario.recompute}{', to fit in memory' if forced else ''})"
    elif kind != "compute" and across_hosts and any(name in part for name in TENSOR):
        text += ", across hosts"
    return f"{percent(more)} slower: {text}"


def bounded(candidate: Candidate, best: Simulated) -> str:
    """What its least time already consists of."""
    bound, scenario = candidate.bound, candidate.scenario
    assert bound is not None
    axes = _inside(scenario, candidate.across_hosts)
    # What a person would call it, and what share of the step it is.
    parts = {
        f"{percent(bound.sent_s / bound.seconds)} of it transfers of {axes}": bound.sent_s,
        f"{percent((bound.seconds - bound.busy_s) / bound.seconds)} of it a bubble": (
            bound.seconds - bound.busy_s
        ),
        f"uneven stages, the longest {percent(bound.busy_s / bound.mean_busy_s - 1)} above the "
        "mean": bound.busy_s - bound.mean_busy_s,
    }
    text = max(parts, key=parts.__getitem__)
    notable = parts[text] >= NOTABLE * bound.seconds
    if not notable:
        text = "its computing alone takes longer"
        if scenario.recompute != "none":
            text = f"it computes part of it twice ({scenario.recompute} recompute)"
    more = max(0.0, bound.seconds * 1e3 / best.step_ms - 1)
    return f"at least {percent(more)} slower: {text}"


def no_memory(candidate: Candidate, figures: Simulated | None, most_bytes: float) -> str:
    """What the smallest plan holds, at which stage."""
    if figures is not None:
        size, stage, at_least = figures.peak_memory_bytes, figures.fullest_stage, ""
    else:
        size, stage = round(candidate.held.bytes), candidate.held.stage
        at_least = "at least "
    where = f" at stage {stage}" if candidate.scenario.pp > 1 else ""
    return (
        f"out of memory{where}: needs {at_least}{_gib(size, most_bytes)} of "
        f"{most_bytes / GIB:,.0f} GiB"
    )


def percent(share: float) -> str:
    """A share with the digits that say something."""
    decimals = 0 if abs(share) >= 0.0995 else 1
    return f"{share * 100:,.{decimals}f} %"


def _gib(size: float, most: float) -> str:
    """With a decimal where whole numbers would be equal."""
    close = round(size / GIB) <= round(most / GIB)
    return f"{size / GIB:,.{2 if close else 0}f}"


def _inside(scenario: TrainScenario, across_hosts: bool) -> str:
    """The axes whose ranks exchange something inside of a layer."""
    axes = {"tensor": scenario.tp, "context": scenario.cp, "expert": scenario.ep}
    names = " and ".join(name for name, size in axes.items() if size > 1)
    return f"{names or 'tensor'} parallelism{', across hosts' if across_hosts else ''}"

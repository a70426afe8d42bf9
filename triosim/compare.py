"""Steps side by side: which settings differ, where the time between them goes, in one paragraph."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from triosim.amounts import memory_words, time_words
from triosim.analysis.breakdown import CLASSES, SLOWDOWN
from triosim.errors import ConfigError, counted
from triosim.resolved import SECTIONS, AnyScenario, Resolved, is_chosen, resolve, run
from triosim.result import Result
from triosim.shown import Shown

MOST = 4
TIMES = "\N{MULTIPLICATION SIGN}"
SPLIT = ("compute", "exposed_communication")
SAID = 3  # differences that the paragraph names
_COMPUTE = {SLOWDOWN: "slow-down by transfers", "recompute": "recompute"}
ROUNDING = 1e-12  # of the longer step: no difference
WORTH_SAYING = 0.005  # of the baseline's step, and of its memory


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A setting that is not the same in all steps; None where a kind of step does not have it."""

    section: str
    setting: str
    values: tuple[Any, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Delta:
    """By how many milliseconds a part of the step grew (below 0: shrank), means over ranks.

    `kind` is a class of the breakdown; `part` a phase of compute, or what a transfer does and what
    it is for, or the class again where it has no parts.
    """

    kind: str
    part: str
    ms: float

    @property
    def words(self) -> str:
        """What a person calls it: exposed all-reduce (gradients)."""
        name = self.kind.replace("_", " ")
        if self.kind == "exposed_communication":
            operation, _, purpose = self.part.partition(" ")
            return f"exposed {operation}" + (f" ({purpose})" if purpose else "")
        if self.kind == "compute":
            return _COMPUTE.get(self.part, f"{self.part.replace('_', ' ')} compute")
        return name


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Comparison(Shown):
    """Two to four results; the first is the baseline."""

    results: tuple[Result, ...]
    resolved: tuple[Resolved, ...]

    @property
    def baseline(self) -> Result:
        return self.results[0]

    @cached_property
    def differences(self) -> list[Difference]:
        """Settings whose values differ, section by section.

        Where kinds are mixed, what only one kind has is listed where it was chosen.
        """
        found = []
        for section in SECTIONS:
            sides = [dict(getattr(one, section)) for one in self.resolved]
            for name in dict.fromkeys(name for side in sides for name in side):
                values = tuple(side.get(name) for side in sides)
                own = [v for side, v in zip(sides, values, strict=True) if name in side]
                shared = len(own) == len(sides)
                if values.count(values[0]) < len(values) and (
                    shared or any(is_chosen(name, v) for v in own)
                ):
                    found.append(Difference(section=section, setting=name, values=values))
        return found

    def speedup(self, index: int) -> float | None:
        """Samples per second over the baseline's; None where a step takes no time."""
        mine, base = self.results[index].samples_per_s, self.baseline.samples_per_s
        return mine / base if mine and base else None

    def waterfall(self, index: int) -> list[Delta]:
        """The parts of the difference in step time to the baseline; they sum to it."""
        mine, base = self.parts_ms(index), self.parts_ms(0)
        keys = sorted(mine.keys() | base.keys(), key=lambda key: (CLASSES.index(key[0]), key[1]))
        deltas = [
            Delta(kind=key[0], part=key[1], ms=mine.get(key, 0.0) - base.get(key, 0.0))
            for key in keys
        ]
        least = ROUNDING * max(self.results[index].total_ms, self.baseline.total_ms)
        return [delta for delta in deltas if abs(delta.ms) > least]

    def parts_ms(self, index: int) -> dict[tuple[str, str], float]:
        """Milliseconds by class and part, means over ranks; they sum to the step."""
        result = self.results[index]
        splits = result.breakdown_splits
        parts = {(kind, name): ms for kind in SPLIT for name, ms in splits[kind].items()}
        return parts | {(k, k): ms for k, ms in result.breakdown.items() if k not in SPLIT}

    def more_memory_bytes(self, index: int) -> int:
        """What the fullest rank holds more at its peak than that of the baseline."""
        return self.results[index].peak_memory_bytes - self.baseline.peak_memory_bytes

    def paragraph(self, index: int) -> str:
        """The difference to the baseline in plain words, from the numbers alone.

        Raises `ConfigError` for an `index` that no result has.
        """
        if not isinstance(index, int) or not 0 <= index < len(self.results):
            raise ConfigError("index", index, f"results go from 0 to {len(self.results) - 1}")
        said = [self._pace(index) + self._reasons(index), self._work(index), self._memory(index)]
        return " ".join(f"{sentence}." for sentence in said if sentence)

    def _pace(self, index: int) -> str:
        mine, base = self.results[index].total_ms, self.baseline.total_ms
        if not mine or not base:
            return f"A step takes {time_words(mine / 1e3)} instead of {time_words(base / 1e3)}"
        ratio = base / mine
        if abs(ratio - 1) < WORTH_SAYING:
            return "A step takes as long" + ("" if mine == base else f" ({mine / base - 1:+.1%})")
        if ratio > 1:
            return f"{ratio:.2f}{TIMES} faster"
        return f"{1 / ratio:.2f}{TIMES} slower"

    def _work(self, index: int) -> str:
        """What a step of other size means for throughput, in all and per GPU."""
        result, base = self.results[index], self.baseline
        gpus, own = result.scenario.gpus, base.scenario.gpus
        ratio = self.speedup(index)
        if ratio is None or (result.samples, gpus) == (base.samples, own):
            return ""
        if self._what(index) != self._what(0):
            return ""  # a sample of one model is no sample of another
        of = (
            f"With {counted(result.samples, 'sample')} a step instead of {base.samples:,}"
            if result.samples != base.samples
            else f"On {counted(gpus, 'GPU')} instead of {own:,}"
        )
        text = f"{of} it does {ratio:.3g} times as many samples per second"
        return text + (f", {ratio * own / gpus:.3g} times per GPU" if gpus != own else "")

    def _what(self, index: int) -> tuple[Any, Any]:
        settings = self.resolved[index].settings
        return settings.get("trace"), settings.get("model")

    def _reasons(self, index: int) -> str:
        least = WORTH_SAYING * self.baseline.total_ms
        largest = sorted(self.waterfall(index), key=lambda delta: -abs(delta.ms))
        said = [
            f"{time_words(abs(d.ms) / 1e3)} {'more' if d.ms > 0 else 'less'} {d.words}"
            for d in largest[:SAID]
            if abs(d.ms) > least
        ]
        return f": {', '.join(said)}" if said else ""

    def _memory(self, index: int) -> str:
        result, base = self.results[index], self.baseline
        more = self.more_memory_bytes(index)
        if abs(more) <= WORTH_SAYING * base.peak_memory_bytes:
            return ""
        fullest = max(range(len(result.classes)), key=lambda c: result.memory[c].peak_bytes)
        rank = result.classes[fullest].rank
        size = f"{memory_words(abs(more))} {'more' if more > 0 else 'less'}"
        text = f"Needs {size}, at most {memory_words(result.peak_memory_bytes)} on rank {rank:,}"
        fits = result.peak_memory_bytes <= result.capacity_bytes
        fitted = base.peak_memory_bytes <= base.capacity_bytes
        if fits != fitted:
            text += ", and fits now" if fits else ", and does not fit any more"
        return text

    def to_dict(self) -> dict[str, Any]:
        """Plain values: differing settings, and for every step its figures and differences."""
        steps = []
        for index, (result, one) in enumerate(zip(self.results, self.resolved, strict=True)):
            entry: dict[str, Any] = {
                "kind": one.kind,
                "digest": one.digest,
                "step_ms": result.total_ms,
                "samples_per_s": result.samples_per_s,
                "peak_memory_bytes": result.peak_memory_bytes,
                "breakdown": result.breakdown,
            }
            if index:
                entry["speedup"] = self.speedup(index)
                entry["waterfall"] = [asdict(delta) for delta in self.waterfall(index)]
                entry["paragraph"] = self.paragraph(index)
            steps.append({**entry, "scenario": result.scenario.to_dict()})
        return {
            "schema_version": self.baseline.schema_version,
            "differences": [asdict(difference) for difference in self.differences],
            "steps": steps,
        }


def compare(*steps: Result | AnyScenario | Resolved) -> Comparison:
    """Put two to four steps side by side, of either kind, mixed; the first is the baseline.

    Scenarios are simulated. Raises `TrioSimError` as that does, and `ConfigError` for a number of
    steps that is not 2 to 4.
    """
    if not 2 <= len(steps) <= MOST:
        raise ConfigError("scenarios", len(steps), f"2 to {MOST} can be compared")
    results = tuple(step if isinstance(step, Result) else run(step) for step in steps)
    resolved = tuple(resolve(result.scenario) for result in results)
    return Comparison(results=results, resolved=resolved)

"""Times of a pipeline's stages out of a model: what the schedules of the lab are fed with."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from triosim.errors import ConfigError
from triosim.train import TrainScenario, simulate_step
from triosim.train.blocks import FORWARD, WEIGHT

MS = 1e3


@dataclass(frozen=True, kw_only=True, slots=True)
class StageTimes:
    """Milliseconds of one micro-batch on each stage, all chunks together.

    `backward` includes `weight`; `transfer` is a hop to the next stage. `kept_gib` is what one
    micro-batch keeps for backward on one GPU of each stage.
    """

    forward: tuple[float, ...]
    backward: tuple[float, ...]
    weight: tuple[float, ...]
    transfer: tuple[float, ...]
    kept_gib: tuple[float, ...]


# Name on the page: model, tensor-parallel ranks of a stage.
MODELS: Mapping[str, tuple[str, int]] = {
    "Llama 3 8B": ("llama3-8b", 1),
    "Llama 3 70B, tp 8": ("llama3-70b", 8),
    "Llama 3.1 405B, tp 8": ("llama3.1-405b", 8),
}


@lru_cache(maxsize=32)
def stage_times(name: str, stages: int) -> StageTimes:
    """One sequence of 8,192 tokens through the model on H100s, compiled, in bf16.

    The engine runs zb-h1, which has the weight parts apart. Raises `ConfigError` where the model
    cannot be cut so, or is not one of `MODELS`.
    """
    if name not in MODELS:
        raise ConfigError("model", name, f"must be one of {', '.join(MODELS)}")
    model, tp = MODELS[name]
    microbatches = max(2, stages)
    result = simulate_step(
        TrainScenario(
            model=model, gpu="h100-96gb", machine="seminar-h100", stack="torchtitan-compile",
            gpus=stages * tp, pp=stages, tp=tp, sequence_parallel=tp > 1, seq_len=8192,
            schedule="zb-h1", global_batch=microbatches, recompute="selective-op",
        )
    )  # fmt: skip
    program, timeline = result.tasks.program, result.tasks
    seconds: defaultdict[tuple[int, str], float] = defaultdict(float)
    hop_s: dict[int, float] = {}
    kept: Counter[int] = Counter()
    forwards = set()
    for task, rank_class in enumerate(timeline.class_list):
        stage = program.classes[rank_class].stage or 0
        made = result.writer.made.get(task)
        if made is not None:
            seconds[stage, made.kind] += program.duration_s[task]
            if made.kind == FORWARD:
                forwards.add(task)
        elif program.phase[task] == "send" and program.purpose[program.transfer[task]] == (
            "activations"
        ):
            taken = float(timeline.end_s[task] - timeline.start_s[task])
            hop_s[stage] = min(taken, hop_s.get(stage, taken))
    for task, category, size in zip(
        program.memory_task, program.memory_category, program.memory_bytes, strict=True
    ):
        if task in forwards and category == "activations" and size > 0:
            kept[program.classes[timeline.class_list[task]].stage or 0] += size
    each = range(stages)
    longest = max(hop_s.values(), default=0.0)
    weight = [seconds[s, WEIGHT] for s in each]
    whole = [sum(t for (own, kind), t in seconds.items() if own == s) for s in each]
    forward = [seconds[s, FORWARD] for s in each]
    scale = MS / microbatches
    return StageTimes(
        forward=tuple(scale * t for t in forward),
        backward=tuple(scale * (all_ - f) for all_, f in zip(whole, forward, strict=True)),
        weight=tuple(scale * t for t in weight),
        # The last hop is the loop's, from the last stage to the first.
        transfer=tuple(MS * hop_s.get(s, longest) for s in each),
        kept_gib=tuple(kept[s] / microbatches / 2**30 for s in each),
    )

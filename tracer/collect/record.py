"""Record one step of anybody's training loop: warm up, time without a profiler, then profile.

The profiler and the execution trace observer run in the same session, so that their rows share
record-function ids. CUDA and ROCm are one to PyTorch: the same calls serve both.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, schedule
from tqdm import tqdm  # type: ignore[import-untyped]

from tracer.collect.modules import module_ranges
from tracer.models import file_name
from triosim.errors import ConfigError
from triosim.files import replace_files, replacing

ITERATIONS = 43
# One to warm up, one to time, one for the profiler to warm up, one to record.
LEAST_ITERATIONS = 4


@dataclass(frozen=True, kw_only=True)
class Recording:
    """The files of one recorded step, and what meta.json says about it."""

    profiler: Path
    graph: Path
    meta: Mapping[str, Any]


def record(
    step: Callable[[], object],
    *,
    batch_size: int,
    name: str = "model",
    output: str | Path = "data",
    iters: int = ITERATIONS,
    device: str | None = None,
    progress: bool = True,
    module: nn.Module | None = None,
    **facts: Any,
) -> Recording:
    """Call `step`, which runs one whole training step, `iters` times and record the last.

    Writes profiler_NAME-iterN.json, graph_NAME-iterN.json and meta.json (also under the name
    meta_NAME-iterN.json) into `output`. Further keywords (dtype="bf16", ...) go to meta.json.
    `device` is "cuda" (also ROCm) or "cpu"; None takes the GPU where there is one. Operators are
    recorded with the paths of their modules, as `module.named_modules()` gives them; None takes
    the paths from the module that `step` calls. In your own loop, three lines:

    >>> import torch
    >>> model = torch.nn.Linear(8, 4)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> def step():                                   # the body of your training loop
    ...     optimizer.zero_grad()
    ...     model(torch.randn(2, 8)).sum().backward()
    ...     optimizer.step()
    >>> import tracer
    >>> recording = tracer.record(step, batch_size=2, name="mine", iters=4, progress=False)
    >>> recording.profiler.name, recording.graph.name
    ('profiler_mine-iter4.json', 'graph_mine-iter4.json')

    Then `python tracer/dataprocess.py data` makes a trace of the two files.
    """
    if iters < LEAST_ITERATIONS:
        raise ConfigError("iters", iters, f"must be at least {LEAST_ITERATIONS}")
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    gpu = torch.cuda.is_available() and device != "cpu"
    label = f"{file_name(name)}-iter{iters}"
    profiler, graph = folder / f"profiler_{label}.json", folder / f"graph_{label}.json"
    with tqdm(total=iters, desc=file_name(name), unit="step", disable=not progress) as bar:

        def counted() -> None:
            step()
            bar.update()

        times_s = _time(counted, plain=iters - 2, gpu=gpu)
        with replacing(profiler, graph) as beside:
            _profile(counted, *beside, gpu=gpu, module=module)
    known = {"name": file_name(name), "batch_size": batch_size, **facts, "iters": iters}
    meta = _meta(known, times_s, gpu=gpu)
    text = f"{json.dumps(meta, indent=2)}\n".encode()
    files = (f"meta_{label}.json", "meta.json")  # the second: of the last recording here
    replace_files({folder / file: text for file in files})
    return Recording(profiler=profiler, graph=graph, meta=meta)


def _time(step: Callable[[], object], *, plain: int, gpu: bool) -> list[float]:
    """Seconds of each step after a warm-up of about half of them."""
    for _ in range(plain // 2):
        step()
    if gpu:
        torch.cuda.reset_peak_memory_stats()
    times_s = []
    for _ in range(plain - plain // 2):
        _finish(gpu)
        start_s = time.perf_counter()
        step()
        _finish(gpu)
        times_s.append(time.perf_counter() - start_s)
    return times_s


def _profile(
    step: Callable[[], object], profiler: Path, graph: Path, *, gpu: bool, module: nn.Module | None
) -> None:
    """One step for the profiler to warm up, one recorded."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if gpu else [])]
    observer = ExecutionTraceObserver().register_callback(str(graph))
    try:
        with (
            module_ranges(module),
            profile(
                activities=activities,
                schedule=schedule(wait=0, warmup=1, active=1, repeat=1),
                on_trace_ready=lambda session: session.export_chrome_trace(str(profiler)),
                record_shapes=True,
                execution_trace_observer=observer,
            ) as session,
        ):
            for _ in range(2):
                step()
                _finish(gpu)
                session.step()
    finally:
        observer.unregister_callback()


def _finish(gpu: bool) -> None:
    """Wait for the GPU: its work is started long before it is done."""
    if gpu:
        torch.cuda.synchronize()


def _meta(known: Mapping[str, Any], times_s: Sequence[float], *, gpu: bool) -> dict[str, Any]:
    return {
        "source": "measured",
        "device": "cuda" if gpu else "cpu",
        **_machine(gpu),
        **known,
        "step_time_s": statistics.median(times_s),
        "timed_steps": len(times_s),
    }


def _machine(gpu: bool) -> dict[str, Any]:
    facts: dict[str, Any] = {"torch": str(torch.__version__)}
    if not gpu:
        return {"gpu": "cpu", "threads": torch.get_num_threads(), **facts}
    platform = {"hip": torch.version.hip} if torch.version.hip else {"cuda": torch.version.cuda}
    peak = torch.cuda.max_memory_allocated()
    return {
        "gpu": torch.cuda.get_device_name(), **facts, **platform, "peak_memory_bytes": peak,
    }  # fmt: skip

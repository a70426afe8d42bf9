"""The flags of python -m triosim, each with the field it sets, and a scenario as a command line."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from triosim.network.topology.describe import Description
from triosim.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: its name without dashes, the field of `Scenario` it sets, and its help."""

    name: str
    field: str
    help: str
    kind: type = str
    choices: tuple[str, ...] | None = None


FLAGS = (
    Flag("trace-dir", "trace_dir", "folder with trace.csv and tensor.csv"),
    Flag("batch-size", "batch_size", "batch the trace was taken at (default: its own)", int),
    Flag("batch-size-sim", "batch_size_sim", "batch to simulate (default: batch-size)", int),
    Flag("bandwidth", "bandwidth_gb_per_s", "GPU to remote memory, GB/s per GPU", float),
    Flag("ptp-bandwidth", "ptp_bandwidth_gb_per_s", "GPU to GPU, GB/s", float),
    Flag("GPUnumber", "gpus", "number of GPUs", int),
    Flag("gpu", "gpu", "GPU to run on, by name (default: as in the trace)"),
    Flag("trace-gpu", "trace_gpu", "GPU the trace was taken on (default: its meta.json's)"),
    Flag("micro-batch-size", "micro_batch_size", "micro-batch of case 4 (default: the batch)", int),
    Flag(
        "case",
        "case",
        "0 training (each GPU alone), 1 standard data parallel, 2 distributed data parallel, "
        "3 tensor parallel, 4 pipeline parallel",
        int,
    ),
    Flag("capacity", "capacity_log2", "memory per GPU, 2^CAPACITY bytes", int),
    Flag("numCols", "mesh_cols", "columns of the optical mesh (default: GPUnumber)", int),
    Flag("numRows", "mesh_rows", "rows of the optical mesh (default: 1)", int),
    Flag("interconnects", "interconnect", "0 electrical, 1 optical", choices=("0", "1")),
    Flag(
        "ptp-convention",
        "ptp_convention",
        "algbw: ptp-bandwidth is the all-reduce's algorithm bandwidth in cases 1-3, as TrioSim "
        "reads it; link: it is the speed of a link",
        choices=("algbw", "link"),
    ),
    Flag("latency-us", "latency_us", "latency of one electrical step, microseconds", float),
    Flag("bucket-mb", "bucket_mb", "gradient bucket of case 2, in 2^20 bytes", float),
    Flag("accumulate", "accumulate", "batches per step in cases 1 and 2", int),
    Flag("schedule", "schedule", "pipeline schedule", choices=("gpipe", "1f1b")),
    Flag(
        "stage-cut",
        "stage_cut",
        "time: the largest stage is as small as possible; count: equal numbers of operators, as "
        "TrioSim",
        choices=("time", "count"),
    ),
    Flag("optical-bandwidth", "optical_gb_per_s", "GB/s per circuit and direction", float),
    Flag("hop-latency-ns", "hop_latency_ns", "latency of one optical hop, nanoseconds", float),
    Flag("circuit-setup-ms", "circuit_setup_ms", "time to set up a circuit, milliseconds", float),
    Flag("circuit-teardown-ms", "circuit_teardown_ms", "time to take one down, ms", float),
    Flag("wavelengths", "wavelengths", "circuits per mesh link and direction (default: any)", int),
    Flag(
        "topology",
        "topology",
        "how GPUs are joined: a name of `list topologies`, a file, or a description as JSON",
    ),
    Flag("algorithm", "algorithm", "of the all-reduces: a name of `list algorithms`, or auto"),
    Flag(
        "overlap-slowdown",
        "overlap_slowdown",
        "0.2: computing takes 1.2 times as long beside communication (default: measured on "
        "machines, else 0)",
        float,
    ),
    Flag("slow-every", "slow_every", "slow GPUs are slow in one step out of so many", int),
    Flag("jitter", "jitter", "standard deviation of computing times, as a share", float),
    Flag("seed", "seed", "of the jitter", int),
)
INTERCONNECTS = {"0": "electrical", "1": "optical"}
SWITCHES = (
    ("resident", "tensors that exist before the step are on the GPU already"),
    ("no-fold", "simulate every rank, also identical ones"),
    ("no-protocol", "links without the protocol costs measured on such machines"),
    ("quiet", "print neither the summary nor warnings"),
)
FILES = (
    ("json", "FILE|-", "write the result as JSON (- : to standard output, and nothing else)"),
    ("timeline", "FILE.csv", "write the timeline"),
    ("perfetto", "FILE.json", "write the timeline for Perfetto (.json.gz: packed)"),
    ("hta", "FOLDER", "write a file for each GPU that Holistic Trace Analysis reads"),
    ("chakra", "FOLDER", "write Chakra execution traces, which `replay` reads"),
    ("scenario", "FILE.json", "start from a saved scenario; flags beside it win"),
    ("save-scenario", "FILE.json", "save the scenario"),
)


def command_line(scenario: Scenario) -> str:
    """The command that reproduces a scenario."""
    default = Scenario()
    words = ["python -m triosim", f"-trace-dir {shlex.quote(_from_here(scenario.trace_dir))}"]
    for flag in FLAGS[1:]:
        value = getattr(scenario, flag.field)
        if value != getattr(default, flag.field):
            if flag.field == "interconnect":
                value = {name: number for number, name in INTERCONNECTS.items()}[value]
            words.append(f"-{flag.name} {_typed(flag, value)}")
    words += [f"--slow {rank}={speed!r}" for rank, speed in scenario.speeds.items()]
    if scenario.dead_links:
        words.append(f"--dead-links {shlex.quote(','.join(scenario.dead_links))}")
    words += ["--no-protocol"] * (not scenario.protocol)
    words += ["--resident"] * scenario.resident + ["--no-fold"] * (not scenario.fold)
    return " ".join(words)


def _typed(flag: Flag, value: object) -> str:
    """A value as it is typed after its flag."""
    if isinstance(value, float):
        short = f"{value:g}"
        return short if flag.kind(short) == value else repr(value)
    text = json.dumps(value.to_dict()) if isinstance(value, Description) else str(value)
    return shlex.quote(text)


def _from_here(folder: str) -> str:
    """A shorter path where there is one, in a form that no shell or parser takes for a flag."""
    path = Path(folder)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        folder = str(path.relative_to(Path.cwd()))
    return f"./{folder}" if folder.startswith("-") else folder

"""python -m triosim list topologies"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from triosim.commands.output import FlagError, Parser, print_text
from triosim.errors import counted
from triosim.hardware import gpu_names, load_gpu
from triosim.hardware.stacks import stack_names
from triosim.network.collectives.choose import ALGORITHMS
from triosim.network.topology.describe import machine_names, topology_names
from triosim.network.topology.machines import load_machine
from triosim.schedules import SCHEDULES
from triosim.train.scenario import CONTEXTS, RECOMPUTE
from triosim.workload import count_parameters, load_model, model_names

EXAMPLES = """examples:
  python -m triosim list topologies
  python -m triosim list machines
"""


def run(arguments: Sequence[str]) -> None:
    parser = Parser("list", "Legal names, with a line on each.", EXAMPLES)
    parser.add_argument("what", nargs="?", help=", ".join(LISTS))
    what = parser.parse_args(arguments).what
    if what is None:
        print_text("".join(f"python -m triosim list {name}\n" for name in LISTS))
        return
    if what not in LISTS:
        raise FlagError(f"list {what}: what to list must be one of {', '.join(LISTS)}.")
    rows = LISTS[what]()
    width = max(len(name) for name in rows)
    print_text("".join(f"{name:{width}}  {about}\n" for name, about in rows.items()))


def _topologies() -> Mapping[str, str]:
    return {
        **topology_names(),
        **machine_names(),
        "FILE": "a .toml or .json file with a description",
    }


def _machines() -> Mapping[str, str]:
    rows = {}
    for name, about in machine_names().items():
        assumptions = " ".join(load_machine(name).assumptions)
        rows[name] = f"{about} Assumed: {assumptions}" if assumptions else about
    return rows


def _algorithms() -> Mapping[str, str]:
    rows = {
        name: f"{entry.about} ({', '.join(entry.operations)})" for name, entry in ALGORITHMS.items()
    }
    return {"auto": "the cheapest of those that the network and the operation allow", **rows}


def _gpus() -> Mapping[str, str]:
    rows = {}
    for name in gpu_names():
        gpu = load_gpu(name)
        rows[name] = (
            f"{gpu.memory_bytes / 2**30:.0f} GiB, {gpu.memory_bytes_per_s / 1e9:,.0f} GB/s, "
            f"{gpu.link_bytes_per_s / 1e9:,.0f} GB/s to other GPUs"
        )
    return rows


def _schedules() -> Mapping[str, str]:
    about = {
        name: " ".join((schedule.__doc__ or "").partition("\n")[0].split())
        for name, schedule in SCHEDULES.items()
    }
    return {**about, "FILE": "a grid: --grid; see `pipeline --help`"}


def _models() -> Mapping[str, str]:
    rows = {}
    for name in model_names():
        model = load_model(name)
        rows[name] = (
            f"{count_parameters(model).total / 1e9:,.2f} B parameters, hidden {model.hidden:,}, "
            f"{counted(model.layers, 'layer')}, {counted(model.heads, 'head')}"
        )
    return rows


LISTS: Mapping[str, Callable[[], Mapping[str, str]]] = {
    "topologies": _topologies,
    "machines": _machines,
    "algorithms": _algorithms,
    "gpus": _gpus,
    "schedules": _schedules,
    "models": _models,
    "stacks": stack_names,
    "recompute": lambda: RECOMPUTE,
    "contexts": lambda: CONTEXTS,
}

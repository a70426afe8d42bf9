"""The readers of everything that comes from outside, each as a function of bytes, with valid seeds.

A file that belongs to others travels with them: `PART` stands between two files of one input.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import parse_qs, urlencode

from dashboard.address import read_parameters
from dashboard.compare_links import value_of as compare_value
from dashboard.lab.links import read_lab
from dashboard.links import read_link, scenario_of, shipped_traces
from dashboard.network_links import read_network
from dashboard.network_text import read_faults, read_text
from dashboard.packed import _items, missing, pack, unpack
from dashboard.saved_file import place_of
from dashboard.seminar.places import LABS
from dashboard.seminar.presets import FOLDER, name_of_file, read_preset
from dashboard.sweep_fields import fields_of
from dashboard.sweep_links import OVER, VARY
from dashboard.sweep_links import value_of as sweep_value
from dashboard.sweep_values import values_in
from dashboard.traces_links import read_view as read_traces
from dashboard.traces_read import read_upload
from dashboard.train_configs import check_config
from dashboard.train_links import read_train
from dashboard.validation_links import read_view as read_validation
from tracer.convert import convert
from triosim import Description, Scenario, TrainScenario, read_trace, simulate, sweep, train
from triosim.chakra.read import read_chakra
from triosim.chakra.write import GROUPS_FILE, write_chakra
from triosim.errors import TrioSimError
from triosim.network.topology.machines import load_machine
from triosim.resolved import read_any_scenario
from triosim.saved import read_result
from triosim.scenario import SAMPLE_TRACES
from triosim.sweep.spec import read_spec
from triosim.sweep.store import Store
from triosim.trace.digest import FILES as TRACE_FILES
from triosim.workload import from_config

PART = b"\n\x1c\x1d\x1e next file\n"
MAX_UNPACKED = 2**24  # bytes; a bomb is refused long before it is whole
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, kw_only=True)
class Reader:
    """A reader: `read` raises `TrioSimError` for what it refuses, and nothing else.

    `form` says how its inputs are changed: "csv", "json", "toml", "query", "packed" or "bytes".
    """

    name: str
    form: str
    read: Callable[[bytes], object]
    seeds: Callable[[], Sequence[bytes]]


@cache
def _kept() -> tempfile.TemporaryDirectory[str]:
    """It goes with the process."""
    return tempfile.TemporaryDirectory(prefix="triosim-fuzz-")


def _folder() -> Path:
    """A folder for inputs of readers that take a path."""
    return Path(_kept().name)


def _file(name: str, data: bytes) -> Path:
    path = _folder() / name
    path.write_bytes(data)
    return path


def _trace(data: bytes) -> object:
    parts = data.split(PART)
    for i, name in enumerate(TRACE_FILES):
        if i < len(parts):
            _file(name, parts[i])
        else:
            (_folder() / name).unlink(missing_ok=True)
    return read_trace(_folder())


def _upload(data: bytes) -> object:
    files = [(f"file {i}", part) for i, part in enumerate(data.split(PART))]
    return read_upload(files, "upload-000000000000", max_bytes=MAX_UNPACKED)


def _kineto(data: bytes) -> object:
    return convert(data.split(PART)[0], max_bytes=MAX_UNPACKED)


def _execution(data: bytes) -> object:
    profiler, *graph = data.split(PART)
    return convert(profiler, graph[0] if graph else profiler, max_bytes=MAX_UNPACKED)


def _topology(data: bytes) -> object:
    """A file on the command line, and the text of the page Network."""
    path = _file("topology.json" if data.lstrip()[:1] == b"{" else "topology.toml", data)
    with contextlib.suppress(TrioSimError, UnicodeDecodeError):
        read_text(data.decode("utf-8-sig"))
    description = Description.from_file(path)
    assert Description.from_dict(description.to_dict()) == description
    return description


def _config(data: bytes) -> object:
    """A file on the command line, and an upload."""
    with contextlib.suppress(TrioSimError):
        check_config(data)
    return from_config(_file("config.json", data))


def _store(data: bytes) -> object:
    """A folder of a sweep; files in it that are none of ours are passed over."""
    folder = _folder() / "store"
    folder.mkdir(exist_ok=True)
    (folder / "x.parquet").write_bytes(data)
    return Store(folder).read()


def _chakra(data: bytes) -> object:
    """The groups, and a file for each rank."""
    folder = _folder() / "chakra"
    folder.mkdir(exist_ok=True)
    groups, *ranks = data.split(PART)
    for path in folder.iterdir():
        path.unlink()
    (folder / GROUPS_FILE).write_bytes(groups)
    for rank, content in enumerate(ranks):
        (folder / f"t.{rank}.et").write_bytes(content)
    return read_chakra(folder)


def _preset(data: bytes) -> object:
    name, _, content = data.partition(PART)
    return read_preset(name_of_file(name.decode("utf-8", "replace")), content)


def _link(data: bytes) -> object:
    """A page and its query, as Streamlit takes it apart."""
    page, _, text = data.decode("utf-8", "surrogateescape").partition("?")
    raw = parse_qs(text, keep_blank_values=True)
    if page == "simulate":
        link = read_link(raw, shipped_traces())
        return scenario_of(link.values)
    if page == "sweep":
        return _sweep_link(raw)
    return _PAGES.get(page, _PAGES["train"])(raw)


def _sweep_link(raw: Mapping[str, list[str]]) -> object:
    """Also the values as they are typed, which the page reads from its address."""
    values = read_parameters(raw, sweep_value).values
    base = unpack(values["base"])[0] if values.get("base") else TrainScenario()
    known = fields_of(base)
    for vary, over in zip(VARY, OVER, strict=True):
        if values.get(vary) in known:
            values_in(values.get(over, ""), known[values[vary]], base)
    return values


def _network_link(raw: Mapping[str, list[str]]) -> object:
    values = read_network(raw).values
    read_faults(values.get("faults", ""))
    return read_text(values["toml"]) if values.get("toml") else values


_PAGES: Mapping[str, Callable[[Mapping[str, list[str]]], object]] = {
    "train": read_train,
    "network": _network_link,
    "traces": lambda raw: read_traces(raw, shipped_traces()),
    "validation": read_validation,
    "compare": lambda raw: read_parameters(raw, compare_value),
    **{lab.code: (lambda raw, lab=lab: read_lab(lab, raw)) for lab in LABS},
}


def _packed(data: bytes) -> object:
    text = data.decode("utf-8", "surrogateescape")
    missing(text)
    return unpack(text)


def _sample(name: str) -> bytes:
    files = (SAMPLE_TRACES / name / file for file in TRACE_FILES)
    return PART.join(file.read_bytes() for file in files if file.exists())


def _small_trace() -> bytes:
    """The first operators of a shipped trace with all columns."""
    trace, tensors, meta = _sample("mlp").split(PART)
    return PART.join([trace, tensors, meta])


def _recording() -> list[bytes]:
    """A profiler file and an execution trace of one step: y = x w, its gradient, an update."""
    x, w, y, dw = (
        [n, n + 1, 0, numel, 4, "cuda:0"] for n, numel in ((10, 32), (12, 16), (14, 8), (18, 16))
    )
    rows = [
        ("aten::mm", "cpu_op", 1, 100, 20, 3),
        ("autograd::engine::evaluate_function: MmBackward0", "cpu_op", 2, 130, 20, 4),
        ("aten::mm", "cpu_op", 2, 133, 10, 5),
        ("Optimizer.step#SGD.step", "user_annotation", 1, 160, 20, 6),
        ("aten::_foreach_add_", "cpu_op", 1, 165, 10, 7),
    ]  # fmt: skip
    events: list[dict[str, object]] = [
        {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur,
         "args": {"Record function id": rf, "Sequence number": 7, "Fwd thread id": tid - 1,
                  "Input Dims": [[4, 8], [8, 2]], "Input type": ["float", "float"]}}
        for name, cat, tid, ts, dur, rf in rows
    ]  # fmt: skip
    for n, launched, thread in ((1, 106, 1), (2, 134, 2), (3, 166, 1)):
        events += [
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": thread,
             "ts": launched, "dur": 1, "args": {"correlation": n}},
            {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 200.5 + 30 * n,
             "dur": 10 * n, "args": {"correlation": n, "stream": 7}},
        ]  # fmt: skip
    profiler = {"schemaVersion": 1, "deviceProperties": [{"name": "A100"}], "traceEvents": events}

    def node(
        number: int,
        name: str,
        parent: int,
        inputs: list[list[object]],
        outputs: list[list[object]],
        **more: object,
    ) -> dict[str, object]:
        def side(tensors: list[list[object]]) -> dict[str, object]:
            return {
                "values": tensors,
                "shapes": [[4, 8] for _ in tensors],
                "types": ["Tensor(float)" for _ in tensors],
            }

        known = {"rf_id": number, "seq_id": 7, "scope": 0, "tid": 1, "fw_tid": 0, "op_schema": ""}
        attrs = [{"name": k, "value": v} for k, v in {**known, **more}.items()]
        return {
            "id": number,
            "name": name,
            "ctrl_deps": parent,
            "inputs": side(inputs),
            "outputs": side(outputs),
            "attrs": attrs,
        }

    nodes = [
        node(1, "[pytorch|profiler|execution_trace|process]", 1, [], [], rf_id=0, scope=7),
        node(2, "[pytorch|profiler|execution_trace|thread]", 1, [], [], rf_id=0, scope=7),
        node(3, "aten::mm", 2, [x, w], [y], op_schema="aten::mm(Tensor self, Tensor mat2) -> T"),
        node(4, rows[1][0], 2, [y], [], scope=1, tid=2, fw_tid=1),
        node(5, "aten::mm", 4, [x, y], [dw], tid=2),
        node(6, "Optimizer.step#SGD.step", 2, [], [], scope=7),
        node(7, "aten::_foreach_add_", 6, [w, dw], [w]),
    ]
    graph = {"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": nodes}
    return [json.dumps(profiler).encode(), json.dumps(graph).encode()]


def _scenarios() -> list[bytes]:
    return [
        Scenario(case=2, gpus=8, rank_speed={3: 0.5}, dead_links=("0-1=0.5",)).to_json().encode(),
        Scenario(case=4, gpus=4, micro_batch_size=1, topology="torus:2x2").to_json().encode(),
        Scenario(topology=load_machine("seminar-h100").description).to_json().encode(),
        TrainScenario(gpus=16, tp=4, pp=2, schedule="interleaved", chunks=2).to_json().encode(),
        TrainScenario(hidden=512, layers=2, heads=8, ffn=2048, vocab=1000, constants={"gemm": 0.7})
        .to_json().encode(),
    ]  # fmt: skip


def _saved() -> list[bytes]:
    return [
        *_scenarios(),
        json.dumps({"steps": [{"scenario": json.loads(Scenario().to_json())}]}).encode(),
        b'{"page": "network", "parameters": {"net": "torus:4x8", "op": "all-reduce"}}',
    ]


def _sweeps() -> list[bytes]:
    return [
        *(file.read_bytes() for file in sorted((ROOT / "examples").glob("*.toml"))),
        b"[scenario]\ncase = 2\n[sweep]\ngpus = [1, 2, 4]\nbucket_mb = {from = 1, to = 9, step = 2}"
        b"\ndead_links = [['0-1'], []]\n",
    ]


def _topologies() -> list[bytes]:
    return [
        b'kind = "tiers"\n[[tiers]]\nname = "NVSwitch"\nchildren = 8\nreduces = true\n'
        b'link = { gb_per_s = 450, latency_us = 0.6, protocol = "nvlink4" }\n'
        b'[[tiers]]\nname = "leaf"\nchildren = 4\nlinks = 8\nper_gpu = true\n'
        b"link = { gb_per_s = 50, latency_us = 2 }\n"
        b'[[tiers]]\nname = "spine"\nchildren = 0\noversubscription = 2\n',
        b'kind = "torus"\nshape = [4, 8]\nlink = { gb_per_s = 50, latency_us = 1.5 }\n',
        b'kind = "graph"\ngpus = ["a", "b"]\n[[connections]]\nbetween = ["a", "s"]\ncount = 2\n'
        b'link = {gb_per_s = 10}\n[[connections]]\nbetween = ["b", "s"]\nlink = {gb_per_s = 10}\n',
        b'{"kind": "dragonfly", "groups": 3, "routers": 2, "gpus_per_router": 2, '
        b'"link": {"gb_per_s": 25, "efficiency": 0.9}}',
        json.dumps(load_machine("seminar-h100").description.to_dict()).encode(),
    ]


def _configs() -> list[bytes]:
    llama = {
        "model_type": "llama", "_name_or_path": "a/b", "num_hidden_layers": 2, "hidden_size": 64,
        "num_attention_heads": 8, "num_key_value_heads": 4, "intermediate_size": 128,
        "vocab_size": 1000, "max_position_embeddings": 512, "tie_word_embeddings": False,
        "hidden_act": "silu", "attention_bias": False, "head_dim": None,
    }  # fmt: skip
    mixture = llama | {
        "model_type": "deepseek_v3", "n_routed_experts": 8, "num_experts_per_tok": 2,
        "n_shared_experts": 1, "moe_intermediate_size": 32, "first_k_dense_replace": 1,
        "q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 4, "v_head_dim": 8,
        "qk_nope_head_dim": 8,
    }  # fmt: skip
    gpt2 = {
        "model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100,
        "n_positions": 128, "n_inner": None, "resid_pdrop": 0.1,
    }  # fmt: skip
    return [json.dumps(values).encode() for values in (llama, mixture, gpt2)]


def _results() -> list[bytes]:
    return [
        simulate(Scenario(trace_dir=str(SAMPLE_TRACES / "mlp"), case=2)).to_json().encode(),
        train(TrainScenario(layers=2)).to_json().encode(),
    ]


def _stored() -> list[bytes]:
    folder = _folder() / "stored"
    sweep(TrainScenario(layers=2), {"gpus": [1, 8]}, workers=1, store=folder)
    return [file.read_bytes() for file in folder.glob("*.parquet")]


def _chakras() -> list[bytes]:
    folder = _folder() / "written"
    mlp = str(SAMPLE_TRACES / "mlp")
    write_chakra(simulate(Scenario(trace_dir=mlp, case=2, gpus=2)), folder)
    ranks = sorted(folder.glob("*.et"))
    return [PART.join(path.read_bytes() for path in (folder / GROUPS_FILE, *ranks))]


def _presets() -> list[bytes]:
    return [b"mine.toml" + PART + file.read_bytes() for file in sorted(FOLDER.glob("*.toml"))]


def _links() -> list[bytes]:
    base = pack([TrainScenario(gpus=16)])
    queries: dict[str, dict[str, object]] = {
        "simulate": {"v": 1, "trace": "mlp", "case": 2, "gpus": 8, "window": ["10", "50.5"],
                     "rank_speed": "3=0.5, 5=0.8", "topology": "torus:2x4", "dead_links": "0-1=0.5",
                     "tab": "Memory", "first_rank": 3},
        "train": {"v": 1, "model": "llama3-8b", "gpus": 16, "tp": 4, "recompute": "full"},
        "network": {"v": 1, "net": "torus:4x8", "ranks": 32, "op": "all-reduce", "algo": "ring",
                    "faults": "0-1=0.5", "toml": 'kind = "ring"\nlink = {gb_per_s = 1}'},
        "traces": {"v": 1, "inspect": "gpt2", "find": "mm", "phase": ["forward", "backward"],
                   "view": "Roofline"},
        "validation": {"v": 1, "aspect": "All sources", "every_source": "true"},
        "compare": {"v": 1, "scenarios": base, "against": "B", "lanes": "false"},
        "sweep": {"v": 1, "base": base, "vary": "gpus", "over": "8 to 64 x2, 96", "vary2": "tp",
                  "over2": "1, 2", "part": "Sweep", "find_micro": "1, 2"},
    }  # fmt: skip
    for lab in LABS:
        names = {name: s.default for name, s in lab.all_settings().items() if s.default is not None}
        queries[lab.code] = {"v": 1, **names, "present": 1, "slide": 3, "preset": "seminar-30"}
    return [f"{page}?{urlencode(query, doseq=True)}".encode() for page, query in queries.items()]


def _packs() -> list[bytes]:
    pairs = [[Scenario(case=2, gpus=4), TrainScenario(gpus=64, tp=8)], [Scenario(case=1)]]
    return [json.dumps(_items(pack(pair))).encode() for pair in pairs]


READERS: Mapping[str, Reader] = {
    reader.name: reader
    for reader in (
        Reader(name="trace", form="csv", read=_trace, seeds=lambda: [_small_trace()]),
        Reader(name="kineto", form="json", read=_kineto, seeds=lambda: _recording()[:1]),
        Reader(
            name="execution-trace", form="json", read=_execution,
            seeds=lambda: [PART.join(_recording())],
        ),
        Reader(
            name="upload", form="json", read=_upload,
            seeds=lambda: [PART.join([*_recording(), b'{"batch_size": 4}']), _small_trace()],
        ),
        Reader(
            name="scenario", form="json", seeds=_scenarios,
            read=lambda data: read_any_scenario(_file("scenario.json", data)),
        ),
        Reader(name="saved", form="json", read=place_of, seeds=_saved),
        Reader(name="preset", form="toml", read=_preset, seeds=_presets),
        Reader(name="link", form="query", read=_link, seeds=_links),
        Reader(name="packed", form="packed", read=_packed, seeds=_packs),
        Reader(
            name="sweep", form="toml", seeds=_sweeps,
            read=lambda data: read_spec(_file("sweep.toml", data)),
        ),
        Reader(name="topology", form="toml", read=_topology, seeds=_topologies),
        Reader(name="config", form="json", read=_config, seeds=_configs),
        Reader(
            name="result", form="json", seeds=_results,
            read=lambda data: read_result(_file("result.json", data)),
        ),
        Reader(name="store", form="bytes", read=_store, seeds=_stored),
        Reader(name="chakra", form="bytes", read=_chakra, seeds=_chakras),
    )
}  # fmt: skip

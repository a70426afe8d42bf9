"""What the real Inductor does with one Llama and one GPT-2 block, on a CPU and on a pretended GPU.

Both graphs are traced on a CPU. Inductor then schedules them for C++, or for Triton on tensors said
to be on an H100 that is not there; nothing is generated or run. All this reads private parts of
torch, so it is pinned to one version and skipped elsewhere.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field
from math import prod
from types import SimpleNamespace

import pytest

from triosim.compile import Access, Buffer, Node, OperatorGraph
from triosim.workload import Transformer, block_of

PINNED = "2.13"


@dataclass(frozen=True)
class Sizes:
    """Samples, tokens, width, heads, KV heads and MLP width of the Llama, and the type."""

    batch: int
    seq: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    dtype: str


# Sums along rows and columns share a pass on a GPU only from some size on.
SIZES = {
    "cpp": Sizes(2, 32, 64, 4, 2, 176, "fp32"),
    "triton": Sizes(4, 2048, 1024, 16, 4, 2816, "bf16"),
}


@dataclass
class Observed:
    """A graph before Inductor fused it, the pairs it ranked with their scores, and its groups."""

    graph: OperatorGraph
    entry_bytes: int
    pairs: dict = field(default_factory=dict)
    groups: list = field(default_factory=list)


class Stop(Exception):  # noqa: N818 - not an error
    """Ends the compilation once both graphs are scheduled."""


@pytest.fixture(scope="session")
def inductor():
    """For "llama" or "gpt2" and a backend the scheduled graphs: forward, then backward."""
    torch = pytest.importorskip("torch", reason="the real Inductor needs torch")
    pytest.importorskip("transformers", reason="the real blocks need transformers")
    if not torch.__version__.startswith(PINNED):
        pytest.skip(f"reads private parts of torch {PINNED}, this is {torch.__version__}")
    known = {}

    def observe(name, backend):
        if (name, backend) not in known:
            block, x = _block(torch, name, SIZES[backend])
            known[name, backend] = _observe(torch, block, x, pretend=backend == "triton")
        return known[name, backend]

    return observe


@pytest.fixture(scope="session")
def described():
    """The same blocks as the workload describes them."""

    def block(name, backend):
        s = SIZES[backend]
        common = {"name": name, "layers": 1, "hidden": s.hidden, "heads": s.heads, "vocab": 128,
                  "seq_len": s.seq}  # fmt: skip
        if name == "llama":
            model = Transformer(**common, kv_heads=s.kv_heads, ffn=s.ffn)
        else:
            model = Transformer(
                **common, ffn=4 * s.hidden, positions="learned", norm="layer", gated=False,
                tied=True, activation="gelu_new", qkv_bias=True, out_bias=True, mlp_bias=True,
            )  # fmt: skip
        return block_of(model, "dense", batch=s.batch, seq=s.seq, dtype=s.dtype)

    return block


def _block(torch, name, s):
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[s.dtype]
    x = torch.zeros(s.batch, s.seq, s.hidden, dtype=dtype, requires_grad=True)
    if name == "llama":
        from transformers import LlamaConfig
        from transformers.models.llama import modeling_llama as llama

        config = LlamaConfig(
            hidden_size=s.hidden, intermediate_size=s.ffn, num_attention_heads=s.heads,
            num_key_value_heads=s.kv_heads, num_hidden_layers=1, vocab_size=128,
        )  # fmt: skip
        config._attn_implementation = "sdpa"
        layer = llama.LlamaDecoderLayer(config, 0).to(dtype)
        table = torch.zeros(1, s.seq, s.hidden // s.heads, dtype=dtype)
        tables = table, table.clone()
        return lambda x: layer(x, position_embeddings=tables), x
    from transformers import GPT2Config
    from transformers.models.gpt2.modeling_gpt2 import GPT2Block

    config = GPT2Config(
        n_embd=s.hidden, n_head=s.heads, n_layer=1, n_positions=s.seq, vocab_size=128,
        bos_token_id=0, eos_token_id=0, resid_pdrop=0, attn_pdrop=0, embd_pdrop=0,
    )  # fmt: skip
    config._attn_implementation = "sdpa"
    layer = GPT2Block(config, 0).to(dtype)
    return lambda x: layer(x), x


def _observe(torch, block, x, *, pretend):
    """Compile forward and backward, look over the scheduler's shoulder, generate no code."""
    import torch._functorch.config as functorch_config
    from torch._inductor import config
    from torch._inductor.graph import GraphLowering
    from torch._inductor.scheduler import Scheduler

    seen = []

    def before(nodes):
        seen.append(Observed(_graph(nodes), x.nbytes))
        return nodes

    def after(nodes):
        seen[-1].groups = [_names(node) for node in nodes]
        return nodes

    listed = Scheduler.get_possible_fusions

    def list_pairs(self, nodes, is_reorder_round):
        pairs = listed(self, nodes, is_reorder_round)
        for a, b in pairs:
            seen[-1].pairs.setdefault((_names(a), _names(b)), self.score_fusion_memory(a, b))
        return pairs

    make = GraphLowering.__init__
    gpu = pytest.MonkeyPatch()

    def make_there(self, graph, example_inputs=None, *args, **kwargs):
        if pretend:
            _pretend(torch, gpu)
            _move(torch, graph, example_inputs)
        make(self, graph, example_inputs, *args, **kwargs)

    def schedule_only(self):
        try:
            self.init_wrapper_code()
            self._update_scheduler()
        finally:
            gpu.undo()
        if len(seen) == 2:
            raise Stop
        return SimpleNamespace(call=None, __file__="")

    def run(x):
        out = block(x)
        return out[0] if isinstance(out, tuple) else out

    with (
        config.patch(
            _pre_fusion_custom_pass=before, _post_fusion_custom_pass=after, fx_graph_cache=False
        ),
        functorch_config.patch(force_non_lazy_backward_lowering=True, enable_autograd_cache=False),
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        patch.setattr(Scheduler, "get_possible_fusions", list_pairs)
        patch.setattr(GraphLowering, "__init__", make_there)
        patch.setattr(GraphLowering, "compile_to_module", schedule_only)
        torch._dynamo.reset()
        try:
            with pytest.raises(Exception, match="Stop"):
                torch.compile(run, fullgraph=True)(x)
        finally:
            gpu.undo()
        torch._dynamo.reset()
    assert len(seen) == 2
    return seen


def _move(torch, graph, example_inputs):
    """Say of every tensor of a traced graph that it is on the first GPU."""
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.utils._pytree import tree_map

    gpu = torch.device("cuda:0")

    def move(value):
        if isinstance(value, FakeTensor):
            value.fake_device = gpu
        return value

    for node in graph.graph.nodes:
        tree_map(move, node.meta.get("val"))
        if "device" in node.kwargs:
            node.kwargs = {**node.kwargs, "device": gpu}
    tree_map(move, example_inputs)


def _pretend(torch, patch):
    """An H100, as far as scheduling asks for it."""
    from torch._inductor import scheduler
    from torch._inductor.runtime.hints import DeviceProperties

    h100 = DeviceProperties(
        type="cuda", index=0, multi_processor_count=132, cc=90, major=9, warp_size=32,
        regs_per_multiprocessor=65536, max_threads_per_multi_processor=2048,
    )  # fmt: skip
    known = SimpleNamespace(
        major=9, minor=0, multi_processor_count=132, name="H100", gcnArchName="", warp_size=32,
        total_memory=80 * 2**30,
    )  # fmt: skip
    patch.setattr(DeviceProperties, "create", classmethod(lambda cls, device: h100))
    patch.setattr(scheduler, "has_triton", lambda: True)
    for name, value in (
        ("is_available", True), ("current_device", 0), ("device_count", 1),
        ("get_device_properties", known), ("get_device_capability", (9, 0)),
        ("is_initialized", True),
        ("get_rng_state", None),
        ("set_rng_state", None),
        ("_lazy_init", None), ("set_device", None), ("synchronize", None),
        ("_exchange_device", 0), ("_maybe_exchange_device", 0), ("current_stream", None),
    ):  # fmt: skip
        patch.setattr(torch.cuda, name, lambda *_, value=value: value)
    for name in ("_cuda_getDevice", "_cuda_exchangeDevice", "_cuda_maybeExchangeDevice"):
        patch.setattr(torch._C, name, lambda *_: 0, raising=False)


def _names(node):
    return frozenset(member.get_name() for member in node.get_nodes())


def _graph(nodes):
    """Scheduler nodes as ours: sizes in bytes are counted here, not taken over."""
    from torch._inductor.virtualized import V

    buffers, ours = {}, []
    for node in nodes:
        kind, space, reduced, shape, whole = "extern", (), (), (), None
        if type(node).__name__ == "NopKernelSchedulerNode":
            kind = "nop"
        elif type(node).__name__ == "SchedulerNode":
            kind = "reduction" if node.is_reduction() else "pointwise"
            space, reduced = (_sizes(sizes) for sizes in node.group[1])
            reduced = reduced if kind == "reduction" else ()
            shape = _sizes(node.node.data.get_size())
            if node.node._split_size is not None:
                parts = node.node._original_ranges, node.node._original_reduction_ranges
                whole = tuple(prod(_sizes(part)) for part in parts)
        ours.append(
            Node(
                name=node.get_name(), kind=kind, space=space, reduced=reduced, shape=shape,
                reads=tuple(_access(dep, buffers) for dep in node.read_writes.reads),
                writes=tuple(_access(dep, buffers) for dep in node.read_writes.writes),
                whole=whole,
            )
        )  # fmt: skip
    outputs = frozenset(V.graph.get_output_names()) & buffers.keys()
    return OperatorGraph(nodes=tuple(ours), buffers=buffers, outputs=outputs)


def _sizes(sizes):
    """Loops one by one (C++) or all together (Triton)."""
    return tuple(int(n) for n in (sizes if isinstance(sizes, tuple | list) else (sizes,)))


def _access(dep, buffers):
    from torch._inductor.virtualized import V

    try:
        element, numel = V.graph.get_dtype(dep.name).itemsize, int(V.graph.get_numel(dep.name))
    except NotImplementedError:  # several results in one have no size of their own
        element, numel = 1, 0
    buffers[dep.name] = Buffer(bytes=numel * element, element_bytes=element)
    if type(dep).__name__ != "MemoryDep":
        return Access(buffer=dep.name, index="all", sizes=(numel,), bytes=numel * element)
    used = {str(symbol) for symbol in dep.index.free_symbols}
    ranges = dict(zip(map(str, dep.var_names), map(int, dep.size), strict=True))
    count = prod(size for loop, size in ranges.items() if loop in used)
    index = re.sub(r"\bd(\d)", r"c\1", str(dep.index))
    return Access(buffer=dep.name, index=index, sizes=tuple(ranges.values()), bytes=count * element)

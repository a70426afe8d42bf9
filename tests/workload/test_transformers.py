"""The same operators as the real modules of `transformers` run, from a description alone.

The trace of the module is derived by running it on fake tensors (`tracer/synthesize.py`): an
independent count, by torch itself, of what runs and what is kept for backward.
"""

import re
from pathlib import Path

import pytest

from triosim.workload import from_config, trace_of

pytest.importorskip("torch", reason="deriving traces needs torch")
pytest.importorskip("transformers", reason="needs transformers (pip install transformers)")

# What prepares positions, masks and labels: whole numbers, of which a model's description has only
# the steps that a mask or a rotation is computed from.
_BOOKKEEPING = {
    "aten::add", "aten::sub", "aten::diff", "aten::ne", "aten::cumsum", "aten::eq", "aten::all",
    "aten::arange", "aten::zeros", "aten::le", "aten::where", "aten::pad", "aten::contiguous",
    "aten::ones_like",
}  # fmt: skip
CASES = [
    ("llama", "sdpa", "bf16"), ("llama", "eager", "bf16"), ("llama", "math", "bf16"),
    ("llama", "sdpa", "fp32"), ("llama_long", "eager", "fp16"), ("llama_long", "sdpa", "bf16"),
    ("llama_mha", "eager", "bf16"), ("llama_mha", "sdpa", "bf16"), ("qwen2", "sdpa", "bf16"),
    ("qwen3", "eager", "bf16"), ("gpt2", "sdpa", "bf16"), ("gpt2", "eager", "bf16"),
    ("gpt2", "math", "bf16"), ("gpt2", "eager", "fp32"), ("gpt2_long", "sdpa", "bf16"),
    ("gpt2_without_dropout", "eager", "bf16"), ("gpt2_without_dropout", "math", "fp32"),
]  # fmt: skip


@pytest.fixture(scope="module")
def pairs():
    """(derived from the module, made from the description), each case once."""
    import sys

    from tracer.derive import derive

    sys.path.insert(0, str(Path(__file__).parent))
    import workload_models as models

    made = {}

    def make(kind, implementation, dtype):
        key = (kind, implementation, dtype)
        if key not in made:
            module = "eager" if implementation == "eager" else "sdpa"
            real = derive(
                f"workload_models:{kind}_{module}", gpu="h100-sxm", batch_size=models.BATCH,
                dtype=dtype, attention="flash" if implementation == "sdpa" else "math",
                optimizer="adamw",
            )  # fmt: skip
            ours = trace_of(
                from_config(models.config_of(kind).to_dict()), batch=models.BATCH,
                seq=models.KINDS[kind][2], gpu="h100-sxm", dtype=dtype,
                implementation=implementation,
            )  # fmt: skip
            made[key] = (real, ours)
        return made[key]

    yield make
    sys.path.remove(str(Path(__file__).parent))


def per_layer(trace, value):
    """Sums by layer; "" is what lies outside the layers."""
    sums = {}
    for op in trace.operators:
        if op.phase != "optimizer":
            found = re.search(r"\.(?:layers|h)\.(\d+)", op.module)
            layer = found[1] if found else ""
            sums[layer] = sums.get(layer, 0) + (getattr(op, value) or 0)
    return sums


@pytest.mark.parametrize(("kind", "implementation", "dtype"), CASES)
def test_flops_saved_bytes_and_traffic(pairs, kind, implementation, dtype):
    real, ours = pairs(kind, implementation, dtype)
    assert ours.meta["parameters"] == real.meta["parameters"]
    for value, tolerance in (("flops", 0.01), ("saved_bytes", 0.03), ("bytes", 0.03)):
        expected, found = per_layer(real, value), per_layer(ours, value)
        assert sum(found.values()) == pytest.approx(sum(expected.values()), rel=tolerance)
        layers = [layer for layer in expected if layer]
        assert layers == [layer for layer in found if layer]
        for layer in layers:
            assert found[layer] == pytest.approx(expected[layer], rel=tolerance), (value, layer)


def operators(trace):
    return [
        (op.name, op.phase, op.module, op.dtype, op.tensor_parallel)
        for op in trace.operators
        if op.phase == "backward" or op.name not in _BOOKKEEPING or ".h." in op.module
        or ".layers." in op.module
    ]  # fmt: skip


@pytest.mark.parametrize(("kind", "implementation", "dtype"), CASES)
def test_operators_one_by_one(pairs, kind, implementation, dtype):
    real, ours = pairs(kind, implementation, dtype)
    assert operators(ours) == operators(real)


@pytest.mark.parametrize(("kind", "implementation", "dtype"), CASES)
def test_times_of_backward_and_optimizer(pairs, kind, implementation, dtype):
    """Forward differs by the launches of what prepares positions, masks and labels."""
    real, ours = pairs(kind, implementation, dtype)
    for phase in ("backward", "optimizer"):
        times = [sum(t.operators[i].time_s for i in t.phase(phase)) for t in (real, ours)]
        assert times[1] == pytest.approx(times[0], rel=1e-6)

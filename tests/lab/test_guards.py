"""What torch.compile guards of a layer. Counts are those of torch 2.13's own guards, which dynamo
listed for GPT2Block (768 wide) and LlamaDecoderLayer of transformers with sdpa attention."""

from __future__ import annotations

from collections import Counter

import pytest

from triosim.lab.guards import (
    CHANGES,
    EVAL,
    FP32,
    GLOBAL,
    LONGER,
    NO_GRAD,
    SAME,
    TENSOR,
    TRUE,
    Captured,
    captured,
)
from triosim.lab.launch_steps import BREAKS, GPT2, LLAMA, NO_BREAK, Setup


def graphs(model: str, broken: str = NO_BREAK) -> list[Captured]:
    return captured(Setup(model=model, tokens=128, launch_us=5, broken=broken))


@pytest.mark.parametrize(("model", "tensors", "modules"), [(GPT2, 13, 3), (LLAMA, 12, 1)])
def test_guards_are_torchs(model: str, tensors: int, modules: int) -> None:
    (whole,) = graphs(model)
    assert Counter(guard.kind for guard in whole.guards) == {
        GLOBAL: 1, TENSOR: tensors, TRUE: modules,
    }  # fmt: skip
    assert {change: whole.broken(change) for change in CHANGES} == {
        SAME: 0, LONGER: 1 if model == GPT2 else 3, FP32: tensors, EVAL: modules, NO_GRAD: 1,
    }  # fmt: skip


@pytest.mark.parametrize("model", [GPT2, LLAMA])
@pytest.mark.parametrize("broken", [name for name in BREAKS if name != NO_BREAK])
def test_after_a_break_each_graph_has_guards_of_its_own(model: str, broken: str) -> None:
    whole, both = graphs(model)[0], graphs(model, broken)
    assert len(both) == 2
    assert sum(graph.operators for graph in both) == whole.operators
    assert sum(graph.kernels for graph in both) >= whole.kernels
    # Parameters and modules are in one of them; each needs torch's state and what it is given.
    own = [guard.of for graph in both for guard in graph.guards if "Parameter" in guard.holds]
    assert sorted(own) == sorted(g.of for g in whole.guards if "Parameter" in g.holds)
    for graph in both:
        assert graph.broken(NO_GRAD) == 1
        assert graph.broken(LONGER) >= 1

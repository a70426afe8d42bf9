"""torchvision's models against the step that TrioSim measured on an H100."""

from __future__ import annotations

import pytest

from triosim import read_trace
from triosim.trace.parameters import find_parameters


@pytest.fixture(autouse=True)
def _torchvision():
    pytest.importorskip(
        "torchvision", reason="needs torchvision, which does not import beside this torch",
        exc_type=Exception,
    )  # fmt: skip


@pytest.mark.parametrize("model", ["vgg13", "resnet50"])
def test_operators_are_those_of_the_measured_trace(derived, upstream, model):
    measured = read_trace(upstream / model)
    trace = derived(f"torchvision:{model}", batch_size=128)
    assert [(op.phase, op.name, op.tensor_parallel) for op in trace.operators] == [
        (op.phase, op.name, op.tensor_parallel) for op in measured.operators
    ]
    assert find_parameters(trace).bytes == find_parameters(measured).bytes

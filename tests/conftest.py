"""Fixtures for every test: data beside the repository, and small traces made by hand."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import settings

from triosim import Result, Scenario, Trace, simulate, write_trace
from triosim.trace import Operator, Tensor

# A loaded machine is slow, not wrong; and what lands must not depend on luck, while people's own
# runs look for new examples.
settings.register_profile("project", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("project")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference data beside the repository."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the folder of reference data is not beside the repository")
    return folder


@pytest.fixture(scope="session")
def upstream(shared: Path) -> Path:
    """The original project's traces of an H100."""
    folder = shared / "upstream" / "trace2-h100-bs128"
    if not folder.is_dir():
        pytest.skip("the original project's traces are not beside the repository")
    return folder


@pytest.fixture
def quiet_streamlit() -> Iterator[None]:
    """It warns where its state is used and no page runs."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def layered_trace(
    forward_us: Sequence[float],
    backward_us: Sequence[float],
    *,
    activation_bytes: Sequence[int] | None = None,
    parameter_bytes: int = 4,
    optimizer_us: float = 0.0,
    batch_size: int = 1,
) -> Trace:
    """A chain of layers, each with one parameter, then one optimizer operator.

    Layer i reads activation i and weight i and writes activation i+1. Its backward operator reads
    the gradient of activation i+1, activation i and the weight, and writes the gradients of
    activation i and of the weight. `activation_bytes` has one entry more than there are layers.
    """
    count = len(forward_us)
    sizes = activation_bytes or [4] * (count + 1)
    ids = iter(range(1, 1_000_000, 2))

    def tensor(size: int) -> Tensor:
        number = next(ids)
        return Tensor(
            id=number, storage=number + 1, shape=(batch_size, size), numel=size, element_bytes=1
        )

    activations = [tensor(size) for size in sizes]
    weights = [tensor(parameter_bytes) for _ in range(count)]
    gradients = [tensor(parameter_bytes) for _ in range(count)]
    errors = [tensor(size) for size in sizes]
    operators = [
        _operator(f"layer{i}", "forward", us, (activations[i], weights[i]), (activations[i + 1],))
        for i, us in enumerate(forward_us)
    ]
    operators += [
        _operator(
            f"Layer{i}Backward0",
            "backward",
            backward_us[i],
            # The last layer's output stands for the loss: its own gradient starts backward.
            (activations[count] if i == count - 1 else errors[i + 1], activations[i], weights[i]),
            (errors[i], gradients[i]),
        )
        for i in reversed(range(len(backward_us)))
    ]
    if optimizer_us:
        operators.append(_operator("step", "optimizer", optimizer_us, (*weights, *gradients), ()))
    return Trace(name="layers", operators=tuple(operators), batch_size=batch_size)


def _operator(
    name: str, phase: str, us: float, inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...]
) -> Operator:
    return Operator(
        id=1,
        name=name,
        phase=phase,
        time_s=us * 1e-6,
        inputs=inputs,
        outputs=outputs,
        tensor_parallel=phase != "optimizer",
    )


@pytest.fixture(scope="session")
def make_trace() -> Callable[..., Trace]:
    return layered_trace


@pytest.fixture
def simulate_trace(tmp_path: Path) -> Callable[..., Result]:
    """Simulate a trace that was made by hand; keywords go to the scenario."""

    def run(trace: Trace, **settings: object) -> Result:
        write_trace(trace, tmp_path / trace.name)
        return simulate(Scenario(trace_dir=str(tmp_path / trace.name), **settings))

    return run

"""Trained parameters and their gradients."""

from __future__ import annotations

import csv

import pytest

from triosim import read_trace
from triosim.trace.parameters import find_parameters

# From reference/README.md: the bytes that case 1 all-reduces.
BYTES = {
    "mlp": 100_306_848,
    "convnet": 8_845_712,
    "transformer": 231_937_024,
    "vgg13": 532_191_392,
    "resnet50": 102_228_128,
}


@pytest.fixture
def folder_of(repository, request):
    def find(name):
        if name in ("vgg13", "resnet50"):
            return request.getfixturevalue("upstream") / name
        return repository / "sample_trace" / name

    return find


def trained_by_the_rule(folder):
    """Id and bytes of what forward reads and does not write and the optimizer reads."""
    csv.field_size_limit(2**26)
    with (folder / "tensor.csv").open() as file:
        sizes = {
            (row["TensorID"], row["TensorNumElement"]): int(row["TensorEachByte"])
            for row in csv.DictReader(file)
        }
    with (folder / "trace.csv").open() as file:
        rows = list(csv.DictReader(file))

    def named(phase, ids, numels):
        chosen = [row for row in rows if row["stage"] == phase]
        return {
            pair
            for row in chosen
            for pair in zip(row[ids][1:-1].split("; "), row[numels][1:-1].split("; "), strict=True)
        }

    read = named("forward", "Operator_input", "InputSize")
    written = {i for i, _ in named("forward", "Operator_output", "OutputSize")}
    updated = {i for i, _ in named("optimizer", "Operator_input", "InputSize")}
    return {
        int(i): int(numel) * sizes[i, numel]
        for i, numel in read
        if i in updated and i not in written
    }


@pytest.mark.parametrize("name", BYTES)
def test_trained_bytes(folder_of, name):
    folder = folder_of(name)
    want = trained_by_the_rule(folder)
    assert sum(want.values()) == BYTES[name]
    parameters = find_parameters(read_trace(folder))
    assert {tensor.id: tensor.bytes for tensor in parameters.tensors} == want
    assert parameters.bytes == BYTES[name]


def test_three_gradients_of_vgg13_are_not_resolved_all_biases(upstream):
    parameters = find_parameters(read_trace(upstream / "vgg13"))
    unresolved = [parameters.tensors[p] for p in parameters.unresolved]
    assert [len(tensor.shape) for tensor in unresolved] == [1, 1, 1]


def test_one_gradient_of_resnet50_is_not_resolved(upstream):
    assert len(find_parameters(read_trace(upstream / "resnet50")).unresolved) == 1


@pytest.mark.parametrize("name", ["mlp", "convnet", "transformer"])
def test_the_shipped_traces_name_every_gradient(folder_of, name):
    parameters = find_parameters(read_trace(folder_of(name)))
    assert all(gradient.output is not None for gradient in parameters.gradients)


@pytest.mark.parametrize("name", BYTES)
def test_no_output_is_the_gradient_of_two_parameters(folder_of, name):
    trace = read_trace(folder_of(name))
    parameters = find_parameters(trace)
    outputs = [g.output for g in parameters.gradients if g.output is not None]
    assert len(outputs) == len(set(outputs))
    for gradient in parameters.gradients:
        if gradient.output is not None:
            operator, tensor = gradient.output
            assert trace.operators[operator].phase == "backward"
            numels = {t.id: t.numel for t in trace.operators[operator].outputs}
            assert numels[tensor] == parameters.tensors[gradient.parameter].numel


def test_gradients_of_the_good_trace_are_tensors_15_and_13(good):
    parameters = find_parameters(good.read())
    assert [tensor.id for tensor in parameters.tensors] == [2, 5]
    assert [gradient.output for gradient in parameters.gradients] == [(7, 15), (5, 13)]
    assert parameters.bytes == 432 + 10_240


def test_what_a_forward_operator_writes_is_not_trained(in_words):
    """Running statistics: read by forward, written by it, listed by the optimizer."""
    trace = in_words(
        ("forward", "norm", [1, 2, 3], [4, 3]),
        ("backward", "NormBackward0", [4, 2], [5]),
        ("optimizer", "add", [2, 5, 3], []),
    )
    assert [tensor.id for tensor in find_parameters(trace).tensors] == [2]


def test_a_frozen_weight_is_not_trained(in_words):
    trace = in_words(
        ("forward", "linear", [1, 2], [4]),
        ("forward", "linear", [4, 3], [6]),
        ("optimizer", "add", [3, 7], []),
    )
    assert [tensor.id for tensor in find_parameters(trace).tensors] == [3]


def gradient(trace):
    (found,) = find_parameters(trace).gradients
    return found.producer, found.output


STEP = [("forward", "linear", [1, 2], [3]), ("forward", "loss", [3], [4])]


def test_the_last_output_of_the_gradient_counts(in_words):
    """A gradient that is accumulated is ready when its last part is added."""
    trace = in_words(
        *STEP,
        ("backward", "LossBackward0", [4], [5]),
        ("backward", "LinearBackward0", [5, 1], [9]),
        ("backward", "AccumulateGrad", [5, 1], [9]),
        ("backward", "Other", [5], [8]),
        ("optimizer", "add", [2, 9], []),
    )
    assert gradient(trace) == (4, (4, 9))


def test_else_its_storage_at_equal_size(in_words):
    trace = in_words(
        *STEP,
        ("backward", "LossBackward0", [4], [5]),
        ("backward", "LinearBackward0", [5, 1], [6, 7]),
        ("optimizer", "add", [2, 9], []),
        storage={6: 500, 7: 500, 9: 500},
        numel={2: 10, 9: 10, 6: 20, 7: 10},
    )
    assert gradient(trace) == (3, (3, 7))


def test_else_the_next_unclaimed_output_of_equal_size_last_parameter_first(in_words):
    trace = in_words(
        ("forward", "linear", [1, 2], [3]),
        ("forward", "linear", [3, 4], [5]),
        ("backward", "LinearBackward0", [5, 3], [6, 7]),
        ("backward", "LinearBackward0", [6, 1], [8]),
        ("optimizer", "add", [2, 4, 21, 22], []),
        numel={2: 10, 4: 10, 7: 10, 8: 10, 21: 10, 22: 10},
    )
    parameters = find_parameters(trace)
    assert [t.id for t in parameters.tensors] == [2, 4]
    assert [g.output for g in parameters.gradients] == [(3, 8), (2, 7)]


def test_else_the_backward_operator_that_reads_the_parameter(in_words):
    trace = in_words(
        *STEP,
        ("backward", "LossBackward0", [4], [5]),
        ("backward", "LinearBackward0", [5, 2], [6]),
        ("backward", "Other", [6], [8]),
        ("optimizer", "add", [2, 9], []),
        numel={2: 10, 9: 10},
    )
    assert gradient(trace) == (3, None)


def test_else_the_end_of_backward(in_words):
    trace = in_words(
        *STEP,
        ("backward", "LossBackward0", [4], [5]),
        ("optimizer", "add", [2, 9], []),
        numel={2: 10, 9: 10},
    )
    assert gradient(trace) == (None, None)
    assert find_parameters(trace).unresolved == [0]


def test_lists_of_an_optimizer_are_read_position_by_position(in_words):
    """lerp_(momenta, gradients) names no parameter; addcdiv_(parameters, momenta, ...) does."""
    trace = in_words(
        ("forward", "linear", [1, 2], [3]),
        ("forward", "linear", [3, 4], [5]),
        ("backward", "B2", [5], [6, 24]),
        ("backward", "B1", [6], [22]),
        ("optimizer", "lerp_", [32, 34, 22, 24], []),
        ("optimizer", "addcdiv_", [2, 4, 32, 34, 42, 44], []),
        numel={2: 10, 4: 10, 22: 10, 24: 10, 32: 10, 34: 10, 42: 10, 44: 10},
    )
    parameters = find_parameters(trace)
    assert [g.output for g in parameters.gradients] == [(3, 22), (2, 24)]
    assert parameters.gradient_ids == {22, 24}

"""Which forward operator a backward operator belongs to."""

from __future__ import annotations

import pytest

from triosim import read_trace
from triosim.trace.partners import find_partners


def test_the_weight_decides(in_words):
    trace = in_words(
        ("forward", "aten::linear", [1, 2], [3]),
        ("forward", "aten::linear", [3, 4], [5]),
        ("backward", "AddmmBackward0", [9, 4], [10]),
        ("backward", "AddmmBackward0", [10, 2], [11]),
        ("optimizer", "add", [2, 4], []),
    )
    assert find_partners(trace) == {2: 1, 3: 0}


def test_the_output_decides_without_a_weight(in_words):
    trace = in_words(
        ("forward", "aten::relu", [1], [2]),
        ("forward", "aten::tanh", [2], [3]),
        ("forward", "aten::relu", [3], [4]),
        ("backward", "ReluBackward0", [9, 4], [10]),
        ("backward", "TanhBackward0", [10, 3], [11]),
        ("backward", "ReluBackward0", [11, 2], [12]),
    )
    assert find_partners(trace) == {3: 2, 4: 1, 5: 0}


def test_a_chain_of_equal_operators_is_taken_from_the_end(in_words):
    trace = in_words(
        ("forward", "aten::relu", [1], [2]),
        ("forward", "aten::relu", [2], [3]),
        ("forward", "aten::relu", [3], [4]),
        ("backward", "ReluBackward0", [9, 4], [10]),
        ("backward", "ReluBackward0", [10, 3], [11]),
        ("backward", "ReluBackward0", [11, 2], [12]),
    )
    assert find_partners(trace) == {3: 2, 4: 1, 5: 0}


def test_two_backward_operators_of_one_loss_belong_to_it(in_words):
    trace = in_words(
        ("forward", "aten::linear", [1, 2], [3]),
        ("forward", "aten::cross_entropy_loss", [3, 4], [5]),
        ("backward", "NllLossBackward0", [9, 4], [10]),
        ("backward", "LogSoftmaxBackward0", [10, 3], [11]),
        ("backward", "AddmmBackward0", [11, 2], [12]),
        ("optimizer", "add", [2], []),
    )
    assert find_partners(trace) == {2: 1, 3: 1, 4: 0}


def test_the_name_decides_without_a_tensor(in_words):
    trace = in_words(
        ("forward", "aten::dropout", [1], [2]),
        ("forward", "aten::tanh", [2], [3]),
        ("forward", "aten::gelu", [3], [4]),
        ("backward", "GeluBackward0", [20], [21]),
        ("backward", "TanhBackward0", [22], [23]),
        ("backward", "DropoutBackward0", [24], [25]),
    )
    assert find_partners(trace) == {3: 2, 4: 1, 5: 0}


def test_one_wrong_hint_does_not_drag_the_rest_along(in_words):
    """The first backward operator reads the first weight; the others say how the order goes on."""
    forward = [("forward", "aten::linear", [2 * i + 1, 2 * i + 2], [2 * i + 3]) for i in range(4)]
    trace = in_words(
        *forward,
        ("backward", "AddmmBackward0", [90, 2], [91]),
        ("backward", "AddmmBackward0", [91, 6], [92]),
        ("backward", "AddmmBackward0", [92, 4], [93]),
        ("backward", "AddmmBackward0", [93, 2], [94]),
        ("optimizer", "add", [2, 4, 6, 8], []),
    )
    partners = find_partners(trace)
    assert [partners[i] for i in (5, 6, 7)] == [2, 1, 0]
    assert partners[4] in (2, 3)


def test_no_forward_operator_no_partners(in_words):
    assert find_partners(in_words(("backward", "B", [1], [2]))) == {}


@pytest.mark.parametrize("name", ["mlp", "convnet", "transformer"])
def test_every_backward_operator_has_one_and_the_order_is_reversed(repository, name):
    trace = read_trace(repository / "sample_trace" / name)
    partners = find_partners(trace)
    backward = list(trace.phase("backward"))
    assert list(partners) == backward
    chosen = [partners[i] for i in backward]
    assert chosen == sorted(chosen, reverse=True)
    assert set(chosen) <= set(trace.phase("forward"))


def test_convolutions_of_vgg13_belong_to_the_convolution_with_their_weight(upstream):
    trace = read_trace(upstream / "vgg13")
    readers = {
        op.inputs[1].id: i for i, op in enumerate(trace.operators) if op.name == "aten::conv2d"
    }
    assert len(readers) == 10
    found = {
        partner: readers[weight.id]
        for i, partner in find_partners(trace).items()
        if trace.operators[i].name.endswith("ConvolutionBackward0")
        for weight in trace.operators[i].inputs
        if weight.id in readers
    }
    assert len(found) == 10
    assert all(partner == reader for partner, reader in found.items())


def test_fused_attention_is_one_operator_by_any_name(in_words):
    trace = in_words(
        ("forward", "aten::linear", [1, 2], [3]),
        ("forward", "aten::scaled_dot_product_attention", [3], [4]),
        ("forward", "aten::linear", [4, 5], [6]),
        ("backward", "AddmmBackward0", [9, 5], [10]),
        ("backward", "ScaledDotProductFlashAttentionBackward0", [10, 3, 4], [11]),
        ("backward", "AddmmBackward0", [11, 2], [12]),
        ("optimizer", "add", [2, 5], []),
    )
    assert find_partners(trace) == {3: 2, 4: 1, 5: 0}

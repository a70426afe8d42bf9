"""Which tensors are the same memory."""

from __future__ import annotations

import pytest

from triosim.trace.memory import Origin, Role, find_memory


def lives(trace):
    """Of each buffer: the tensors, the origin and the operators that use it."""
    return [
        ([t.id for t in b.tensors], str(b.origin), list(b.uses)) for b in find_memory(trace).buffers
    ]


def test_every_storage_is_one_buffer(in_words):
    trace = in_words(("forward", "linear", [1, 2], [3]), ("forward", "relu", [3], [4]))
    assert lives(trace) == [
        ([1], "existing", [0]),
        ([2], "existing", [0]),
        ([3], "produced", [0, 1]),
        ([4], "produced", [1]),
    ]


def test_a_new_tensor_in_an_old_storage_is_new_memory(in_words):
    """The allocator gave the address again: the output is not among the inputs."""
    trace = in_words(
        ("forward", "a", [1], [2]),
        ("forward", "b", [2], [3]),
        ("forward", "c", [3], [4]),
        storage={2: 7, 4: 7},
        numel={2: 10, 4: 99},
    )
    found = lives(trace)
    assert found[1] == ([2], "produced", [0, 1])
    assert found[3] == ([4], "produced", [2])
    assert [b.bytes for b in find_memory(trace).buffers] == [4, 40, 4, 396]


def test_an_old_id_in_its_old_storage_may_be_new_memory_too(in_words):
    trace = in_words(("forward", "a", [1], [2]), ("forward", "b", [1], [2]))
    assert lives(trace) == [
        ([1], "existing", [0, 1]),
        ([2], "produced", [0]),
        ([2], "produced", [1]),
    ]


def test_an_update_in_place_is_the_same_memory(in_words):
    trace = in_words(("forward", "relu_", [1], [1]), ("forward", "relu_", [1], [1]))
    assert lives(trace) == [([1], "existing", [0, 1])]
    assert [list(created) for created in find_memory(trace).creates] == [[], []]


def test_a_view_is_the_same_memory_of_its_largest_size(in_words):
    trace = in_words(
        ("forward", "make", [1], [2]),
        ("forward", "view", [2], [3]),
        ("forward", "read", [3], [4]),
        storage={2: 7, 3: 7},
        numel={2: 10, 3: 25},
    )
    assert lives(trace)[1] == ([2, 3], "produced", [0, 1, 2])
    assert [b.bytes for b in find_memory(trace).buffers] == [4, 100, 4]


def test_a_storage_read_under_another_id_is_the_same_memory(in_words):
    trace = in_words(
        ("forward", "make", [1], [2]), ("forward", "read", [3], [4]), storage={2: 7, 3: 7}
    )
    assert lives(trace)[1] == ([2, 3], "produced", [0, 1])


def test_two_outputs_in_one_storage_are_one_buffer(in_words):
    trace = in_words(("forward", "split", [1], [2, 3]), storage={2: 7, 3: 7})
    assert lives(trace) == [([1], "existing", [0]), ([2, 3], "produced", [0])]


def test_memory_used_and_memory_made(in_words):
    trace = in_words(("forward", "a", [1, 2], [2, 3]), ("forward", "b", [3, 1], [4]))
    memory = find_memory(trace)
    assert [list(used) for used in memory.uses] == [[0, 1], [2, 0]]
    assert [list(made) for made in memory.creates] == [[2], [3]]


@pytest.mark.parametrize(
    ("phase", "origin"),
    [
        ("forward", Origin.EXISTING),
        ("backward", Origin.SAVED),
        ("optimizer", Origin.EXISTING),
    ],
)
def test_where_an_unknown_input_comes_from(in_words, phase, origin):
    trace = in_words(("forward", "f", [1], [2]), (phase, "x", [9], [8]))
    (buffer,) = [b for b in find_memory(trace).buffers if next(iter(b.tensors)).id == 9]
    assert buffer.origin is origin


def test_what_buffers_are_for(good):
    # 1 input, 2 and 5 weights, 3 and 6 biases that are not trained, 4 and 7 activations, 8 target,
    # 13 and 15 gradients.
    found = {next(iter(b.tensors)).id: b.role for b in find_memory(good.read()).buffers}
    assert {i for i, role in found.items() if role is Role.PARAMETERS} == {2, 3, 5, 6}
    assert {i for i, role in found.items() if role is Role.GRADIENTS} == {13, 15}
    assert {i for i, role in found.items() if role is Role.INPUTS} == {1, 8}
    assert {i for i, role in found.items() if role is Role.ACTIVATIONS} == (
        {4, 7, 9, 10, 11, 12, 14}
    )


def test_state_of_the_optimizer(in_words):
    trace = in_words(
        ("forward", "linear", [1, 2], [3]),
        ("backward", "LinearBackward0", [3, 1], [4]),
        ("optimizer", "adam", [2, 4, 5, 6], [5, 6]),
    )
    found = {next(iter(b.tensors)).id: (b.role, b.scales) for b in find_memory(trace).buffers}
    assert found[5] == found[6] == (Role.OPTIMIZER, False)
    assert found[2] == (Role.PARAMETERS, False)
    assert found[4] == (Role.GRADIENTS, False)
    assert found[3] == (Role.ACTIVATIONS, True)


def test_most_of_what_vgg13_reads_first_in_backward_was_saved(upstream):
    """By storage and without what backward sees first, about 2.2 GB exist before the step."""
    from triosim import read_trace

    buffers = find_memory(read_trace(upstream / "vgg13")).buffers
    existing = sum(b.bytes for b in buffers if b.origin is Origin.EXISTING)
    assert existing == pytest.approx(2.2e9, rel=0.05)

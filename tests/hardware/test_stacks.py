"""The stacks: every constant has a range and a source, mistakes are named."""

from __future__ import annotations

import copy
import tomllib
from importlib.resources import files

import pytest

from triosim.errors import ConfigError
from triosim.hardware import gpu_names
from triosim.hardware.stacks import RANGED, SHARES, load_stack, read_stacks, stack_names
from triosim.workload import IMPLEMENTATIONS

NAMES = (
    "generic", "torchtitan-eager", "torchtitan-compile", "torchtitan-2024", "megatron-2021",
    "megatron-2023", "megatron-core", "deepspeed",
)  # fmt: skip


def entries():
    text = (files("triosim.hardware") / "data" / "stacks.toml").read_text(encoding="utf-8")
    return copy.deepcopy(tomllib.loads(text))


def test_the_stacks_are_there():
    assert tuple(stack_names()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_constants_lie_in_their_ranges_and_say_where_they_are_from(name):
    stack = load_stack(name)
    for constant in (*(getattr(stack, key) for key in RANGED), *stack.clock.values()):
        assert constant.low <= constant.value <= constant.high
    for key in SHARES:
        assert getattr(stack, key).low > 0
        assert getattr(stack, key).high <= 1
    assert all(stack.sources[key] for key in RANGED if not key.startswith("compiled"))
    assert set(stack.clock) <= set(gpu_names())
    assert stack.implementation in IMPLEMENTATIONS
    assert stack.compiled_implementation in IMPLEMENTATIONS


def test_ends_of_the_ranges():
    stack = load_stack("torchtitan-compile")
    fast, slow = stack.at_end(fast=True), stack.at_end(fast=False)
    assert (fast.gemm.value, slow.gemm.value) == (stack.gemm.high, stack.gemm.low)
    assert (fast.launch_us.value, slow.launch_us.value) == (
        stack.launch_us.low,
        stack.launch_us.high,
    )
    assert fast.clock_of("h100-96gb") == stack.clock["h100-96gb"].high
    assert fast.overhead_gib == slow.overhead_gib == stack.overhead_gib
    assert stack.clock_of("h100-sxm") == 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"gemm": [0.9, 0.95, 1.0]}, "needs 0 <= low <= value <= high"),
        ({"gemm": [0.9, 0.5, 1.2]}, "needs 0 <= low <= value <= high <= 1"),
        ({"gemm": 0.9}, r"gemm = 0.9: must be \[value, low, high\]"),
        ({"compile": 1}, "compile = 1: must be of type bool"),
        ({"colour": "red"}, "colour: no such entry"),
        ({"like": "nobody"}, "like = nobody: must be another entry"),
    ],
)
def test_what_is_wrong_in_the_file_is_named(change, sentence):
    wrong = entries()
    wrong["generic"] |= change
    with pytest.raises(ConfigError, match=sentence):
        read_stacks(wrong)


def test_a_missing_constant_and_a_missing_source_are_named():
    wrong = entries()
    del wrong["generic"]["launch_us"]
    with pytest.raises(ConfigError, match="launch_us: is missing"):
        read_stacks(wrong)
    wrong = entries()
    del wrong["generic"]["sources"]["memory"]
    with pytest.raises(ConfigError, match="sources of memory: must say where"):
        read_stacks(wrong)

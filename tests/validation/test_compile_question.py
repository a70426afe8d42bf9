"""The question why compile should gain more on 128 GPUs than on 8, and four switches."""

import pytest

from triosim.errors import ConfigError
from triosim.validation.compile_question import (
    GATHER,
    JITTER,
    LAUNCH,
    MECHANISMS,
    SLOWDOWN,
    compile_gains,
    published_gains,
)


@pytest.fixture(scope="module")
def gains():
    """By the mechanisms that are on: none, each alone, all."""
    chosen = [(), *((name,) for name in MECHANISMS), tuple(MECHANISMS)]
    return {names: compile_gains(dict.fromkeys(names, True)) for names in chosen}


def test_published_seconds_and_gains():
    """6,258 to 9,409 tokens/s and so on as published; the repository's savings 0.386, 0.408 s."""
    at_8, at_128 = published_gains()
    assert (at_8.gpus, at_128.gpus) == (8, 128)
    assert at_8.saved_s == pytest.approx(0.386, abs=5e-4)
    assert at_128.saved_s == pytest.approx(0.408, abs=5e-4)
    assert [at_8.gain, at_128.gain] == pytest.approx([0.157, 0.162], abs=5e-4)
    paper = published_gains(second_hand=True)
    assert [g.saved_s for g in paper] == pytest.approx([0.163, 0.375], abs=5e-4)


@pytest.mark.parametrize("names", [(), tuple(MECHANISMS)], ids=["none", "all"])
def test_seconds_saved_are_those_of_the_first_hand_runs(gains, names):
    for ours, published in zip(gains[names], published_gains(), strict=True):
        assert ours.saved_s == pytest.approx(published.saved_s, rel=0.15)


def test_with_every_mechanism_off_more_gpus_save_nothing_more(gains):
    at_8, at_128 = gains[()]
    assert at_128.saved_s <= at_8.saved_s * (1 + 1e-6)
    # The gain itself moves by what the optimizer's smaller shards take off both steps.
    assert at_128.gain - at_8.gain < 0.005


def test_what_each_mechanism_costs(gains):
    """Waits and slow-down lengthen steps with and without compile; at 16,384 tokens a GPU the CPU
    is far ahead, so that launches change nothing."""
    off = gains[()]
    for name in MECHANISMS:
        for before, after in zip(off, gains[name,], strict=True):
            assert after.eager_s >= before.eager_s * (1 - 1e-9)
            assert after.compiled_s >= before.compiled_s * (1 - 1e-9)
    for name in (SLOWDOWN, GATHER):
        for before, after in zip(off, gains[name,], strict=True):
            assert after.compiled_s > before.compiled_s
            assert after.gain < before.gain
    for name in (LAUNCH, JITTER):
        assert [g.gain for g in gains[name,]] == pytest.approx([g.gain for g in off], rel=1e-3)


def test_a_mechanism_that_is_none_is_named():
    with pytest.raises(ConfigError, match="switches"):
        compile_gains({"magic": True})

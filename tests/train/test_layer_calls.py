"""What the CPU does for an eager layer beside launching its kernels."""

import pytest

from tests.train.conftest import scenario
from triosim.hardware import load_gpu
from triosim.train import make_plan
from triosim.train.blocks import BACKWARD, FORWARD
from triosim.train.train import run_plan

LAUNCH_US, CALLS = 1000.0, 50.0  # so slow that a layer's kernels never fill the GPU


def passes(kinds=(FORWARD, BACKWARD), **settings):
    """The passes of a small layer, on one GPU unless told otherwise."""
    constants = {"launch_us": LAUNCH_US, "layer_calls": CALLS}
    one = {"gpus": 1, "dp_shard": 1, "constants": constants, **settings}
    result = run_plan(make_plan(scenario(**one)))
    layer = next(unit for unit in result.plan.units(0) if unit.layer >= 0)
    return [result.writer.blocks.simulate(layer, kind) for kind in kinds]


def test_an_eager_pass_takes_the_cpu_its_launches_and_its_calls():
    for one in passes():
        assert one.seconds == pytest.approx((one.kernels + CALLS) * LAUNCH_US * 1e-6)


def test_a_layer_that_runs_forward_again_is_called_again():
    [plain] = passes((BACKWARD,))
    [again] = passes((BACKWARD,), recompute="full")
    launches = again.kernels - plain.kernels
    assert again.seconds - plain.seconds == pytest.approx((launches + CALLS) * LAUNCH_US * 1e-6)


def test_parts_of_a_split_backward_share_its_calls():
    parts = passes(("input", "weight"), schedule="zb-h1", gpus=2, pp=2, global_batch=4)
    calls = sum(one.seconds / (LAUNCH_US * 1e-6) - one.kernels for one in parts)
    assert calls == pytest.approx(CALLS)


@pytest.mark.parametrize("settings", [{"compile": True}, {"cuda_graphs": True}])
def test_compiled_and_replayed_layers_have_none(settings):
    constants = {"compiled_launch_us": LAUNCH_US, "launch_us": LAUNCH_US, "layer_calls": 0.0}
    without = passes(**settings, constants=constants)
    found = passes(**settings, constants={**constants, "layer_calls": CALLS})
    assert [one.seconds for one in found] == [one.seconds for one in without]


def test_launches_and_calls_take_longer_on_slower_hosts():
    for one in passes(gpu="a100"):
        expected = (one.kernels + CALLS) * LAUNCH_US * 1e-6 / load_gpu("a100").host_speed
        assert one.seconds == pytest.approx(expected)

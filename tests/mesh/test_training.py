"""Meshes of training jobs."""

import pytest

from triosim.errors import ConfigError
from triosim.mesh import AXES, expert_mesh, training_mesh


def test_tensor_parallel_ranks_are_neighbours():
    # 405B on 512 GPUs: dp 8 x tp 8 x pp 8.
    mesh = training_mesh(512, tp=8, pp=8)
    assert mesh.names == AXES
    assert mesh.axis_size("dp_shard") == 8
    assert mesh.hosts_per_group("tp", 8) == 1
    assert mesh.hosts_per_group("dp_shard", 8) == 8


@pytest.mark.parametrize("order", [AXES, ("dp_shard", "tp", "cp", "pp", "dp_replicate")])
def test_experts_share_the_ranks_of_data_and_context(order):
    mesh = training_mesh(64, dp_replicate=2, cp=2, tp=2, pp=2, order=order)
    experts = expert_mesh(mesh, 4)
    assert experts.shape == (2, 2, 2, 4, 2)
    data = {frozenset(group) for group in mesh.groups(("dp_shard", "cp")).tolist()}
    for group in experts.groups("ep").tolist():
        assert any(set(group) <= whole for whole in data)
    spread = experts.groups(("dp_shard_mod_ep", "ep")).tolist()
    assert {frozenset(group) for group in spread} == data


@pytest.mark.parametrize(
    ("sizes", "sentence"),
    [
        ({"tp": 3}, r"tp 3: must divide the 8 GPUs; nearest: 2 or 4\."),
        ({"tp": 4, "cp": 3}, r"cp 3: must divide 2, what other axes leave of 8 GPUs; nearest: 2\."),
        ({"tp": 16}, r"tp 16: must divide the 8 GPUs; nearest: 8\."),
        ({"tp": 0}, r"tp 0: must be at least 1, or -1 for what is left\."),
        ({"tp": -1}, r"tp -1: only one axis can be the rest; dp_shard is\."),
        ({"tp": 2, "dp_shard": 2}, r"gpus 8: .* dp_shard 4 \(or -1\) would make it so\."),
    ],
)
def test_errors_name_the_nearest_legal_sizes(sizes, sentence):
    with pytest.raises(ConfigError, match=sentence):
        training_mesh(8, **sizes)


def test_experts_must_divide_their_ranks():
    with pytest.raises(ConfigError, match=r"ep 3: must divide dp_shard x cp = 8; nearest: 2 or 4"):
        expert_mesh(training_mesh(16, cp=2, tp=2), 3)
    with pytest.raises(ConfigError, match="gpus 0: must be a whole number from 1 to"):
        training_mesh(0)

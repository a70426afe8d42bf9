"""Ranks in arrays with named axes."""

import numpy as np
import pytest

from triosim.errors import ConfigError
from triosim.mesh import DeviceMesh


def test_the_last_axis_is_innermost():
    mesh = DeviceMesh((2, 4), ("dp", "tp"))
    assert mesh.groups("tp").tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert mesh.groups("dp").tolist() == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert mesh.coordinates(6).tolist() == [1, 2]
    assert (mesh.size, mesh.ndim, mesh.axis_size("tp"), mesh.axis("tp")) == (8, 2, 4, 1)


def test_another_order_puts_another_axis_innermost():
    mesh = DeviceMesh((2, 4), ("dp", "tp"), order=("tp", "dp"))
    assert mesh.groups("dp").tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert mesh.hosts_per_group("dp", 4) == 1
    assert mesh.hosts_per_group("tp", 4) == 2


def test_coordinates_and_ranks_are_inverse():
    mesh = DeviceMesh((3, 2, 5), ("a", "b", "c"), order=("c", "a", "b"))
    assert np.array_equal(mesh.coordinates(mesh.ranks).reshape(-1, 3), mesh.coordinates())
    assert np.array_equal(mesh.ranks[tuple(mesh.coordinates(np.arange(30)).T)], np.arange(30))


@pytest.mark.parametrize("axes", ["dp", "cp", "tp", ("dp", "cp"), ("cp", "tp"), ("dp", "tp")])
def test_every_rank_is_in_one_group(axes):
    groups = DeviceMesh((2, 3, 5), ("dp", "cp", "tp")).groups(axes)
    assert sorted(groups.ravel()) == list(range(30))


@pytest.mark.parametrize("rank", [0, 7, 29])
def test_groups_and_sub_meshes_are_those_of_torch(in_torch, rank):
    mesh = DeviceMesh((2, 3, 5), ("dp", "cp", "tp"))
    with in_torch(mesh, rank) as torch:
        for axes in ("dp", "cp", "tp"):
            assert torch.there[axes].mesh.tolist() in mesh.groups(axes).tolist()
        for axes in (("dp", "cp"), ("cp", "tp"), ("dp", "tp")):
            there = torch.there[axes]
            assert mesh.sub_mesh(axes, rank).ranks.tolist() == there.mesh.tolist()
            assert there._flatten().mesh.tolist() in mesh.groups(axes).tolist()


def test_flatten_and_split_are_inverse():
    mesh = DeviceMesh((2, 3, 4), ("pp", "dp", "cp"))
    flat = mesh.flatten(("dp", "cp"), "data")
    assert flat.names == ("pp", "data")
    assert np.array_equal(flat.groups("data"), mesh.groups(("dp", "cp")))
    assert flat.split("data", {"dp": 3, "cp": 4}) == mesh
    # Another factorisation of the same ranks.
    assert flat.split("data", {"rest": 2, "ep": 6}).groups("ep").tolist()[0] == list(range(6))


def test_a_sub_mesh_is_the_one_of_a_rank():
    mesh = DeviceMesh((2, 2, 2), ("pp", "dp", "tp"))
    assert mesh.sub_mesh(("dp", "tp"), 6).ranks.tolist() == [[4, 5], [6, 7]]
    assert mesh.sub_mesh(("dp", "tp"), 6).coordinates(6).tolist() == [1, 0]
    with pytest.raises(ConfigError, match=r"rank 3: .* has ranks 4, 5, 6, 7\."):
        mesh.sub_mesh(("dp", "tp"), 6).coordinates([5, 3])


def test_equal_meshes_hash_alike():
    mesh = DeviceMesh((2, 2), ("a", "b"))
    assert mesh == DeviceMesh((2, 2), ("a", "b"), ranks=[0, 1, 2, 3])
    assert hash(mesh) == hash(DeviceMesh([2, 2], ["a", "b"]))
    assert mesh != DeviceMesh((2, 2), ("a", "b"), order=("b", "a"))
    assert mesh != "mesh"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: DeviceMesh((2, 0), ("a", "b")), "whole numbers of at least 1"),
        (lambda: DeviceMesh((2, 1.5), ("a", "b")), "whole numbers of at least 1"),
        (lambda: DeviceMesh(4, ("a",)), "whole numbers of at least 1, as in"),
        (lambda: DeviceMesh((2, 2), ("a",)), "must be 2, one for each axis"),
        (lambda: DeviceMesh((2, 2), ("a", "a")), "must differ from each other"),
        (lambda: DeviceMesh((2**20, 2**20), ("a", "b")), "at most 16,777,216 ranks"),
        (lambda: DeviceMesh((2, 2), ("a", "b"), order=("a",)), "must list each of a, b once"),
        (lambda: DeviceMesh((2, 2), ("a", "b"), ranks=[0, 1, 2]), "must be 4 whole numbers"),
        (lambda: DeviceMesh((2,), ("a",), ranks=[3, 3]), "each rank can stand in one place only"),
        (lambda: DeviceMesh((2,), ("a",)).groups("b"), "axis b: this mesh has a"),
        (lambda: DeviceMesh((2,), ("a",)).groups(()), "must be one or more of a"),
        (lambda: DeviceMesh((12,), ("a",)).coordinates(12), "12 ranks from 0 to 11"),
        (lambda: DeviceMesh((12,), ("a",)).split("a", {"b": 5, "c": 2}), "divide a 12; nearest: 4"),
        (lambda: DeviceMesh((12,), ("a",)).split("a", {"b": 3, "c": 2}), "must multiply to a 12"),
    ],
)
def test_bad_input_is_one_sentence(make, sentence):
    with pytest.raises(ConfigError, match=sentence):
        make()

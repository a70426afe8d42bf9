"""Rings on meshes, and which circuits stand."""

import itertools

import pytest

from triosim.network.optical import (
    CIRCUITS_PER_GPU,
    CircuitSwitch,
    mesh_factorisations,
    ring_order,
)

MESHES = list(itertools.product(range(1, 8), repeat=2))


def neighbours(rows, cols, a, b):
    (ra, ca), (rb, cb) = divmod(a, cols), divmod(b, cols)
    return abs(ra - rb) + abs(ca - cb) == 1


@pytest.mark.parametrize(("rows", "cols"), MESHES)
def test_a_ring_visits_every_gpu_once_along_the_mesh(rows, cols):
    ring = ring_order(rows, cols)
    assert sorted(ring) == list(range(rows * cols))
    assert all(neighbours(rows, cols, a, b) for a, b in itertools.pairwise(ring))


@pytest.mark.parametrize(("rows", "cols"), MESHES)
def test_it_closes_along_the_mesh_wherever_a_hamiltonian_cycle_exists(rows, cols):
    ring = ring_order(rows, cols)
    closes = neighbours(rows, cols, ring[-1], ring[0])
    exists = min(rows, cols) > 1 and rows * cols % 2 == 0
    assert closes == (exists or rows * cols == 2)


def test_factorisations():
    assert mesh_factorisations(12) == [(1, 12), (2, 6), (3, 4), (4, 3), (6, 2), (12, 1)]


def test_circuits_are_set_up_together_and_stay():
    switch = CircuitSwitch(2.0)
    assert switch.require([(0, 1), (1, 2)], now=0.0) == 2.0
    assert switch.require([(1, 0)], now=0.5) == 1.5  # being set up: no second set-up
    assert switch.require([(2, 1)], now=7.0) == 0.0


def test_a_ninth_circuit_replaces_the_one_unused_for_longest():
    switch = CircuitSwitch(1.0)
    for peer in range(1, CIRCUITS_PER_GPU + 1):
        switch.require([(0, peer)], now=0.0)
    switch.require([(0, 1)], now=5.0)
    assert switch.require([(0, 99)], now=5.0) == 1.0
    assert (0, 2) not in switch.standing
    assert (0, 1) in switch.standing
    assert sum(0 in circuit for circuit in switch.standing) == CIRCUITS_PER_GPU
    assert switch.require([(0, 2)], now=9.0) == 1.0

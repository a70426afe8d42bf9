"""Rings on meshes, which circuits stand, and who waits for a place."""

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triosim.errors import Infeasible
from triosim.network.mesh import Mesh
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


class Asked:
    """What a switch answered: when each request was granted, and how long it then has to wait."""

    def __init__(self, switch):
        self.switch = switch
        self.now = 0.0
        self.granted = {}

    def ask(self, name, *circuits, now):
        self.now = now
        self.switch.acquire(
            circuits, now, lambda wait_s: self.granted.setdefault(name, (self.now, wait_s))
        )
        return self.granted.get(name)

    def give_back(self, *circuits, now):
        self.now = now
        self.switch.release(circuits, now)

    def use(self, *circuits, now):
        """Ask and give back at once; the wait."""
        name = object()
        self.ask(name, *circuits, now=now)
        self.give_back(*circuits, now=now)
        return self.granted[name][1]


def row(gpus, wavelengths, **times):
    return Asked(
        CircuitSwitch(
            times.pop("setup_s", 0.0),
            **times,
            mesh=Mesh(rows=1, cols=gpus, wavelengths=wavelengths),
        )
    )


def test_circuits_are_set_up_together_and_stay():
    asked = Asked(CircuitSwitch(2.0))
    assert asked.ask("both", (0, 1), (1, 2), now=0.0) == (0.0, 2.0)
    assert asked.ask("one", (1, 0), now=0.5) == (0.5, 1.5)  # being set up: no second set-up
    asked.give_back((0, 1), (1, 2), now=3.0)
    assert asked.use((2, 1), now=7.0) == 0.0


def test_a_ninth_circuit_replaces_the_one_unused_for_longest():
    asked = Asked(CircuitSwitch(1.0))
    for peer in range(1, CIRCUITS_PER_GPU + 1):
        asked.use((0, peer), now=0.0)
    asked.use((0, 1), now=5.0)
    assert asked.use((0, 99), now=5.0) == 1.0
    standing = asked.switch.standing
    assert (0, 2) not in standing
    assert (0, 1) in standing
    assert sum(0 in circuit for circuit in standing) == CIRCUITS_PER_GPU
    assert asked.use((0, 2), now=9.0) == 1.0


def test_a_busy_circuit_keeps_its_place_until_it_is_idle():
    asked = Asked(CircuitSwitch(1.0, teardown_s=0.5))
    for peer in range(1, CIRCUITS_PER_GPU + 1):
        assert asked.ask(peer, (0, peer), now=0.0) == (0.0, 1.0)
    assert asked.ask("ninth", (0, 9), now=2.0) is None
    asked.give_back((0, 4), now=3.0)
    assert asked.granted["ninth"] == (3.0, 1.5)
    assert (0, 4) not in asked.switch.standing


def test_circuits_take_wavelengths_of_the_links_that_they_pass():
    # 0 to 2 and 1 to 3 both pass from 1 to 2.
    asked = row(4, 1)
    assert asked.ask("a", (0, 2), now=0.0) == (0.0, 0.0)
    assert asked.ask("b", (1, 3), now=1.0) is None
    asked.give_back((0, 2), now=5.0)
    assert asked.granted["b"] == (5.0, 0.0)
    asked = row(4, 2)
    assert asked.ask("a", (0, 2), now=0.0) == (0.0, 0.0)
    assert asked.ask("b", (1, 3), now=1.0) == (1.0, 0.0)


def test_routes_go_along_the_row_first():
    # On 2 x 2 (0 1 / 2 3) 0 to 3 passes 1 and comes back over 2: both directions of neither link.
    mesh = Mesh(rows=2, cols=2, wavelengths=1)
    asked = Asked(CircuitSwitch(0.0, mesh=mesh))
    assert asked.ask("diagonal", (0, 3), now=0.0)
    # The other diagonal goes 1, 0, 2 and 2, 3, 1: the same links in the other directions.
    assert asked.ask("other", (1, 2), now=0.0)
    assert asked.ask("side", (0, 1), now=0.0) is None


def test_an_idle_circuit_is_torn_down_before_the_next_is_set_up():
    asked = row(4, 1, setup_s=2.0, teardown_s=3.0)
    assert asked.use((0, 2), now=0.0) == 2.0
    assert asked.use((1, 3), now=10.0) == 5.0
    assert asked.switch.standing == [(1, 3)]
    # From 0 to 1 the fibre has been free since 13 s.
    assert asked.use((0, 1), now=20.0) == 2.0


def test_a_place_is_free_when_the_tear_down_has_ended():
    asked = row(4, 1, setup_s=2.0, teardown_s=3.0)
    asked.use((0, 3), now=0.0)
    assert asked.use((0, 1), now=10.0) == 5.0
    # 0 to 3 is going until 13 s: 2 s more to wait, then the set-up.
    assert asked.use((2, 3), now=11.0) == 4.0
    spare = row(4, 2, setup_s=2.0, teardown_s=3.0)
    spare.use((0, 3), now=0.0)
    spare.use((0, 2), now=0.0)
    assert spare.use((1, 2), now=10.0) == 5.0
    # 2 to 3 has a wavelength that was never used.
    assert spare.use((2, 3), now=11.0) == 2.0


def test_first_come_first_served_where_places_conflict():
    asked = row(6, 1)
    asked.ask("busy", (1, 2), now=0.0)
    assert asked.ask("long", (0, 3), now=1.0) is None
    assert asked.ask("same", (1, 2), now=2.0) is None  # would keep "long" from its place
    assert asked.ask("short", (2, 3), now=2.0) is None
    assert asked.ask("elsewhere", (4, 5), now=2.0) == (2.0, 0.0)
    asked.give_back((1, 2), now=4.0)
    assert asked.granted["long"] == (4.0, 0.0)
    assert "same" not in asked.granted
    asked.give_back((0, 3), now=6.0)
    assert asked.granted["same"] == asked.granted["short"] == (6.0, 0.0)


def test_a_ring_that_closes_over_the_whole_row_needs_two_wavelengths():
    circuits = [(gpu, (gpu + 1) % 5) for gpu in range(5)]
    with pytest.raises(Infeasible, match=r"2 circuits .* from GPU \d to GPU \d, .* 1 wavelength;"):
        row(5, 1).use(*circuits, now=0.0)
    assert row(5, 2, setup_s=1.0).use(*circuits, now=0.0) == 1.0


def test_more_circuits_at_a_gpu_than_it_terminates():
    star = [(3, other) for other in range(10, 19)]
    with pytest.raises(Infeasible, match=r"9 circuits at once at GPU 3, .* at most 8"):
        CircuitSwitch(1.0).acquire(star, 0.0, lambda _: None)


@pytest.mark.parametrize("other", [(7, 8), (1, 2)])
def test_a_ring_that_stands_alone_takes_its_places_when_others_come(other):
    ring = tuple((gpu, gpu + 1) for gpu in range(5))
    asked = row(9, 1, setup_s=1.0)
    assert asked.ask("ring", *ring, now=0.0) == (0.0, 1.0)
    assert asked.ask("other", other, now=3.0) == (3.0, 1.0 if other == (7, 8) else 0.0)
    assert asked.ask("across", (4, 8), now=4.0) is None
    asked.give_back(*ring, now=5.0)
    asked.give_back(other, now=6.0)
    assert asked.granted["across"] == ((6.0, 1.0) if other == (7, 8) else (5.0, 1.0))


shapes = st.tuples(st.integers(1, 4), st.integers(1, 4)).filter(lambda shape: shape != (1, 1))


def pairs_on(shape):
    gpus = st.integers(0, shape[0] * shape[1] - 1)
    return st.tuples(gpus, gpus).filter(lambda pair: pair[0] != pair[1])


@given(shapes, st.integers(1, 3), st.data())
def test_no_more_circuits_are_held_than_there_are_places_and_all_get_their_turn(
    shape, wavelengths, data
):
    mesh = Mesh(rows=shape[0], cols=shape[1], wavelengths=wavelengths)
    asked = Asked(CircuitSwitch(1.0, teardown_s=0.5, mesh=mesh))
    sets = st.lists(pairs_on(shape), min_size=1, max_size=3, unique_by=lambda p: (min(p), max(p)))
    possible = {}
    ended = set()

    def give_back_the_first():
        held = [name for name in possible if name in asked.granted and name not in ended]
        if held:
            asked.give_back(*possible[held[0]], now=asked.now + 1.0)
            ended.add(held[0])
        return held

    def check_places():
        held = [n for n in possible if n in asked.granted and n not in ended]
        circuits = {(min(pair), max(pair)) for name in held for pair in possible[name]}
        ends = Counter(gpu for pair in circuits for gpu in pair)
        passing = Counter(
            link for a, b in circuits for link in (*mesh.route(a, b), *mesh.route(b, a))
        )
        assert max(ends.values(), default=0) <= CIRCUITS_PER_GPU
        assert max(passing.values(), default=0) <= wavelengths

    for name, circuits in enumerate(data.draw(st.lists(sets, min_size=1, max_size=12))):
        try:
            asked.ask(name, *circuits, now=asked.now + 1.0)
        except Infeasible:
            continue
        possible[name] = circuits
        check_places()
        if data.draw(st.booleans()):
            give_back_the_first()
            check_places()
    while give_back_the_first():
        check_places()
    assert ended == set(possible)

"""Every algorithm moves the right data, and as many bytes as its vectorised description says."""

import numpy as np
import pytest

from tests.network.collectives.networks import cluster, one_group, switch, torus_of
from triosim.errors import ConfigError, SimulationError
from triosim.network.collectives.choose import ALGORITHMS, phases
from triosim.network.collectives.moves import Exchange, InNetwork, Sends
from triosim.network.collectives.plans import SWITCH, Message
from triosim.network.collectives.steps import Step, replay, script

PIPELINED = ("double-binary-tree", "hierarchical-pipelined")
PLAIN = [
    (op, name)
    for name, entry in ALGORITHMS.items()
    for op in entry.operations
    if op != "send" and name != "torus" and not name.startswith("hierarchical")
]
SHARDS = ("all-reduce", "reduce-scatter", "all-gather")
HOSTS = [(4, 4), (3, 2), (2, 2, 2), (4, 4, 1), (1, 5), (6,), (3, 3, 2), (1, 1, 1)]
SHAPES = [(2, 3), (4, 4), (2, 2, 2), (3, 1, 2), (5,), (1, 1), (3, 2, 2, 1)]


def check_result(played, equal_shards=True):
    """The state that the operation promises."""
    held, n, op = replay(played), played.ranks, played.operation
    complete = (held == 1).all(axis=2)  # rank, chunk
    if op == "all-reduce":
        assert complete.all()
    elif op == "reduce":
        assert complete[0].all()
    elif op == "reduce-scatter":
        # Every chunk is complete at one rank, and every rank has its n-th.
        assert (complete.sum(axis=0) == 1).all()
        if equal_shards:
            assert (complete.sum(axis=1) == played.chunks / n).all()
    elif op == "all-gather":
        homes = held[0].argmax(axis=1)
        assert (held[:, np.arange(played.chunks), homes] == 1).all()
        assert (held.sum(axis=2) == 1).all()
        if equal_shards:
            assert (np.bincount(homes, minlength=n) == played.chunks / n).all()
    elif op == "all-to-all":
        chunk = np.arange(played.chunks) // (played.chunks // n**2)
        source, target = chunk // n, chunk % n
        assert (held[target, np.arange(played.chunks), source] == 1).all()
    else:
        assert (held[:, :, 0] == 1).all()


def bytes_between_ranks(played):
    shares = np.zeros((played.ranks + 1, played.ranks + 1))
    for step in played.steps:
        for message in step.messages:
            shares[message.source, message.target] += len(message.chunks) * played.chunk_share
    return shares


def described_bytes(n, described):
    shares = np.zeros((n + 1, n + 1))
    for move in (move for phase in described for move in phase.moves):
        if isinstance(move, Sends):
            source, target = move.source, move.target
            moving = source != target
            share = np.broadcast_to(move.share, source.shape)
            np.add.at(shares, (source[moving], target[moving]), share[moving])
        elif isinstance(move, Exchange):
            shares[:n, :n] += move.share * (1 - np.eye(n))
    return shares


def check_bytes(played, algorithm, topology):
    n = played.ranks
    described = phases(played.operation, algorithm, one_group(n), topology)
    assert bytes_between_ranks(played) == pytest.approx(described_bytes(n, described), abs=1e-9)
    if algorithm not in PIPELINED and not (algorithm == "ring" and played.operation in ROOTED):
        steps = sum(max(move.steps for move in phase.moves) for phase in described)
        assert len(played.steps) == steps


ROOTED = ("broadcast", "reduce")


@pytest.mark.parametrize(("op", "algorithm"), PLAIN)
def test_data_end_where_they_should(op, algorithm):
    for n in range(1, 18):
        folded = algorithm == "halving-doubling" and n & (n - 1)
        check_result(script(op, algorithm, n), equal_shards=not folded)


@pytest.mark.parametrize(("op", "algorithm"), [p for p in PLAIN if p[1] != "in-network"])
def test_bytes_are_those_of_the_vectorised_algorithm(op, algorithm):
    for n in range(1, 18):
        check_bytes(script(op, algorithm, n), algorithm, switch(n))


@pytest.mark.parametrize("op", ALGORITHMS["in-network"].operations)
@pytest.mark.parametrize("n", [2, 3, 8])
def test_bytes_up_and_down_at_a_switch(op, n):
    played = script(op, "in-network", n)
    shares = bytes_between_ranks(played)
    (phase,) = phases(op, "in-network", one_group(n), switch(n, reduces=True))
    (move,) = phase.moves
    assert isinstance(move, InNetwork)
    assert shares[:, SWITCH].sum() == pytest.approx(n * move.up)
    assert shares[SWITCH].sum() == pytest.approx(n * move.down)
    assert len(played.steps) == move.steps


@pytest.mark.parametrize("op", SHARDS)
@pytest.mark.parametrize("hosts", HOSTS, ids=str)
def test_hosts(op, hosts):
    played = script(op, "hierarchical", sum(hosts), hosts=hosts)
    check_result(played, equal_shards=len(set(hosts)) == 1)
    # Only the last host of a cluster can be smaller.
    if len(hosts) > 1 and min(hosts[:-1]) == max(hosts) > 1:
        for algorithm in ("hierarchical", "hierarchical-pipelined"):
            check_bytes(played, algorithm, cluster(sum(hosts), hosts[0]))


@pytest.mark.parametrize("op", SHARDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_grids(op, shape):
    n = int(np.prod(shape))
    played = script(op, "torus", n, shape=shape)
    check_result(played)
    check_bytes(played, "torus", torus_of(*shape))


def test_send():
    check_result(script("send", "direct", 2))


def test_large_groups():
    check_result(script("all-reduce", "ring", 64))
    check_result(script("all-reduce", "halving-doubling", 63))
    check_result(script("all-to-all", "ring", 24))


@pytest.mark.parametrize("pieces", [1, 2, 7])
def test_a_pipeline_adds_a_step_for_each_further_chunk(pieces):
    assert len(script("broadcast", "ring", 8, pieces=pieces).steps) == 7 + pieces - 1
    assert len(script("broadcast", "double-binary-tree", 8, pieces=pieces).steps) == 3 + pieces - 1
    # The way down starts as soon as the first chunk is complete.
    played = script("all-reduce", "double-binary-tree", 8, pieces=pieces)
    assert len(played.steps) == 6 + pieces - 1
    check_result(played)


@pytest.mark.parametrize("n", range(2, 65))
def test_a_rank_is_interior_in_one_tree_only(n):
    played = script("broadcast", "double-binary-tree", n, pieces=1)
    parents = [
        {m.source for step in played.steps for m in step.messages if tree in m.chunks}
        for tree in (0, 1)
    ]
    assert parents[0] & parents[1] == {0}  # the root, which only feeds them
    children = [m.source for step in played.steps for m in step.messages if 0 in m.chunks]
    assert max(children.count(rank) for rank in set(children)) <= 2


def test_first_steps_of_a_ring():
    played = script("reduce-scatter", "ring", 3)
    assert played.steps[0] == Step(
        (Message(0, 1, (2,), True), Message(1, 2, (0,), True), Message(2, 0, (1,), True))
    )
    held = replay(played, 1)
    assert held[1, 2].tolist() == [1, 1, 0]
    assert held[1, 0].tolist() == [0, 1, 0]


def test_nobody_sends_what_it_lacks():
    played = script("broadcast", "tree", 4)
    backwards = type(played)(
        operation="broadcast", ranks=4, chunks=1, chunk_share=1.0, steps=played.steps[::-1]
    )
    with pytest.raises(SimulationError, match="lacks"):
        replay(backwards)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"op": "all-to-all", "algorithm": "tree"}, "all-to-all can use ring, direct"),
        ({"ranks": 65}, "ranks 65: steps are listed for 1 to 64"),
        ({"pieces": 0}, "pieces 0: must be 1 to 64"),
        ({"algorithm": "torus", "shape": (3, 3)}, "must multiply to 8 ranks"),
        ({"algorithm": "hierarchical", "hosts": (3, 3)}, "must add up to 8 ranks"),
        ({"ranks": 58, "algorithm": "hierarchical", "hosts": (17, 13, 11, 9, 8)}, "too many"),
    ],
)
def test_bad_settings_are_said(settings, match):
    arguments = {"op": "all-reduce", "algorithm": "ring", "ranks": 8} | settings
    with pytest.raises(ConfigError, match=match):
        script(**arguments)

"""Our fusion against the real Inductor's, for one Llama and one GPT-2 block.

Once from the nodes that Inductor itself made (fusion alone), and once from the workload's
description of the same block (lowering, what backward keeps, inlining, sums in pieces and fusion).
"""

from collections import Counter

import pytest

from triosim.compile import BACKENDS, compile_block, fuse

SAME_GROUPS = 0.8
cases = pytest.mark.parametrize(
    ("name", "backend"), [(name, backend) for backend in BACKENDS for name in ("llama", "gpt2")]
)


def signature(node):
    """What a loop nest is, without names: kind, iterations, bytes of every tensor."""
    return (
        node.kind, node.numel, node.reduced_numel,
        tuple(sorted(a.bytes for a in node.reads)), tuple(sorted(a.bytes for a in node.writes)),
    )  # fmt: skip


def fused(groups):
    return Counter(tuple(sorted(map(signature, group))) for group in groups if len(group) > 1)


@cases
def test_pairs_score_the_same_bytes(inductor, name, backend):
    for real in inductor(name, backend):
        ours = {
            (frozenset(c.first), frozenset(c.second)): c.shared_bytes
            for c in fuse(real.graph, backend).history
            if c.rank is not None
        }
        common = ours.keys() & real.pairs.keys()
        assert len(common) >= SAME_GROUPS * len(real.pairs) > 0
        assert {pair: ours[pair] for pair in common} == {p: real.pairs[p] for p in common}


@cases
def test_fused_groups_are_the_same(inductor, name, backend):
    same = found = 0
    for real in inductor(name, backend):
        ours = {frozenset(n.name for n in group) for group in fuse(real.graph, backend).groups}
        groups = {group for group in real.groups if len(group) > 1}
        same, found = same + len(groups & ours), found + len(groups)
    print(f"{name}, {backend}: {same} of {found} fused groups")
    assert same >= SAME_GROUPS * found > 0


@cases
def test_from_the_description_most_groups_are_inductors(inductor, described, name, backend):
    ours, same, found = compile_block(described(name, backend), backend=backend), 0, 0
    for real, graph in zip(inductor(name, backend), (*ours.forward, *ours.backward), strict=True):
        nodes = {node.name: node for node in real.graph.nodes}
        groups = fused([nodes[member] for member in group] for group in real.groups)
        same += (groups & fused(graph.fusion.groups)).total()
        found += groups.total()
    print(f"{name}, {backend}: {same} of {found} fused groups from the description")
    assert same >= SAME_GROUPS * found > 0


@cases
def test_from_the_description_pairs_score_the_same_bytes(inductor, described, name, backend):
    ours, compared = compile_block(described(name, backend), backend=backend), 0
    for real, graph in zip(inductor(name, backend), (*ours.forward, *ours.backward), strict=True):
        theirs = _scores(real.graph.nodes, real.pairs.items())
        listed = [((c.first, c.second), c.shared_bytes) for c in graph.fusion.history if c.rank]
        for pair, scores in _scores(graph.fusion.graph.nodes, listed).items():
            if pair in theirs:
                assert scores == theirs[pair]
                compared += 1
    assert compared >= 5


def _scores(nodes, pairs):
    """Bytes by what stands on both sides; pairs that look alike have a set of them."""
    known = {node.name: node for node in nodes}
    found = {}
    for sides, saved in pairs:
        key = tuple(tuple(sorted(signature(known[n]) for n in side)) for side in sides)
        found.setdefault(key, set()).add(saved)
    return found


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_backward_keeps_as_many_bytes_as_autograd_does(inductor, described, name):
    """All that backward reads and does not make, but its inputs: gradient and parameters."""
    real = inductor(name, "cpp")[1]
    read = {a.buffer for node in real.graph.nodes for a in node.reads} - real.graph.writer.keys()
    saved = {n for n in read if not n.startswith(("primals", "tangents"))}
    expected = sum(real.graph.buffers[n].bytes for n in saved) + real.entry_bytes
    assert compile_block(described(name, "cpp"), backend="cpp").kept_bytes == expected

"""Recursive halving and doubling: partners exchange half of what is left, at doubling distances."""

from __future__ import annotations

import numpy as np

from triosim.network.collectives.moves import Phase, Sends, in_turn
from triosim.network.topology.base import Ints, Topology


def halving_doubling(op: str, groups: Ints, topology: Topology) -> list[Phase]:
    """log2 n steps and (n-1)/n S each for reduce-scatter and all-gather (Thakur et al., 2005).

    Where n is no power of two, some ranks first hand their whole array to a neighbour, and get the
    result back in the end. In between these extra ranks hold no shard: a reduce-scatter and an
    all-gather are then the two halves of the folded all-reduce.
    """
    survivors, extras, partners = fold(groups.shape[1])
    inner = groups[:, survivors]
    halving = []
    distance, share = 1, 0.5
    while distance < len(survivors):
        partner = inner[:, np.arange(len(survivors)) ^ distance]
        halving.append(Sends(source=inner, target=partner, share=share))
        distance, share = 2 * distance, share / 2
    scatter = in_turn(halving)
    gather = scatter[::-1]
    if len(extras):
        outside, inside = groups[:, extras], groups[:, partners]
        scatter = [*in_turn([Sends(source=outside, target=inside, share=1.0)]), *scatter]
        gather += in_turn([Sends(source=inside, target=outside, share=1.0)])
    return {"reduce-scatter": scatter, "all-gather": gather}.get(op, scatter + gather)


def fold(n: int) -> tuple[Ints, Ints, Ints]:
    """Positions of the ranks that halve and double, of the extra ones, and of their neighbours.

    The first 2(n-q) ranks pair up, q the largest power of two up to n: the odd ones are extra.
    """
    extra = n - (1 << (n.bit_length() - 1))
    extras = np.arange(extra) * 2 + 1
    keeps = np.ones(n, dtype=bool)
    keeps[extras] = False
    return np.flatnonzero(keeps), extras, extras - 1

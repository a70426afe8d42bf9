"""Messages straight to their targets, one peer after the other."""

from __future__ import annotations

import numpy as np

from triosim.network.collectives.moves import Exchange, Phase, Sends, in_turn, there_and_back
from triosim.network.topology.base import Ints, Topology


def direct(op: str, groups: Ints, topology: Topology) -> list[Phase]:
    """Each rank sends 1/n of the array to each other one: (n-1)/n S through a switch.

    An all-reduce does so twice. Assumption: a rank starts one message after the other, so that n-1
    peers cost n-1 latencies.
    """
    n = groups.shape[1]
    if op == "send":
        return in_turn([Sends(source=groups[:, 0], target=groups[:, 1], share=1.0)])
    if op in ("broadcast", "reduce"):
        others = groups[:, 1:]
        root = np.broadcast_to(groups[:, :1], others.shape)
        source, target = (root, others) if op == "broadcast" else (others, root)
        return in_turn([Sends(source=source, target=target, share=1.0, steps=n - 1)])
    return there_and_back(op, in_turn([Exchange(groups=groups, share=1 / n, steps=n - 1)]))

"""Switches that add up what passes and send one result to all (NVLS, SHARP)."""

from __future__ import annotations

from triosim.errors import ConfigError
from triosim.network.collectives.moves import InNetwork, Phase
from triosim.network.topology.base import Ints, Topology


def in_network(op: str, groups: Ints, topology: Topology) -> list[Phase]:
    """An all-reduce loads each link with S each way, half of what ranks alone can reach.

    In a reduce-scatter or an all-gather a rank keeps its own n-th: (n-1)/n S one way, 1/n the
    other. What the root alone sends or receives counts as the ranks' average, 1/n.
    """
    reduction = topology.reduction(groups)
    if reduction is None:
        raise ConfigError(
            "algorithm", "in-network", "needs switches that can add up between all of the ranks"
        )
    n = groups.shape[1]
    up, down = {
        "all-reduce": (1.0, 1.0),
        "reduce-scatter": ((n - 1) / n, 1 / n),
        "all-gather": (1 / n, (n - 1) / n),
        "reduce": (1.0, 1 / n),
        "broadcast": (1 / n, 1.0),
    }[op]
    return [Phase(moves=(InNetwork(groups=groups, reduction=reduction, up=up, down=down),))]

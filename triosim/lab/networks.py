"""The links that questions are about: ideal, without latency unless it is given."""

from __future__ import annotations

from functools import lru_cache

from triosim.network.topology.base import LinkSpec
from triosim.network.topology.description import Description
from triosim.network.topology.tiered import Tier

GB = 1e9
MS = 1e3


@lru_cache(maxsize=64)
def hosts(
    per_host: int, inside_gb_per_s: float, nic_gb_per_s: float, *, shared_nic: bool = False
) -> Description:
    """Hosts of some GPUs with a switch inside, and a NIC for each GPU or one for the host."""
    inner = Tier(name="host", children=per_host, link=LinkSpec(bytes_per_s=inside_gb_per_s * GB))
    outer = Tier(
        name="network",
        children=0,
        link=LinkSpec(bytes_per_s=nic_gb_per_s * GB),
        links=1 if shared_nic else per_host,
        per_gpu=not shared_nic,
    )
    return Description(kind="tiers", tiers=(inner, outer))

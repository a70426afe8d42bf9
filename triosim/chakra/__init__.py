"""Chakra execution traces (MLCommons): written for a result, and replayed on a network.

>>> from triosim.chakra import replay, write_chakra
>>> write_chakra(result, "folder")
>>> replay("folder", link_gb_per_s=100).total_ms

A trace is a folder with one file NAME.RANK.et for each rank. Needs protobuf, which the dashboard
brings along.
"""

from triosim.chakra.replay import ReplayResult, ReplayScenario, replay
from triosim.chakra.write import write_chakra

__all__ = ["ReplayResult", "ReplayScenario", "replay", "write_chakra"]

"""What torch.compile does to a step: operators fused into fewer kernels, and launches saved."""

from triosim.compile.block import CompiledBlock, Graph, compile_block
from triosim.compile.fuse import Candidate, Fusion, fuse
from triosim.compile.graph import Access, Buffer, Node, OperatorGraph
from triosim.compile.kernels import FusedKernel, kernels_of, total_bytes, unfused
from triosim.compile.launch import MODES, Launch, LaunchCosts, LaunchTimeline, launch_timeline
from triosim.compile.legality import BACKENDS
from triosim.compile.realize import realize

__all__ = [
    "BACKENDS",
    "MODES",
    "Access",
    "Buffer",
    "Candidate",
    "CompiledBlock",
    "FusedKernel",
    "Fusion",
    "Graph",
    "Launch",
    "LaunchCosts",
    "LaunchTimeline",
    "Node",
    "OperatorGraph",
    "compile_block",
    "fuse",
    "kernels_of",
    "launch_timeline",
    "realize",
    "total_bytes",
    "unfused",
]

"""A forward beside a backward, as in DualPipe: one's transfers move while the other computes.

Both share the compute stream and take turns at their transfers (arXiv 2412.19437, section 3.2.1):
each computes up to its next one, and while that moves the other does. Transfers of one kind still
follow each other. Where passes move nothing, a pair takes as long as its halves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from triosim.engine.executor import execute
from triosim.engine.program import Program
from triosim.train.costs import Costs
from triosim.train.network import Wires
from triosim.train.passes import Pass, PassWriter, Step, measure


def simulate_pair(
    forward: Sequence[Step], backward: Sequence[Step], costs: Costs, wires: Wires
) -> Pass:
    """The second of two equal pairs; each begins where the one before has ended."""
    program = Program(overlap_slowdown=costs.stack.overlap_slowdown.value)
    ahead = PassWriter(program, costs)
    behind = PassWriter(program, costs, beside=ahead)
    first = 0
    for _ in range(2):
        first = len(program)
        for writer in (ahead, behind):
            writer.kernels = 0
            writer.begin()
        left = [(ahead, iter(forward)), (behind, iter(backward))]
        while left:
            left = [(writer, steps) for writer, steps in left if _turn(writer, steps, costs, wires)]
        ahead.meet(behind)
    return measure(execute(program), first, ahead.kernels + behind.kernels)


def _turn(writer: PassWriter, steps: Iterator[Step], costs: Costs, wires: Wires) -> bool:
    """Write steps up to a transfer that the next one waits for; whether there was one."""
    for step in steps:
        step.write(writer, costs, wires)
        if writer.waiting:
            return True
    return False

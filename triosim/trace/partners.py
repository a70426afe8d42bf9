"""Which forward operator each backward operator belongs to.

The two-file format does not record it. A backward operator reads what its forward operator saved:
its weight, its input or its output. Where it reads nothing of the kind, its name is compared, and
the order decides: autograd runs backward operators in the reverse order of their forward operators.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache

from triosim.trace.memory import Origin, Role, find_memory
from triosim.trace.model import Trace


@lru_cache(maxsize=32)
def find_partners(trace: Trace) -> Mapping[int, int]:
    """Index of the forward operator for each backward operator; never ascending.

    Empty where the trace has no forward operator.
    """
    forward = trace.phase("forward")
    backward = trace.phase("backward")
    if not forward:
        return {}
    evidence = _descending(_evidence(trace, backward, set(forward)))
    partners: dict[int, int] = {}
    latest = forward[-1]
    following = _following(evidence, forward[0])
    alike: dict[str, list[int]] = {}
    for position, i in enumerate(backward):
        known = evidence[position]
        if known is None:
            name = trace.operators[i].name
            if name not in alike:
                alike[name] = [f for f in forward if _same_kind(trace, f, i)]
            nearest = bisect_right(alike[name], latest) - 1
            fits = nearest >= 0 and alike[name][nearest] >= following[position]
            known = alike[name][nearest] if fits else latest
        latest = partners[i] = known
    return partners


def _following(evidence: Sequence[int | None], lowest: int) -> list[int]:
    """For each position the next known partner: an unknown one must not lie before it."""
    following = [lowest] * len(evidence)
    for position in reversed(range(len(evidence))):
        known = evidence[position]
        after = following[position + 1] if position + 1 < len(evidence) else lowest
        following[position] = after if known is None else known
    return following


def _evidence(trace: Trace, backward: Sequence[int], forward: set[int]) -> list[int | None]:
    """The last forward operator that has to do with what each backward operator reads.

    Weights decide first, then operators of the same kind that made or read it, then any. Where
    several fit (a chain of equal operators, each reading what the one before made), each backward
    operator takes the one before the last one taken.
    """
    users = _Users(trace, forward)
    found: list[int | None] = []
    taken: dict[str, int] = {}
    for i in backward:
        name = trace.operators[i].name
        fitting = users.fitting(i)
        latest = taken.get(name, len(trace.operators))
        earlier = [f[k - 1] for f in fitting for k in [bisect_left(f, latest)] if k]
        choice = max(earlier or [f[-1] for f in fitting], default=None)
        if choice is not None:
            taken[name] = choice
        found.append(choice)
    return found


class _Users:
    """The forward operators that use each buffer, ascending, found once per buffer and kind."""

    def __init__(self, trace: Trace, forward: set[int]) -> None:
        self._trace = trace
        self._memory = find_memory(trace)
        self._all = [[use for use in b.uses if use in forward] for b in self._memory.buffers]
        self._alike: dict[tuple[int, str], list[int]] = {}

    def fitting(self, operator: int) -> list[list[int]]:
        """What could be the partner of a backward operator, by the buffer that says so."""
        weights: list[list[int]] = []
        same: list[list[int]] = []
        others: list[list[int]] = []
        for b in self._memory.uses[operator]:
            buffer, users = self._memory.buffers[b], self._all[b]
            if not users:
                continue
            if buffer.role is Role.PARAMETERS:
                weights.append(users)
            elif buffer.origin is Origin.PRODUCED:
                alike = self._of_kind(b, operator)
                same += [alike] if alike else []
                others.append(users[-1:])
        return weights or same or others

    def _of_kind(self, buffer: int, operator: int) -> list[int]:
        key = (buffer, self._trace.operators[operator].name)
        if key not in self._alike:
            users = self._all[buffer]
            self._alike[key] = [f for f in users if _same_kind(self._trace, f, operator)]
        return self._alike[key]


def _same_kind(trace: Trace, forward: int, backward: int) -> bool:
    ours = _kind(trace.operators[forward].name)
    theirs = _kind(trace.operators[backward].name)
    theirs = _ALIASES.get(theirs, theirs)
    return ours in theirs or theirs in ours


@lru_cache(maxsize=4096)
def _kind(name: str) -> str:
    """aten::max_pool2d and MaxPool2DWithIndicesBackward0 become maxpool2d..."""
    name = name.rsplit("::", 1)[-1].split(":")[-1].strip()
    return re.sub(r"backward\d*$", "", name.lower().replace("_", ""))


_ALIASES = {
    "addmm": "linear",
    "mm": "linear",
    "convolution": "conv2d",
    "nllloss": "crossentropyloss",
    "nllloss2d": "crossentropyloss",
    "logsoftmax": "crossentropyloss",
    "threshold": "relu",
    "scaleddotproductflashattention": "scaleddotproductattention",
    "scaleddotproductflashattentionforcpu": "scaleddotproductattention",
    "scaleddotproductefficientattention": "scaleddotproductattention",
    "scaleddotproductcudnnattention": "scaleddotproductattention",
    "mean": "adaptiveavgpool2d",
    "cudnnbatchnorm": "batchnorm",
    "miopenbatchnorm": "batchnorm",
}


def _descending(values: Sequence[int | None]) -> list[int | None]:
    """Drop what breaks the descending order, keeping as much as possible.

    The longest non-ascending subsequence: a few wrong hints must not drag the rest along.
    """
    entries = [(position, value) for position, value in enumerate(values) if value is not None]
    tails: list[int] = []  # the entry that ends the best run of each length
    keys: list[int] = []  # its negated value; ascending, so that bisection applies
    previous: list[int] = []
    for k, (_, value) in enumerate(entries):
        length = bisect_right(keys, -value)
        previous.append(tails[length - 1] if length else -1)
        tails[length : length + 1] = [k]
        keys[length : length + 1] = [-value]
    kept: list[int | None] = [None] * len(values)
    k = tails[-1] if tails else -1
    while k >= 0:
        position, value = entries[k]
        kept[position] = value
        k = previous[k]
    return kept

"""SimPy's clock at its barest: call a function after a delay.

A process for each stream costs a generator, an event and a resumption for every task; a call costs
one entry of SimPy's queue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import simpy
from simpy.events import NORMAL

Call = Callable[[Any], None]


class Alarm(simpy.Event):
    """An entry of the queue that calls a function, with itself, when its time has come."""

    # NOTE: only what SimPy's queue reads, since nobody waits for it: half a Timeout's time.
    _ok = True

    def __init__(self, call: Call) -> None:
        self.callbacks = [call]

    def cancel(self) -> None:
        """The entry stays in the queue and does nothing."""
        assert self.callbacks is not None
        self.callbacks.clear()


def after(env: simpy.Environment, delay_s: float, call: Call) -> Alarm:
    """Let a function be called in so many seconds."""
    alarm = Alarm(call)
    env.schedule(alarm, NORMAL, delay_s)
    return alarm

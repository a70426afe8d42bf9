"""How a worker process begins: it watches its server before it loads anything that takes long.

A killed server cannot end its workers. One that is still loading the engine, or that computes,
would go on and hold its memory. (PR_SET_PDEATHSIG would not do: it tells of the end of the thread
that started the process, and threads of the server end with every visit.)
"""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.connection import Connection
from threading import Thread

# Pages come first where there are fewer processors than work: a long simulation gives way to them.
NICENESS = 5


def serve(pipe: Connection) -> None:
    """A worker's whole life."""
    Thread(target=_end_with_parent, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    from dashboard import work  # only now: it takes a second, and more on a loaded machine

    work.serve(pipe)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)

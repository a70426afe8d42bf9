"""Whether the server can serve: not only that it answers, but that its workers do.

Streamlit's own /_stcore/health says that the event loop runs. This one has a worker answer as well.
"""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse

from dashboard import work
from dashboard.computed import shared_runner

PATH = "/health"
PATIENCE_S = 10.0
# No request that the pages let through takes that long; such a worker is lost.
LONGEST_RUN_S = 120.0


async def health(request: Request) -> JSONResponse:
    """200 while workers answer, 503 else; the first call starts them."""
    state = await asyncio.to_thread(worker_state)
    return JSONResponse(state, status_code=200 if state["ok"] else 503)


def worker_state() -> dict[str, float | bool]:
    """The runner's state, and whether all is well with it.

    A worker has to answer where one is free; where all are busy, none may be so for too long.
    """
    runner = shared_runner()
    state = runner.state()
    ok = state["longest_run_s"] < LONGEST_RUN_S
    if state["busy"] < len(runner.workers):
        with runner.job("health", work.ready) as job:
            try:
                ok = ok and job.future.result(PATIENCE_S)
            except Exception:
                # It is busy after all, or has just ended and is replaced for the next to come.
                ok = ok and runner.state()["busy"] == len(runner.workers)
    return {"ok": ok, **state}

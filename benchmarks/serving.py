"""A dashboard of one's own, for as long as it is used."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
START_S, END_S = 60.0, 20.0


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def serving(
    port: int | None = None,
    *,
    out: int | IO[bytes] = subprocess.DEVNULL,
    err: int | IO[bytes] | None = subprocess.DEVNULL,
) -> Iterator[tuple[str, int]]:
    """Its host and port, and its process's number.

    Raises `RuntimeError` where it does not answer within a minute.
    """
    address = f"127.0.0.1:{free_port() if port is None else port}"
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true"]
    # The flags win over what the environment of a developer says.
    command += ["--server.port", address.rpartition(":")[2]]
    server = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=err)
    try:
        end = time.monotonic() + START_S
        while not _answers(f"http://{address}/_stcore/health"):
            if server.poll() is not None or time.monotonic() > end:
                status = server.poll()
                raise RuntimeError(f"the dashboard did not start (exit status {status})")
            time.sleep(0.1)
        yield address, server.pid
    finally:
        server.terminate()
        try:
            server.wait(END_S)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except (urllib.error.URLError, OSError):
        return False

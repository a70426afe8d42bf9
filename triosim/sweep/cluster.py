"""Workers on other machines: a Dask cluster as an executor."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from triosim.errors import ConfigError


@contextmanager
def connect(address: str, *, patience_s: float = 10) -> Iterator[Executor]:
    """An executor on the cluster of a scheduler such as tcp://10.0.0.1:8786.

    Its workers need this program in the same version. Work of a worker that goes away is given to
    another one. Raises `ConfigError` on `scheduler` where it cannot be reached, or where Dask is
    not installed.
    """
    try:
        from distributed import Client
    except ImportError:
        legal = "needs Dask: pip install 'triosim[cluster]'"
        raise ConfigError("scheduler", address, legal) from None
    try:
        client = Client(address, timeout=patience_s, set_as_default=False)
    except (OSError, ValueError) as error:
        problem = f"no scheduler answers there ({error})"
        raise ConfigError("scheduler", address, problem) from None
    with client:
        # Equal calls on different days are different calls: nothing is remembered by the cluster.
        executor = client.get_executor(pure=False, retries=3)
        workers = len(client.scheduler_info(n_workers=-1)["workers"])
        executor._max_workers = max(1, workers)  # so that the work is cut to their number
        yield executor

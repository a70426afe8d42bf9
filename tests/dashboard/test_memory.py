import subprocess
import sys
from pathlib import Path

import pytest

from dashboard.memory import Memory

# Many small blocks between which one in a hundred stays: a heap without them is nearly free, and
# its top is not. Prints the resident megabytes before, with them, and after.
FRAGMENTS = """
import os
import numpy as np
from dashboard import memory
def megabytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
memory.TRIM_EVERY_S = 0.0
own = memory.Memory()
empty = megabytes()
blocks = [np.ones(8192) for _ in range(4000)]
full = megabytes()
blocks = blocks[::100]
own.trim()
print(empty, full, megabytes())
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux only")
def test_freed_memory_goes_back_to_the_system() -> None:
    if Memory()._library is None:
        pytest.skip("the C library is not glibc")
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", FRAGMENTS], cwd=root, capture_output=True, text=True, check=True
    )
    empty, full, after = map(float, done.stdout.split())
    assert full - empty > 200  # 4,000 times 64 KiB are 262 MB
    assert after - empty < 0.2 * (full - empty)


def test_other_c_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda _: object())
    memory = Memory()
    memory.trim()
    assert memory._library is None

"""The most memory that this process ever had."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_bytes() -> int:
    """Of this program alone where the system tells; elsewhere a child's includes its parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in kB but on macOS
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

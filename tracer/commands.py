"""What the tracer's commands share: one sentence on standard error and an exit status."""

from __future__ import annotations

import sys

from triosim.errors import ConfigError

# Names of the command line for the fields that errors name.
_FLAGS = {"batch": "--batch", "seq_len": "--seq-len", "gpu": "--gpu", "model": "model"}


def fail(program: str, error: Exception) -> int:
    """Say what is wrong; the exit status for it."""
    text = str(error)
    if isinstance(error, ConfigError):
        text = error.named(_FLAGS.get(error.field, f"--{error.field}"))
    elif isinstance(error, ImportError):
        text = f"{error.name or 'a package'} is not installed: pip install -r requirements.txt."
    elif isinstance(error, OSError):
        text = f"{error.filename}: {error.strerror}."
    print(f"{program}: {' '.join(text.split())}", file=sys.stderr)
    return 2

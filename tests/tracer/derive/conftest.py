"""Deriving the small models of zoo.py."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="deriving traces needs torch")


@pytest.fixture(autouse=True)
def _zoo(monkeypatch):
    """Models are named "zoo:mlp", as a user in this folder would name them."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


@pytest.fixture(scope="session")
def derived():
    """Derive a model on an H100; each combination once."""
    from tracer.derive import derive

    made = {}

    def make(model, batch_size=4, gpu="h100-sxm", **options):
        key = (model, batch_size, gpu, *sorted(options.items()))
        if key not in made:
            made[key] = derive(model, gpu=gpu, batch_size=batch_size, **options)
        return made[key]

    return make

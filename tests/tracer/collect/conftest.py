"""Recording the small models that tests of deriving use too, on this machine's CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch", reason="recording needs torch")

ZOO = Path(__file__).parents[1] / "derive"


@pytest.fixture(autouse=True)
def _zoo(monkeypatch):
    monkeypatch.syspath_prepend(str(ZOO))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Record a model on the CPU; each once."""
    from tracer.collect import collect

    folder, made = tmp_path_factory.mktemp("recordings"), {}

    def make(model, **options):
        key = (model, *sorted(options.items()))
        if key not in made:
            made[key] = collect(
                model, batch_size=4, iters=4, device="cpu", progress=False,
                output=folder / str(len(made)), **options,
            )  # fmt: skip
        return made[key]

    return make

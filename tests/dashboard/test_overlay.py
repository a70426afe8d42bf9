"""A measured run laid over the step on the pages Simulate and Train."""

from __future__ import annotations

from pathlib import Path

import pytest

from dashboard.overlay import FILES, TITLE
from tests.dashboard.reading import unfold

RECORDED = sorted((Path(__file__).parents[1] / "overlay").glob("ddp_rank*.json.gz"))


PAGES = {
    "simulate_page": {"case": "2", "gpus": "2", "trace": "mlp"},
    "train_page": {"model": "gpt2", "layers": "2", "seq": "64", "world": "2"},
}


@pytest.mark.parametrize("name", PAGES)
def test_files_of_two_ranks_are_laid_over_the_step(request, name):
    page = request.getfixturevalue(name)(v="1", **PAGES[name])
    assert FILES not in {uploader.key for uploader in page.file_uploader}
    unfold(page, TITLE)
    files = [(path.name, path.read_bytes(), "application/gzip") for path in RECORDED]
    page = page.file_uploader(key="overlay_files").set_value(files).run()
    assert not page.exception
    table = next(t.value for t in page.dataframe if "measured_ms" in t.value)
    assert len(table) == 8
    rows = table[table["measured_ms"] > 0]
    signed = (rows["predicted_ms"] / rows["measured_ms"] - 1) * 100
    assert rows["error"].tolist() == pytest.approx(signed.tolist())
    assert any("share its clock" in caption.value for caption in page.caption)
    page = page.file_uploader(key="overlay_files").set_value([files[0], files[0]]).run()
    assert "both are of rank 0" in page.error[0].value

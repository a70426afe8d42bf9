"""What moved, as bars."""

from __future__ import annotations

import pytest

from triosim.figures import CLASS_COLOURS, communication_bars


@pytest.mark.parametrize("name", ["alone", "distributed", "tensor", "pipeline", "straggler"])
def test_exposed_and_the_rest_sum_to_busy(result_of, name):
    result = result_of(name)
    bars = [trace for trace in communication_bars(result).data if trace.type == "bar"]
    assert bars[0].marker.color == CLASS_COLOURS["exposed_communication"]
    for row in result.communication:
        label = f"{row.kind}: {row.purpose}"
        own = [x for t in bars for y, x in zip(t.y, t.x, strict=True) if y == label]
        assert own[0] == pytest.approx(row.exposed_s * 1e3)
        assert sum(own) == pytest.approx(row.busy_s * 1e3)


def test_labels_carry_the_bytes(result_of):
    """Case 1, 8 GPUs, 231.9 MB of gradients: each sends 2 x 7/8 of them, 3.25 GB in all."""
    labels = communication_bars(result_of("standard")).layout.annotations
    (text,) = (a.text for a in labels if a.text.startswith("<b>all-reduce: gradients</b><br>"))
    assert text.endswith("\u00b7 3.25 GB")
    assert "(100.0 %)" in text


def test_nothing_that_moves_is_said_so(make_trace, simulate_trace):
    result = simulate_trace(make_trace([100], [200]), gpus=1, resident=True)
    figure = communication_bars(result)
    assert not figure.data
    assert figure.layout.annotations[0].text == "No communication: nothing moves in this step."


@pytest.mark.parametrize("name", ["distributed", "tensor", "pipeline"])
def test_each_label_stands_between_the_bar_before_and_its_own(result_of, name):
    """Rows go down from 0; two lines of text fit above each bar."""
    result = result_of(name)
    figure = communication_bars(result)
    bar = figure.data[0]
    labels = figure.layout.annotations
    rows = len(result.communication)
    assert [label.y for label in labels] == [pytest.approx(i + bar.offset) for i in range(rows)]
    assert all(label.yanchor == "bottom" for label in labels)
    row_px = (figure.layout.height - 6 * 13) / max(2, rows)
    assert row_px * (1 - bar.width) >= 2 * 1.3 * 13

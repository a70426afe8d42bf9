"""Operators under a GPU's roof."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from triosim.figures import Style, roofline_scatter
from triosim.figures.roofline import MAX_POINTS, computing
from triosim.hardware import load_gpu

COLUMNS = ("name", "phase", "module", "kind", "dtype", "time_ms", "flops", "bytes")
ROWS = [
    ("aten::mm", "forward", "net.fc", "gemm", "bf16", 1.0, 4e11, 1e9),
    ("<i>mm</i>", "backward", "", "gemm", "bf16", 2.0, 8e11, 2e9),
    ("aten::add", "forward", "net", "elementwise", "fp32", 0.5, 1e8, 1.2e9),
    ("aten::copy_", "forward", "net", "copy", "fp32", 0.5, float("nan"), 1e9),
]
OPERATORS = pd.DataFrame(ROWS, columns=list(COLUMNS))
H100 = load_gpu("h100-sxm")


def of(figure, meta):
    return [trace for trace in figure.data if trace.meta == meta]


def test_points_are_intensity_and_rate():
    figure = roofline_scatter(OPERATORS, None)
    (forward,) = of(figure, "forward")
    assert list(forward.x) == pytest.approx([400, 1e8 / 1.2e9])
    assert list(forward.y) == pytest.approx([400, 0.2])
    assert forward.customdata[0][3] == "400 TFLOP/s"
    assert forward.customdata[0][5] == "25.0 %"
    assert forward.marker.size[0] > forward.marker.size[1]
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    assert not of(figure, "roof")


def test_the_roof_is_the_gpus_for_what_multiplies_matrices():
    figure = roofline_scatter(OPERATORS, H100)
    (roof,) = of(figure, "roof")
    peak, slope = H100.peak("bf16") / 1e12, H100.memory_bytes_per_s / 1e12
    assert roof.x[1] == pytest.approx(peak / slope)
    assert list(roof.y) == pytest.approx([slope * roof.x[0], peak, peak])
    labels = [annotation.text for annotation in figure.layout.annotations]
    assert labels == ["bf16: 989 TFLOP/s", "3.35 TB/s"]


def test_without_matrices_the_roof_is_for_what_there_is():
    (roof,) = of(roofline_scatter(OPERATORS.iloc[2:], H100), "roof")
    assert roof.name == "h100-sxm fp32"
    assert list(roof.y) == pytest.approx([H100.memory_bytes_per_s / 1e12 * x for x in roof.x])


def test_every_point_worth_a_look_is_in_view():
    figure = roofline_scatter(OPERATORS, H100, height=320)
    (low, high), (bottom, top) = figure.layout.xaxis.range, figure.layout.yaxis.range
    for phase in ("forward", "backward"):
        (points,) = of(figure, phase)
        assert all(10**low < x < 10**high for x in points.x)
        assert all(10**bottom < y < 10**top for y in points.y)
    assert 10**top > H100.peak("bf16") / 1e12
    assert figure.layout.height == 320


def test_names_are_not_read_as_markup():
    text = roofline_scatter(OPERATORS, H100, style=Style(dark=True)).to_json()
    assert "<i>mm" not in json.loads(json.dumps(text))
    assert "&lt;i&gt;" in text or "\\u0026lt;i" in text


def test_nothing_known_is_a_sentence_and_much_is_bounded():
    unknown = OPERATORS.assign(flops=float("nan"))
    figure = roofline_scatter(unknown, H100)
    assert not figure.data
    assert "does not tell" in figure.layout.annotations[0].text
    many = pd.concat([OPERATORS] * 3000, ignore_index=True)
    assert len(computing(many)) == MAX_POINTS
    assert len(roofline_scatter(many, H100).to_json()) < 600_000

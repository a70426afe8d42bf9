"""The quick figure: the same as Plotly's own, whatever order its layout is made in."""

import json
from typing import Any

import plotly.graph_objects as go
import pytest

from tests.figures.conftest import without_empty
from triosim.figures.figure import Figure

LATER = (
    lambda figure: figure.update_layout(font={"color": "red"}, title="later", margin_l=3),
    lambda figure: figure.update_xaxes(title={"text": "x"}, ticksuffix=" ms"),
    lambda figure: figure.update_yaxes({"title": None}, tickfont={"size": 9}),
    lambda figure: figure.update_layout({"shapes": [{"type": "line"}]}),
    lambda figure: figure.update_layout(shapes=[{"x0": 1}, {"x0": 2}]),
    lambda figure: figure.add_annotation(text="a").update_layout(height=200),
    lambda figure: figure.update_layout(xaxis2={"domain": [0.5, 1]}).update_xaxes(visible=False),
    lambda figure: figure.update_xaxes(selector={"title.text": "t"}, range=[0, 1]),
    lambda figure: figure.update_layout(legend={"x": None}, xaxis={"title": {"text": "plain"}}),
    lambda figure: figure.update_layout(overwrite=True, font={"size": 5}),
    lambda figure: setattr(figure, "layout", {"height": 50, "template": "none"}),
)


def made(kind: Any, steps: tuple[Any, ...]) -> Any:
    figure = kind(data=[{"type": "bar", "x": [1], "y": [2]}], layout={"legend": {"x": 1}})
    figure.update_layout(
        template="none",
        font={"size": 13, "family": "Arial"},
        xaxis={"title": {"text": "t", "font": {"size": 3}}, "range": [1, 2]},
        yaxis={"title": {"text": "t"}},
    )
    for step in steps:
        step(figure)
    return without_empty(json.loads(figure.to_json()))


def test_each_change_and_all_of_them_are_those_of_plotly() -> None:
    for step in LATER:
        assert made(Figure, (step,)) == made(go.Figure, (step,))
    assert made(Figure, LATER) == made(go.Figure, LATER)
    assert made(Figure, LATER[::-1]) == made(go.Figure, LATER[::-1])


def test_a_property_that_there_is_not_is_still_refused() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        _ = Figure().update_layout(nonsense=1).layout

"""Where time goes, as nested tiles."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from triosim.figures import PHASE_COLOURS, Style, time_treemap
from triosim.figures.treemap import MAX_TILES, NO_MODULE

EVIL = "<b>x</b>"
COLUMNS = ("name", "phase", "module", "kind", "time_ms")
NODE = "autograd::engine::evaluate_function: AddmmBackward0"
ROWS = [
    ("aten::addmm", "forward", "net.h.0.fc", "gemm", 4.0),
    ("aten::relu", "forward", "net.h.0.act", "elementwise", 1.0),
    ("aten::addmm", "forward", "net.h.1.fc", "gemm", 4.0),
    (NODE, "backward", "net.h.1.fc", "gemm", 6.0),
    (EVIL, "backward", f"net.{EVIL}", "other", 2.0),
    ("aten::_foreach_add_", "optimizer", "", "optimizer", 3.0),
]
OPERATORS = pd.DataFrame(ROWS, columns=list(COLUMNS))


def tiles(figure):
    """Label, parent's label and time of each tile."""
    drawn = figure.data[0]
    label = dict(zip(drawn.ids, drawn.labels, strict=True))
    return {
        (own, label.get(parent, ""), colour): time_ms
        for own, parent, time_ms, colour in zip(
            drawn.labels, drawn.parents, drawn.values, drawn.marker.colors, strict=True
        )
    }


def test_kinds_hold_their_operators_in_the_colours_of_phases():
    found = tiles(time_treemap(OPERATORS, "kind"))
    assert found["aten::addmm", "gemm", PHASE_COLOURS["forward"]] == 8
    assert found["AddmmBackward0", "gemm", PHASE_COLOURS["backward"]] == 6
    assert {key[0]: t for key, t in found.items() if key[1] == "step"} == {
        "gemm": 14, "elementwise": 1, "other": 2, "optimizer": 3,
    }  # fmt: skip


def test_modules_nest_and_a_models_blocks_are_one():
    found = tiles(time_treemap(OPERATORS, "module"))
    assert found["fc", "h.0..1", PHASE_COLOURS["forward"]] == 8
    assert found["fc", "h.0..1", PHASE_COLOURS["backward"]] == 6
    assert found["aten::_foreach_add_", NO_MODULE, PHASE_COLOURS["optimizer"]] == 3


def test_layers_that_hold_nothing_stay_apart():
    layers = OPERATORS.iloc[:2].assign(module=["features.0", "features.1"])
    labels = {key[0] for key in tiles(time_treemap(layers, "module"))}
    assert {"features", "0", "1"} <= labels


@pytest.mark.parametrize("by", ["kind", "module", "name"])
def test_parts_add_up_and_nothing_is_read_as_markup(by):
    figure = time_treemap(OPERATORS, by, style=Style(dark=True), height=300)
    drawn = figure.data[0]
    assert figure.layout.height == 300
    total = dict(zip(drawn.ids, drawn.values, strict=True))
    for ident, value in total.items():
        parts = [v for p, v in zip(drawn.parents, drawn.values, strict=True) if p == ident]
        assert not parts or sum(parts) == pytest.approx(value)
    assert total["0"] == 20
    assert EVIL not in json.dumps(figure.to_plotly_json(), default=str)
    assert "&lt;b&gt;" in "".join(drawn.labels)
    assert [trace.name for trace in figure.data[1:]] == ["forward", "backward", "optimizer"]


def test_many_names_are_few_tiles_of_the_same_time():
    count = 20_000
    rows = [(f"op{i}", "forward", f"m{i}", "gemm", 1.0) for i in range(count)]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    for by in ("kind", "module", "name"):
        figure = time_treemap(frame, by)
        assert len(figure.data[0].ids) <= MAX_TILES + 4
        assert figure.data[0].values[0] == pytest.approx(count)
        assert len(figure.to_json()) < 200_000


def test_a_step_of_no_time_says_so():
    figure = time_treemap(OPERATORS.assign(time_ms=0.0), "kind")
    assert not figure.data
    assert "takes no time" in figure.layout.annotations[0].text

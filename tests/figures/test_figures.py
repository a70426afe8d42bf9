"""What holds for every figure of every scenario."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import triosim.figures
from triosim.figures import (
    CATEGORY_COLOURS,
    CLASS_COLOURS,
    PHASE_COLOURS,
    Style,
    breakdown_bars,
    communication_bars,
    gantt_bars,
    gantt_overview,
    memory_figure,
    step_times_figure,
    topology_figure,
    utilisation_figure,
)

NAMES = [
    "alone", "each alone", "standard", "distributed", "tensor", "pipeline", "long pipeline",
    "straggler", "unfolded", "mesh", "mesh pipeline", "row", "huge", "huge mesh", "small memory",
    "two hosts", "dead link", "broken ring", "pipeline on a switch",
]  # fmt: skip


def draw_all(result, style=Style()):  # noqa: B008 - a frozen value
    few = result.scenario.gpus <= 16
    ranks = list(range(result.scenario.gpus)) if few else [c.rank for c in result.classes]
    return {
        "overview": gantt_overview(
            result, ranks, window_ms=(0.0, result.total_ms / 2), style=style
        ),
        "bars": gantt_bars(result, ranks, (0.0, result.total_ms), style=style),
        "breakdown": breakdown_bars(result, ranks, style=style),
        "communication": communication_bars(result, style=style),
        "memory": memory_figure(result, ranks[-1], style=style),
        "topology": topology_figure(result, style=style),
        "utilisation": utilisation_figure(result, len(result.tasks.program.links) - 1, style=style),
        "step times": step_times_figure(result, style=style),
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_follows_the_rules_of_the_house(result_of, name):
    style = Style(dark=True, font_size=19)
    for kind, figure in draw_all(result_of(name), style).items():
        layout = figure.layout
        assert layout.paper_bgcolor == layout.plot_bgcolor == "rgba(0,0,0,0)"
        assert (layout.font.size, layout.font.color) == (19, style.text)
        assert layout.uirevision
        assert layout.legend.orientation == "h"
        assert 80 <= layout.height <= 900
        assert layout.xaxis.automargin
        assert layout.yaxis.automargin
        assert len(figure.to_json()) <= 1.5e6, kind
        if kind != "topology":
            assert layout.xaxis.title.text.split("<br>")[0].endswith("(ms)"), kind


def test_a_thing_has_one_colour_in_all_figures(result_of):
    known = {**CATEGORY_COLOURS, **CLASS_COLOURS, **PHASE_COLOURS}
    seen = {}
    for name in ("distributed", "pipeline", "straggler"):
        for figure in draw_all(result_of(name)).values():
            for trace in figure.data:
                if trace.name in known and trace.meta != "gap":
                    colour = trace.line.color if trace.type == "scatter" and trace.fill else None
                    seen.setdefault(trace.name, set()).add(colour or trace.marker.color)
    assert len(seen) >= 12
    assert seen == {name: {known[name]} for name in seen}


def test_a_trace_of_forward_operators_alone(make_trace, simulate_trace):
    trace = replace(make_trace([100, 50], []), name="forward-only")
    for case in (0, 2, 3, 4):
        figures = draw_all(simulate_trace(trace, case=case, gpus=2))
        assert figures["breakdown"].data[0].name == "forward"


def test_a_step_that_takes_no_time(make_trace, simulate_trace):
    result = simulate_trace(make_trace([0], [0]), gpus=1, resident=True)
    assert result.total_ms == 0
    figures = draw_all(result)
    for kind in ("overview", "bars", "breakdown"):
        assert figures[kind].layout.annotations[0].text == "This step takes no time."
    assert all(json.loads(figure.to_json()) for figure in figures.values())


def test_exports_are_the_packages_names():
    assert all(hasattr(triosim.figures, name) for name in triosim.figures.__all__)
    assert len(triosim.figures.__all__) == len(set(triosim.figures.__all__))

"""The critical path over a timeline: one line through the lanes of the tasks on it."""

from __future__ import annotations

from collections.abc import Sequence

from triosim.explain import PathStep
from triosim.figures.figure import Figure, scatter_trace
from triosim.figures.gantt import Window
from triosim.figures.lanes import Lanes
from triosim.figures.style import Style
from triosim.figures.train_colours import roomy_legend
from triosim.result import Result

NAME = "critical path"
WIDTH_PX = 3
# Below the middle of a lane, in heights of one: on the lower edge of its bars, under their names.
OFFSET = 0.43
LEGEND_LINE = 1.6  # heights of text


def draw_path(
    figure: Figure,
    result: Result,
    path: Sequence[PathStep],
    lanes: Lanes,
    window_ms: Window,
    style: Style,
) -> None:
    """Along each task of the path in the window, then across to the lane of the next one.

    Of the lanes of identical GPUs the first has the line; where a task has no lane it breaks.
    """
    drawn = _line(result, path, lanes, window_ms)
    if not drawn:
        return
    line = {"color": style.text, "width": WIDTH_PX}
    figure.add_shape(type="path", path=drawn, line=line, layer="above", name=NAME)
    figure.add_trace(
        scatter_trace(x=[None], y=[None], mode="lines", line=line, name=NAME, hoverinfo="skip")
    )
    # One entry more may need one line more.
    figure.update_layout(height=figure.settings["height"] + round(LEGEND_LINE * style.font_size))
    roomy_legend(figure, style)


def _line(result: Result, path: Sequence[PathStep], lanes: Lanes, window: Window) -> str:
    """The line as SVG writes it, in milliseconds and numbers of lanes."""
    row: dict[int, int] = {}
    for number, lane in enumerate(lanes.lanes):
        row.setdefault(lane.stream, number)
    stream = result.tasks.program.stream
    words, pen_down = [], False
    for step in path:
        low, high = max(step.start_s * 1e3, window[0]), min(step.end_s * 1e3, window[1])
        place = row.get(stream[step.task])
        if high <= low or place is None:
            pen_down = pen_down and high <= low and place is not None
            continue
        y = place + OFFSET
        words.append(f"{'L' if pen_down else 'M'}{low:.6f},{y:g} L{high:.6f},{y:g}")
        pen_down = True
    return " ".join(words)

"""A Plotly figure that stays plain values until somebody looks at it the way of Plotly.

NOTE: Plotly checks every value, and finds its way through the tree of properties for each: 20 to
60 ms for the charts of a page, of which a class of forty asks for a dozen a second. A page sends
the plain values, at a tenth of that; who reads `data` or `layout`, a notebook or a test, gets the
checked figure. The tests compare the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from _plotly_utils.utils import to_typed_array_spec  # type: ignore[import-untyped]

Trace = dict[str, Any]  # the properties of a trace, its type among them

_NO_TEMPLATE = go.Figure(layout={"template": "none"}).to_dict()["layout"]["template"]
# Their elements are merged one by one, which is left to Plotly.
_LISTS = frozenset({"annotations", "images", "selections", "shapes", "sliders", "updatemenus"})
# Arguments beside the properties: which axes or panels, and a line's own annotation.
_CHOOSING = frozenset({"selector", "overwrite", "row", "col", "secondary_y", "annotation"})
# Other names with "_" in them lead into a property: margin_l is l of the margin.
_UNDERSCORED = frozenset({"paper_bgcolor", "plot_bgcolor"})
# Lines across the whole chart.
_UPRIGHT = {"xref": "x", "y0": 0, "y1": 1, "yref": "y domain"}
_LEVEL = {"yref": "y", "x0": 0, "x1": 1, "xref": "x domain"}


def bar_trace(**properties: Any) -> Trace:
    return {"type": "bar", **properties}


def heatmap_trace(**properties: Any) -> Trace:
    return {"type": "heatmap", **properties}


def scatter_trace(**properties: Any) -> Trace:
    return {"type": "scatter", **properties}


def treemap_trace(**properties: Any) -> Trace:
    return {"type": "treemap", **properties}


class Figure(go.Figure):  # type: ignore[misc] # plotly ships no type information
    """Without a template. Either plain or checked, and once checked it is Plotly's own."""

    _checked = False

    def __init__(self, data: Any = None, layout: Mapping[str, Any] | None = None) -> None:
        self._plain_traces: list[Trace] = []
        self._plain_layout: dict[str, Any] = dict(layout or {})
        traces = [data] if isinstance(data, dict) and "type" in data else data
        if isinstance(traces, list) and all(isinstance(trace, dict) for trace in traces):
            self._plain_traces += traces
        elif data is not None:
            self._check(data)

    def __getattr__(self, name: str) -> Any:
        # Only what is not there is looked up here: what Plotly's own beginning makes.
        if self._checked or not name.startswith("_"):
            raise AttributeError(name)
        self._check(self._plain_traces)
        return getattr(self, name)

    def _check(self, data: Any) -> None:
        self._checked = True
        super().__init__(data, {"template": "none", **self._plain_layout})

    @property
    def traces(self) -> list[Trace]:
        """The properties of each trace; to read, and for builders to change."""
        return self._data if self._checked else self._plain_traces

    @property
    def settings(self) -> dict[str, Any]:
        """The properties of the layout that have been set; to read and to change."""
        return self._layout if self._checked else self._plain_layout

    def to_dict(self) -> dict[str, Any]:
        if self._checked:
            found: dict[str, Any] = super().to_dict()
            return found
        layout = {"template": _NO_TEMPLATE, **_sent(self._plain_layout)}
        return {"data": _sent(self._plain_traces), "layout": layout}

    def add_trace(self, trace: Any, **where: Any) -> Figure:
        if self._checked or where or not isinstance(trace, dict):
            super().add_trace(trace, **where)
        else:
            self._plain_traces.append(trace)
        return self

    def update_layout(
        self, dict1: Mapping[str, Any] | None = None, overwrite: bool = False, **more: Any
    ) -> Figure:
        changes = {**(dict1 or {}), **more}
        lists = (name for name in changes.keys() & _LISTS if self.settings.get(name))
        deep = any("_" in name for name in changes.keys() - _UNDERSCORED)
        if self._checked or overwrite or deep or any(lists):
            super().update_layout(changes, overwrite=overwrite)
        else:
            if changes.get("template") == "none":
                del changes["template"]
            self._plain_layout = _merged(self._plain_layout, changes)
        return self

    def update_xaxes(self, patch: Mapping[str, Any] | None = None, **more: Any) -> Figure:
        return self._update_axes("xaxis", super().update_xaxes, patch, more)

    def update_yaxes(self, patch: Mapping[str, Any] | None = None, **more: Any) -> Figure:
        return self._update_axes("yaxis", super().update_yaxes, patch, more)

    def _update_axes(
        self, kind: str, otherwise: Any, patch: Mapping[str, Any] | None, more: dict[str, Any]
    ) -> Figure:
        if self._checked or more.keys() & _CHOOSING:
            otherwise(patch, **more)
            return self
        changes = {**(patch or {}), **more}
        names = {kind, *(name for name in self._plain_layout if name.startswith(kind))}
        return self.update_layout(dict.fromkeys(names, changes))

    def add_annotation(self, arg: Any = None, **properties: Any) -> Figure:
        return self._add("annotations", super().add_annotation, arg, properties)

    def add_shape(self, arg: Any = None, **properties: Any) -> Figure:
        return self._add("shapes", super().add_shape, arg, properties)

    def _add(self, kind: str, otherwise: Any, arg: Any, properties: dict[str, Any]) -> Figure:
        if self._checked or arg is not None or properties.keys() & _CHOOSING:
            otherwise(arg, **properties)
        else:
            self._plain_layout[kind] = [*self._plain_layout.get(kind, ()), properties]
        return self

    def add_vline(self, x: Any, **line: Any) -> Figure:
        """From the bottom to the top of the chart."""
        return self._across(
            partial(super().add_vline, x), line, type="line", x0=x, x1=x, **_UPRIGHT
        )

    def add_hline(self, y: Any, **line: Any) -> Figure:
        """From the left to the right of the chart."""
        return self._across(partial(super().add_hline, y), line, type="line", y0=y, y1=y, **_LEVEL)

    def add_vrect(self, x0: Any, x1: Any, **rect: Any) -> Figure:
        """From the bottom to the top of the chart."""
        return self._across(
            partial(super().add_vrect, x0, x1), rect, type="rect", x0=x0, x1=x1, **_UPRIGHT
        )

    def _across(self, otherwise: Any, properties: dict[str, Any], **shape: Any) -> Figure:
        """A shape from edge to edge, which Plotly adds `otherwise`."""
        if self._checked or properties.keys() & _CHOOSING:
            otherwise(**properties)
            return self
        return self.add_shape(**shape, **properties)


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The old values with the new ones; what is a mapping in both is merged itself."""
    both = dict(old)
    for name, value in new.items():
        kept = both.get(name)
        if isinstance(kept, Mapping) and isinstance(value, Mapping):
            both[name] = _merged(kept, value)
        else:
            both[name] = value
    return both


def _sent(value: Any) -> Any:
    """As Plotly sends it: without what is unset, and arrays as bytes."""
    if isinstance(value, dict):
        return {name: _sent(each) for name, each in value.items() if each is not None}
    if isinstance(value, np.ndarray | pd.Series):
        return to_typed_array_spec(value)
    if isinstance(value, list | tuple) and value and isinstance(value[0], dict):
        return [_sent(each) for each in value]
    return value

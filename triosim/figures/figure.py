"""A Plotly figure that makes its layout once, from all changes together.

NOTE: Plotly's own update finds its way through the tree of properties for every single value, and
prepares what it would tell a notebook's widget: 15 to 40 ms for a common layout, here 3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import plotly.graph_objects as go

# Their elements are merged one by one, which is left to Plotly.
_LISTS = frozenset({"annotations", "images", "selections", "shapes", "sliders", "updatemenus"})
# Arguments of an update of axes that are no properties of an axis.
_CHOOSING = frozenset({"selector", "overwrite", "row", "col", "secondary_y"})
_set_layout = go.Figure.layout.fset


class Figure(go.Figure):  # type: ignore[misc] # plotly ships no type information
    """Without a template; its layout changes when somebody looks at it, and is then checked."""

    _changes: dict[str, Any] | None = None  # to the layout, not yet in it

    def __init__(
        self, data: Any = None, layout: Mapping[str, Any] | None = None, **more: Any
    ) -> None:
        super().__init__(data, {"template": "none", **(layout or {})}, **more)

    @property
    def layout(self) -> Any:
        changes, self._changes = self._changes, None
        if changes:
            old = self._layout_obj.to_plotly_json()
            _set_layout(self, _merged(old, changes))
        return self._layout_obj

    @layout.setter
    def layout(self, new: Any) -> None:
        self._changes = None
        _set_layout(self, new)

    def to_dict(self) -> dict[str, Any]:
        assert self.layout is not None  # with all changes in it
        found: dict[str, Any] = super().to_dict()
        return found

    def update_layout(
        self, dict1: Mapping[str, Any] | None = None, overwrite: bool = False, **more: Any
    ) -> Figure:
        changes = {**(dict1 or {}), **more}
        if overwrite or any(self.layout[name] for name in changes.keys() & _LISTS):
            super().update_layout(changes, overwrite=overwrite)
        else:
            if changes.get("template") == "none":
                del changes["template"]
            self._changes = _merged(self._changes or {}, changes)
        return self

    def update_xaxes(self, patch: Mapping[str, Any] | None = None, **more: Any) -> Figure:
        return self._update_axes("xaxis", super().update_xaxes, patch, more)

    def update_yaxes(self, patch: Mapping[str, Any] | None = None, **more: Any) -> Figure:
        return self._update_axes("yaxis", super().update_yaxes, patch, more)

    def _update_axes(
        self,
        kind: str,
        otherwise: Callable[..., Any],
        patch: Mapping[str, Any] | None,
        more: dict[str, Any],
    ) -> Figure:
        if more.keys() & _CHOOSING:
            otherwise(patch, **more)
            return self
        names = (*self._layout_obj, *(self._changes or {}))
        changes = {**(patch or {}), **more}
        return self.update_layout({name: changes for name in names if name.startswith(kind)})


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

"""What results have in common: they show themselves in a notebook, and hand out tables and figures.

Everything is worked out when asked for, in `triosim.notebook`; so the engine starts without Plotly
and without IPython.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go


class Shown:
    """A result. A cell of a notebook that ends with one shows its summary and its main figures."""

    @property
    def tables(self) -> tuple[str, ...]:
        """What `table` has, the summary first."""
        from triosim import notebook

        return notebook.table_names(self)

    def table(self, name: str = "summary") -> pd.DataFrame:
        """One of `tables` as a data frame. Raises `ConfigError` for another name."""
        from triosim import notebook

        return notebook.table(self, name)

    @property
    def figures(self) -> tuple[str, ...]:
        """What `figure` draws, in the order of a notebook, which shows the first two."""
        from triosim import notebook

        return notebook.figure_names(self)

    def figure(
        self,
        name: str | None = None,
        *,
        ranks: Sequence[int] | None = None,
        dark: bool = False,
    ) -> go.Figure:
        """One of `figures` (None: the first) as a Plotly figure, on a light or a dark ground.

        `ranks` are the GPUs of a step to draw; by default one of each group of identical ones.
        Needs plotly. Raises `ConfigError` for a name or a rank that there is not.
        """
        from triosim import notebook

        return notebook.figure(self, name, ranks=ranks, dark=dark)

    def __repr__(self) -> str:
        from triosim import notebook

        return notebook.line(self)

    def _repr_html_(self) -> str:
        from triosim import notebook

        return notebook.page(self)

    def _ipython_display_(self) -> None:
        from triosim import notebook

        notebook.show(self)

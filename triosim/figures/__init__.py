"""Results to Plotly figures: pure functions, and the only place that imports Plotly."""

from triosim.figures.breakdown import breakdown_bars
from triosim.figures.communication import communication_bars
from triosim.figures.explain import critical_bars, what_if_tornado
from triosim.figures.gantt import gantt_overview
from triosim.figures.gantt_bars import gantt_bars
from triosim.figures.memory import memory_figure
from triosim.figures.overlay import overlay_figure
from triosim.figures.palette import CATEGORY_COLOURS, CLASS_COLOURS, PHASE_COLOURS
from triosim.figures.roofline import roofline_scatter
from triosim.figures.step_times import step_times_figure
from triosim.figures.style import Style
from triosim.figures.topology import topology_figure
from triosim.figures.treemap import time_treemap
from triosim.figures.utilisation import utilisation_figure

__all__ = [
    "Style",
    "gantt_overview",
    "gantt_bars",
    "breakdown_bars",
    "communication_bars",
    "memory_figure",
    "topology_figure",
    "utilisation_figure",
    "step_times_figure",
    "critical_bars",
    "what_if_tornado",
    "time_treemap",
    "overlay_figure",
    "roofline_scatter",
    "PHASE_COLOURS",
    "CLASS_COLOURS",
    "CATEGORY_COLOURS",
]

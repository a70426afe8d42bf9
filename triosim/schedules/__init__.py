"""Pipeline schedules: what each stage runs in order, and when that is."""

from triosim.schedules.catalogue import SCHEDULES, make_schedule
from triosim.schedules.check import check_complete
from triosim.schedules.grid import Grid, read_grid, write_grid
from triosim.schedules.program import write_schedule
from triosim.schedules.schedule import Place, Schedule, Task
from triosim.schedules.timing import Durations, Timing, time_schedule

__all__ = [
    "SCHEDULES",
    "Durations",
    "Grid",
    "Place",
    "Schedule",
    "Task",
    "Timing",
    "check_complete",
    "make_schedule",
    "read_grid",
    "time_schedule",
    "write_grid",
    "write_schedule",
]

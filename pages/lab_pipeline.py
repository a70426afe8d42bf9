"""The lab on pipeline schedules."""

from dashboard.lab.page import open_lab
from dashboard.lab.pipeline import LAB

open_lab(LAB)

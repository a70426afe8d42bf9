"""The lab on tensor parallelism."""

from dashboard.lab.page import open_lab
from dashboard.lab.tensor import LAB

open_lab(LAB)

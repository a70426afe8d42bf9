"""The lab on recomputation."""

from dashboard.lab.page import open_lab
from dashboard.lab.recompute import LAB

open_lab(LAB)

"""The lab on long context."""

from dashboard.lab.context import LAB
from dashboard.lab.page import open_lab

open_lab(LAB)

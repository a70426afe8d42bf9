"""The lab on data parallelism."""

from dashboard.lab.data_parallel import LAB
from dashboard.lab.page import open_lab

open_lab(LAB)

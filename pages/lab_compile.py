"""The lab on compilation and CUDA graphs."""

from dashboard.lab.compiling import LAB
from dashboard.lab.page import open_lab

open_lab(LAB)

"""The lab on training Llama."""

from dashboard.lab.llama import LAB
from dashboard.lab.page import open_lab

open_lab(LAB)

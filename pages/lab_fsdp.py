"""The lab on FSDP."""

from dashboard.lab.fsdp import LAB
from dashboard.lab.page import open_lab

open_lab(LAB)

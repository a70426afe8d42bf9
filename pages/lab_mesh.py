"""The lab on device meshes and DTensor."""

from dashboard.lab.mesh import LAB
from dashboard.lab.page import open_lab

open_lab(LAB)

"""What a lab needs to know of the screen that it is on: whose it is, and how figures look there."""

from dashboard.frame import presenting, preset
from dashboard.timeline import style

__all__ = ["presenting", "preset", "style"]

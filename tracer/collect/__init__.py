"""Record one training step of a real model on the device that is here."""

from tracer.collect.record import Recording, record
from tracer.collect.run import collect

__all__ = ["Recording", "collect", "record"]

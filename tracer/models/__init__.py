"""Models by name, with inputs of the right shape and a loss: what collecting and deriving share."""

from tracer.models.job import Job, make_optimizer, train_step
from tracer.models.names import build_job, file_name

__all__ = ["Job", "build_job", "file_name", "make_optimizer", "train_step"]

"""GPUs and how long they take: the catalogue, the work of one operator, a roofline of both."""

from triosim.hardware.catalogue import gpu_names, load_gpu
from triosim.hardware.gpu import DTYPES, Gpu, MatmulFit
from triosim.hardware.kinds import KINDS, kind_of
from triosim.hardware.roofline import predict_s
from triosim.hardware.work import Work

__all__ = [
    "DTYPES", "KINDS", "Gpu", "MatmulFit", "Work", "gpu_names", "kind_of", "load_gpu", "predict_s",
]  # fmt: skip

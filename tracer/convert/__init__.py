"""Convert PyTorch's own recordings (profiler file and execution trace) into a trace to simulate.

    trace, report = convert("profiler_vgg13-iter41.json.gz", "graph_vgg13-iter41.json.gz")

Needs neither torch nor a GPU, and writes nothing unless asked to.
"""

from tracer.convert.conversion import convert, trace_name
from tracer.convert.files import read_file
from tracer.convert.partners import TP_OPS
from tracer.convert.report import Report
from tracer.convert.save import save

__all__ = ["TP_OPS", "Report", "convert", "read_file", "save", "trace_name"]

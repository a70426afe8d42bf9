"""What a row is, by its name: annotation, step, backward function, optimizer, communication."""

from __future__ import annotations

import re

from tracer.convert.kineto import Row

EVALUATE = "autograd::engine::evaluate_function"
ACCUMULATE = "torch::autograd::AccumulateGrad"
OPTIMIZER_STEP = "Optimizer.step"
ZERO_GRAD = "Optimizer.zero_grad"
STEP = re.compile(r"ProfilerStep\s?#(\d+)$")
_BACKWARD = re.compile(r"(?:^|[:\s.])\w+Backward\d*$")
_COMMUNICATION = re.compile(
    r"(?:c10d::|_?c10d_functional(?:_autograd)?::|record_param_comms$|(?:nccl|rccl|gloo|ucc|mpi):)"
)
_COMMUNICATION_KERNEL = re.compile(r"^(?:void )?(?:\w+::)*(?:nccl|rccl|mscclKernel)", re.IGNORECASE)
_GRAPH_LAUNCH = re.compile(r"LaunchKernel|GraphLaunch")
# torch 1.8 and 1.9 write annotations as operators; torch.compile and re-entrant checkpointing wrap
# operators (and the parameters that those read) in such rows.
_WRAPPER = re.compile(
    r"ProfilerStep|Optimizer\.|enumerate\(DataLoader\)|DistributedDataParallel\.forward|FSDP::"
    r"|## |Torch-Compiled Region|CompiledFunction|CheckpointFunction|TorchDynamo"
    r"|Pregraph bytecode|AOTDispatcher"
    rf"|{EVALUATE}: CompiledFunctionBackward|nn\.Module:"
)


def is_annotation(row: Row) -> bool:
    """Whether a row only wraps operators and is none itself."""
    return row.annotation or bool(_WRAPPER.match(row.name))


def is_step(row: Row) -> bool:
    return row.name.startswith("ProfilerStep")


def is_communication(name: str) -> bool:
    return bool(_COMMUNICATION.match(name))


def is_communication_kernel(name: str) -> bool:
    return bool(_COMMUNICATION_KERNEL.match(name))


def is_launch(name: str) -> bool:
    """Whether a runtime call starts kernels (others have a correlation as well)."""
    return bool(_GRAPH_LAUNCH.search(name))


def is_evaluation(name: str) -> bool:
    """One node of the autograd graph being run."""
    return name.startswith(EVALUATE)


def is_backward(name: str) -> bool:
    return is_evaluation(name) or name == ACCUMULATE or bool(_BACKWARD.search(name))


def is_optimizer(name: str) -> bool:
    return name.startswith((OPTIMIZER_STEP, ZERO_GRAD))


def same_name(ours: str, theirs: str) -> bool:
    """The profiler file writes some names differently."""
    return ours == theirs or _plain(ours) == _plain(theirs) or ours == "unknown"


def _plain(name: str) -> str:
    return re.sub(r"[\\/\s\"]", "", name)

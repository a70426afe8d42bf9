"""Transformers as numbers, and what a step of them asks of GPUs: operators, FLOPs, memory."""

from triosim.workload.activations import flash_layer_bytes, megatron_layer_bytes
from triosim.workload.block import IMPLEMENTATIONS, Block, Op, block_of, parts_of
from triosim.workload.catalogue import Published, load_model, model_names, published
from triosim.workload.flops import (
    gpt_step_flops,
    hardware_flops_per_token,
    model_flops_per_token,
)
from triosim.workload.huggingface import from_config
from triosim.workload.layout import SPLITS, Layout
from triosim.workload.model import Transformer
from triosim.workload.optimizer import OptimizerStep, optimizer_steps
from triosim.workload.parameters import ParameterCount, count_parameters
from triosim.workload.parts import PARTS
from triosim.workload.step import trace_of

__all__ = [
    "IMPLEMENTATIONS",
    "PARTS",
    "SPLITS",
    "Block",
    "Layout",
    "Op",
    "OptimizerStep",
    "ParameterCount",
    "Published",
    "Transformer",
    "block_of",
    "count_parameters",
    "flash_layer_bytes",
    "from_config",
    "gpt_step_flops",
    "hardware_flops_per_token",
    "load_model",
    "megatron_layer_bytes",
    "model_flops_per_token",
    "model_names",
    "optimizer_steps",
    "parts_of",
    "published",
    "trace_of",
]

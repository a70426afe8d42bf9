"""What kind of work an operator is, by its name."""

from __future__ import annotations

import re
from functools import lru_cache

KINDS = (
    "gemm", "conv", "attention", "elementwise", "reduction", "norm", "pool", "embedding",
    "optimizer", "copy", "other", "conv_direct", "conv_weight", "pool_backward",
)  # fmt: skip
# The last three are how `triosim.trace.cost` tells apart kernels that one operator name stands for:
# convolutions on NCHW tensors without a layout change, weight gradients of convolutions, and the
# backward pass of pooling. `kind_of` never returns them.
MATRIX_KINDS = ("gemm", "conv", "conv_direct", "conv_weight")
# The first pattern found in the bare name decides, so narrow ones stand before wide ones.
_PATTERNS = (
    ("other", r"nccl|gloo|rccl|all_?(reduce|gather)|reduce_?scatter|all_?to_?all|broadcast_coal"),
    ("optimizer", r"foreach|fused_?(adam|sgd|adagrad|lion)|multi_tensor|optimizer|amp_update"),
    ("attention", r"attention|flash|sdpa|fmha"),
    ("embedding", r"embedding|index_?select|gather|scatter|index_?(add|put)|^index$"),
    ("reduction", r"vector_norm|^(linalg_|foreach_)?norm(_except_dim)?$"),
    ("elementwise", r"(^|_)normal|masked_(fill|scale)|_masks?$"),
    ("norm", r"norm"),
    ("pool", r"pool|upsample|interpolate"),
    ("conv", r"conv(?!ert)"),
    ("gemm", r"linear|addmm|matmul|einsum|bmm|(^|_|scaled|grouped|int)mm(_|$|\d)|gemm|cutlass"
             r"|cublas|baddbmm|addmv|(^|_)mv$|(^|_)dot$|^mm"),
    ("reduction", r"softmax|(^|_)sum|mean|loss|cross_?entropy|(^|_)(min|max|amax|amin|argmax|prod"
                  r"|any|all|var|std|logsumexp|cumsum|topk|sort)\d*(_|$)|^red_|_red_|per_fused"),
    ("copy", r"copy|clone|contiguous|convert_element_type|(^|_)to(_|$)|to_copy|cat$|cat_|concat"
             r"|stack|memcpy|memset|fill|zeros|ones|empty|full|split|repeat|expand|pad|arange|roll|transpose|permute"),
    ("elementwise", r"relu|gelu|silu|sigmoid|tanh|elu|swish|swiglu|mish|hardtanh|threshold|dropout"
                    r"|(^|_)(r?add|r?sub|mul|div|neg|exp|log|sqrt|rsqrt|pow|abs|sin|cos|lerp"
                    r"|clamp|where|eq|ne|lt|le|gt|ge|bitwise\w*|logical\w*|addcmul|addcdiv"
                    r"|maximum|minimum|reciprocal|erf|square|tril|triu|bernoulli"
                    r"|uniform|random)\d*(_|$|[a-z]*scalar)|elementwise|pointwise|poi_"
                    r"|(^|_)triton|rotary|rope"),
)  # fmt: skip
_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in _PATTERNS)


@lru_cache(maxsize=4096)
def kind_of(name: str) -> str:
    """The kind of an operator: aten::..., autograd's ...Backward0, Triton and fused names."""
    bare = bare_name(name)
    for kind, pattern in _COMPILED:
        if pattern.search(bare):
            return kind
    return "other"


@lru_cache(maxsize=4096)
def bare_name(name: str) -> str:
    """Lower case without name space and suffix: aten::mm and ...: MmBackward0 both give "mm"."""
    last = name.rsplit("::", 1)[-1].rsplit(":", 1)[-1].strip()
    if "::" in name or ":" in name or last.endswith(tuple("0123456789")):
        last = re.sub(r"Backward\d*$", "", last)
    # CamelCase of autograd becomes aten's snake_case, as in NativeBatchNorm and native_batch_norm.
    if re.match(r"[A-Z][a-z]", last):
        last = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last)
    return re.sub(r"_?backward(_\w+)?$", "", last.lower().split(".")[0])

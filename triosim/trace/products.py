"""The work of matrix products and attention.

A product of m x k and k x n takes 2mnk floating-point operations; its two gradients take as many
each. Attention over q queries and k keys of width d takes 4qkd for each head (two products); its
backward, which computes the first product again, 10qkd.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from triosim.hardware import Work
from triosim.hardware.kinds import bare_name
from triosim.trace.model import Operator, Tensor
from triosim.trace.sizes import Sizes, compute_dtype, is_backward, is_node


@dataclass(frozen=True, slots=True)
class Product:
    """`count` products of m x k and k x n."""

    m: float
    n: float
    k: float
    count: float = 1

    def work(self, kind: str, dtype: str, element_bytes: int) -> Work:
        m, n, k = (max(1, round(size)) for size in (self.m, self.n, self.k))
        return Work(
            kind=kind,
            flops=2.0 * m * n * k * self.count,
            bytes=float((m * k + k * n + m * n) * element_bytes) * self.count,
            dtype=dtype,
            shape=(m, n, k),
        )

    @property
    def gradients(self) -> tuple[Product, Product]:
        """Of the left and of the right matrix."""
        return (
            replace(self, n=self.k, k=self.n),
            replace(self, m=self.k, k=self.m),
        )


def matrix_product(operator: Operator, partner: Operator | None, sizes: Sizes) -> Work | None:
    """linear, addmm, mm, bmm, matmul, and autograd's nodes of them by their forward operator."""
    node = is_node(operator)
    source = partner if node else operator
    product = _product(source, sizes) if source is not None else None
    if source is None or product is None:
        return None
    dtype, size = compute_dtype(source), source.inputs[0].element_bytes
    if not node:
        return product.work("gemm", dtype, size)
    parts = [gradient.work("gemm", dtype, size) for gradient in product.gradients]
    if len(source.inputs) > 2:
        parts.append(bias_gradient(product.m * product.n * product.count * size))
    return Work.of("gemm", parts)


def bias_gradient(size: float) -> Work:
    """The sum of an output's gradient over the batch."""
    return Work(kind="reduction", flops=0, bytes=size, dtype="fp32")


def _product(operator: Operator, sizes: Sizes) -> Product | None:
    name = bare_name(operator.name)
    tensors = [t for t in operator.inputs if t.shape]
    if name.startswith(("addm", "baddb")) and len(tensors) > 2:
        tensors = tensors[1:]  # addmm(bias, a, b)
    a, b, out = tensors[0], tensors[1], operator.outputs[0]
    if "grouped" in name:
        return _grown(_grouped(a, b, out), sizes, a, b, out)
    if "linear" in name:
        n, k, count = b.shape[0], b.shape[-1], 1
    elif len(b.shape) == 1:
        n, k, count = 1, b.shape[0], 1
    else:
        n, k, count = b.shape[-1], b.shape[-2], prod(b.shape[:-2])
    # A linear's input may be recorded before it was flattened; its elements tell.
    fits = a.numel * n == out.numel * k if "linear" in name else a.shape[-1] == k
    if not fits or not n or not count or out.numel % (n * count):
        return None
    return _grown(Product(out.numel / (n * count), n, k, count), sizes, a, b, out)


def _grouped(a: Tensor, b: Tensor, out: Tensor) -> Product:
    """A product for each group: the groups share rows, columns or, between two gradients, a sum."""
    groups = next((t.shape[0] for t in (a, b, out) if len(t.shape) == 3), 1)
    m, k, n = (float(size) for size in (*a.shape[-2:], b.shape[-1]))
    if len(a.shape) == len(b.shape) == 2:
        k /= groups
    elif len(a.shape) == 2:
        m /= groups
    elif len(b.shape) == 2:
        n /= groups
    return Product(m, n, k, groups)


def _grown(product: Product, sizes: Sizes, a: Tensor, b: Tensor, out: Tensor) -> Product:
    """At another batch that dimension grows which the growing matrices share."""
    share = sizes.share
    growing = (sizes.grows(a), sizes.grows(b), sizes.grows(out))
    if growing == (True, True, False):
        return replace(product, k=product.k * share)
    if growing == (False, True, True):
        return replace(product, n=product.n * share)
    if growing == (True, True, True) and product.count > 1:
        return replace(product, count=product.count * share)
    if sizes.grows(out):
        return replace(product, m=product.m * share)
    return product


def attention(operator: Operator, partner: Operator | None, sizes: Sizes) -> Work | None:
    """Fused attention on (batch, heads, length, width); the trace's own operation count wins."""
    backward = is_backward(operator)
    tensors = [t for t in operator.inputs if len(t.shape) == 4]
    if backward and len(tensors) > 3:
        tensors = tensors[1:]  # the gradient of the output stands first
    if len(tensors) < 3 and partner is not None:
        tensors = [t for t in partner.inputs if len(t.shape) == 4]
    query, key, value = tensors[:3]
    batch, heads, queries, width = query.shape
    if key.shape[3] != width:
        return None
    share = sizes.share
    pairs = float(batch * heads * queries * key.shape[2])
    flops = pairs * 2 * (width + value.shape[3]) * (2.5 if backward else 1)
    if operator.flops is not None:
        flops = operator.flops
    moved = sum(t.bytes for t in (query, key, value)) + query.bytes
    return Work(
        kind="attention",
        flops=flops * share,
        bytes=moved * share * (2 if backward else 1),
        dtype=compute_dtype(operator),
    )

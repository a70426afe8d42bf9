"""The work of a convolution: the matrix product it is, and the layout changes around it.

One group is the product of (samples x output positions) x (input channels x taps) and that x output
channels. Tensors lie as PyTorch makes them by default, channel by channel (NCHW), while the tensor
cores want the channels of a position together (NHWC): cuDNN changes the layout of what goes in and
of what comes out, in kernels of their own. It needs not where a kernel has one tap, stride 1 and
aligned rows. Which of its kernels cuDNN takes is its own decision; these rules are read off the
H100 profile and traces published with TrioSim.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from triosim.hardware import Work
from triosim.hardware.gpu import canonical_dtype
from triosim.trace.model import Operator, Tensor
from triosim.trace.products import Product, bias_gradient
from triosim.trace.sizes import Sizes, compute_dtype, is_backward

_ALIGNMENT = 4  # elements, of channels for TF32 kernels and of positions to stay in NCHW


def convolution(operator: Operator, partner: Operator | None, sizes: Sizes) -> Work | None:
    """conv1d to conv3d, aten::convolution and their backward."""
    backward = is_backward(operator)
    found = _tensors(operator, partner, backward=backward)
    if found is None:
        return None
    out, x, weight = found
    groups, rest = divmod(x.shape[1], weight.shape[1])
    if rest or not groups or out.shape[1] != weight.shape[0] or "transpose" in operator.name:
        return None
    conv = _Convolution(
        batch=x.shape[0] * sizes.of(x),
        inputs=prod(x.shape[2:]),
        outputs=prod(out.shape[2:]),
        channels_in=weight.shape[1],
        channels_out=weight.shape[0] // groups,
        groups=groups,
        taps=prod(weight.shape[2:]),
        element_bytes=x.element_bytes,
        dtype=compute_dtype(operator),
    )
    if not backward:
        bias = any(t.shape == weight.shape[:1] for t in operator.inputs)
        return Work.of("conv", conv.forward(bias=bias))
    shapes = [t.shape for t in operator.outputs]
    parts = conv.backward(
        data=x.shape in shapes or not shapes,
        weight=weight.shape in shapes or not shapes,
        bias=weight.shape[:1] in shapes,
    )
    return Work.of("conv", parts) if parts else None


def _tensors(
    operator: Operator, partner: Operator | None, *, backward: bool
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Output (or its gradient), input and weight."""
    large = [t for t in operator.inputs if len(t.shape) > 2]
    if backward and len(large) < 3 and partner is not None:
        large = [*partner.outputs[:1], *(t for t in partner.inputs if len(t.shape) > 2)]
    elif not backward:
        large = [*operator.outputs[:1], *large]
    if len(large) < 3 or len({len(t.shape) for t in large[:3]}) > 1:
        return None
    return large[0], large[1], large[2]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Convolution:
    """`inputs` and `outputs` are positions per sample and channel; channels are of one group."""

    batch: float
    inputs: int
    outputs: int
    channels_in: int
    channels_out: int
    groups: int
    taps: int
    element_bytes: int
    dtype: str

    @property
    def input_bytes(self) -> float:
        return self.batch * self.inputs * self.channels_in * self.groups * self.element_bytes

    @property
    def output_bytes(self) -> float:
        return self.batch * self.outputs * self.channels_out * self.groups * self.element_bytes

    @property
    def _float32(self) -> bool:
        return canonical_dtype(self.dtype) == "fp32"

    @property
    def _plain(self) -> bool:
        """Without tensor cores: float32, and input channels that TF32 kernels do not take."""
        return self._float32 and self.channels_in % _ALIGNMENT != 0

    @property
    def _direct(self) -> bool:
        """Without a layout change."""
        pointwise = self.taps == 1 and self.inputs == self.outputs
        return self._plain or (pointwise and self.inputs % _ALIGNMENT == 0)

    def _work(self, kind: str, product: Product, dtype: str) -> Work:
        """What moves is counted from the tensors: a position is loaded for each tap from cache."""
        found = product.work(kind, dtype, self.element_bytes)
        weight = self.taps * self.channels_in * self.channels_out * self.groups
        return Work(
            kind=kind,
            flops=found.flops,
            bytes=self.input_bytes + self.output_bytes + weight * self.element_bytes,
            dtype=dtype,
            shape=found.shape,
        )

    def _changes(self) -> list[Work]:
        """The layout of input and output changed, each read and written once."""
        sizes = (2 * self.input_bytes, 2 * self.output_bytes)
        return [Work(kind="copy", flops=0, bytes=size, dtype="fp32") for size in sizes]

    def forward(self, *, bias: bool) -> list[Work]:
        product = Product(
            self.batch * self.outputs, self.channels_out, self.channels_in * self.taps, self.groups
        )
        parts = self._forward_like(product)
        if bias:
            size = 2 * self.output_bytes
            parts.append(Work(kind="elementwise", flops=0, bytes=size, dtype="fp32"))
        return parts

    def _forward_like(self, product: Product) -> list[Work]:
        dtype = "tf32" if self._float32 and not self._plain else self.dtype
        if self._plain:
            return [self._work("gemm", product, dtype)]
        if self._direct:
            return [self._work("conv_direct", product, dtype)]
        return [self._work("conv", product, dtype), *self._changes()]

    def backward(self, *, data: bool, weight: bool, bias: bool) -> list[Work]:
        parts: list[Work] = []
        if data:
            # With a stride, only some taps of an input position meet an output: as many operations
            # as forward.
            taps = self.taps * self.outputs / self.inputs
            product = Product(
                self.batch * self.inputs, self.channels_in, self.channels_out * taps, self.groups
            )
            parts += self._forward_like(product)
        if weight:
            parts += self._weight_gradient()
        if bias:
            parts.append(bias_gradient(self.output_bytes))
        return parts

    def _weight_gradient(self) -> list[Work]:
        """A sum over all positions; odd channels are padded, so it runs on tensor cores."""
        product = Product(
            self.channels_out, self.channels_in * self.taps, self.batch * self.outputs, self.groups
        )
        dtype = "tf32" if self._float32 else self.dtype
        if self._direct and not self._plain and self.channels_out >= self.channels_in:
            return [self._work("conv_direct", product, dtype)]
        return [self._work("conv_weight", product, dtype), *self._changes()]

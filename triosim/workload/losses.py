"""Cross-entropy on a rank's part of the vocabulary, as DTensor computes it: a kernel per step."""

from __future__ import annotations

from triosim.workload.functions import pointwise
from triosim.workload.tape import FP32_BYTES, Tape, Value


def parallel_cross_entropy(t: Tape, logits: Value, targets: Value) -> Value:
    """Maximum, differences, exponentials, their sum, logarithms, which are kept.

    Ranks exchange three numbers per token: maximum, sum and the target's logarithm. Backward fills
    a tensor with zeros but for the targets, adds the exponentials to it and multiplies.
    """
    rows = t.sized((logits.numel // logits.shape[-1],), FP32_BYTES)
    shifted, power, logs = (t.new(logits.shape, like=logits) for _ in range(3))
    loss = t.new((), like=logits)
    t.start("cross_entropy_loss")
    pointwise(t, (logits,), rows, "reduction")
    t.communicate("all_reduce", "tp", rows.bytes, rows, rows)
    pointwise(t, (logits, rows), shifted)
    pointwise(t, (shifted,), power)
    pointwise(t, (power,), rows, "reduction")
    t.communicate("all_reduce", "tp", rows.bytes, rows, rows)
    pointwise(t, (shifted, rows), logs)
    t.communicate("all_reduce", "tp", rows.bytes, rows, rows)
    t.kernel("reduction", rows.numel, (rows, targets), (loss,))

    def backward(g: Value) -> None:
        chosen, power, total, back = (t.new(logits.shape, like=logits) for _ in range(4))
        pointwise(t, (), chosen)
        pointwise(t, (logs,), power)
        pointwise(t, (chosen, power), total)
        pointwise(t, (total, g), back)
        t.give(logits, back)

    t.done(loss, node="NllLoss", backward=backward, saves=(logs, targets))
    return loss

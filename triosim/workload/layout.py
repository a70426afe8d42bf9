"""How one rank's part of a layer is cut out of the whole.

Rules an operator can have:
    column      the output's features are divided (its input is whole)
    row         the input's features are divided; the outputs are parts of a sum
    heads       attention heads are divided
    vocab       rows of the embedding's table or columns of the head are divided
    expert      experts are divided over `ep`
    sequence    tokens are divided where sequence parallelism is on, else every rank does all
    replicated  every rank does all
Context parallelism divides the tokens of every operator; in attention only those of the queries.
"""

from __future__ import annotations

from dataclasses import dataclass

from triosim.errors import ConfigError
from triosim.workload.model import Transformer

SPLITS = ("column", "row", "heads", "vocab", "expert", "sequence", "replicated")


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Degrees of tensor, context and expert parallelism.

    `sequence_parallel` divides norms, dropout and residual sums by tokens (arXiv 2205.05198). A
    product then keeps its shard of the gathered input for backward and gathers it once more;
    `keep_gathered` keeps the whole instead. `loss_parallel` computes the loss on a rank's part of
    the vocabulary; without it the logits are gathered.
    """

    tp: int = 1
    cp: int = 1
    ep: int = 1
    sequence_parallel: bool = False
    keep_gathered: bool = False
    loss_parallel: bool = False

    def __post_init__(self) -> None:
        for name in ("tp", "cp", "ep"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(name, value, "must be a whole number from 1")

    def check(self, model: Transformer, seq: int) -> None:
        """Raise `ConfigError` where the model or the sequence cannot be divided so."""
        divide(self.tp, model.heads, "tp", "the heads")
        self.kv_heads(model)
        divide(self.tp, model.ffn, "tp", "the MLP's width")
        if model.experts:
            divide(self.ep, model.experts, "ep", "the experts")
            divide(self.tp, model.moe_ffn, "tp", "an expert's width")
        elif self.ep > 1:
            raise ConfigError("ep", self.ep, "must be 1, for the model has no experts")
        divide(self.cp, seq, "cp", "the sequence")
        if self.sequence_parallel:
            divide(self.tp, seq // self.cp, "tp", "the sequence of a rank")

    def kv_heads(self, model: Transformer) -> int:
        """Heads of keys and values on a rank: a head is copied where there are fewer than ranks."""
        if model.groups % self.tp and self.tp % model.groups:
            raise ConfigError(
                "tp", self.tp,
                f"must divide the {model.groups} KV heads, or they it; "
                f"{nearest(self.tp, model.groups)} would",
            )  # fmt: skip
        return max(1, model.groups // self.tp)


WHOLE = Layout()


def divide(ways: int, count: int, field: str, what: str) -> None:
    if count % ways:
        raise ConfigError(
            field, ways, f"must divide {what} ({count}); {nearest(ways, count)} would"
        )


def nearest(value: int, count: int) -> str:
    """The divisors of `count` below and above a value, for a sentence."""
    divisors = [d for d in range(1, count + 1) if count % d == 0]
    below = max((d for d in divisors if d < value), default=None)
    above = min((d for d in divisors if d > value), default=None)
    return " or ".join(str(d) for d in (below, above) if d is not None)

"""Errors of a source against what was asked for, as cards and as rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from dashboard.cards import Card
from triosim.figures.validation import signed
from triosim.validation import Source, summarise
from triosim.validation.tables import COUNTED

FEW = 3  # cards; more of them say enough
NAMES = {"time": "Step time", "memory": "Peak memory"}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A mean error, and what was asked for; limits are shares, None where nothing was asked."""

    quantity: str
    stack: str
    rows: int
    mean_error: float
    bias: float
    asked: float | None
    asked_bias: float | None

    @property
    def met(self) -> bool | None:
        """Whether the mean error is what was asked for."""
        return None if self.asked is None else bool(self.mean_error <= self.asked)

    @property
    def bias_met(self) -> bool | None:
        return None if self.asked_bias is None else bool(abs(self.bias) <= self.asked_bias)


def verdicts(source: Source, frame: pd.DataFrame) -> Iterator[Verdict]:
    """One for each quantity that was published and each stack that predicts it."""
    for found in summarise(frame).to_dict("records"):
        target = source.targets.get(found["quantity"])
        asked = None if target is None else getattr(target, found["stack"]) / 100
        # A bias was asked of the calibrated stack only, and of some sources.
        own = target is not None and found["stack"] == "calibrated" and target.bias > 0
        yield Verdict(
            quantity=found["quantity"],
            stack=found["stack"],
            rows=found["rows"],
            mean_error=found["mean_error"],
            bias=found["bias"],
            asked=asked,
            asked_bias=target.bias / 100 if target is not None and own else None,
        )


def cards(source: Source, frame: pd.DataFrame, complete: bool) -> list[Card]:
    """A card for each verdict: the mean error, and beside it whether the target is met."""
    found = list(verdicts(source, frame))
    shown = [_card(source, frame, verdict, complete) for verdict in found]
    if 0 < len(found) < FEW:
        errors = _errors(frame, found[0]).abs()
        worst = frame.loc[errors.idxmax()]
        shown += [
            ("90th percentile", f"{errors.quantile(0.9) * 100:.1f} %", "of the absolute errors"),
            (
                "Largest error",
                signed(_errors(frame, found[0])[errors.idxmax()]),
                f"row {worst['row']}; {len(frame):,} runs shown, {len(errors):,} counted",
            ),
        ]
    return shown


def _card(source: Source, frame: pd.DataFrame, verdict: Verdict, complete: bool) -> Card:
    stack = f", {verdict.stack}" if source.kind == "train" else ""
    asked = "" if verdict.asked is None else f"asked for: {verdict.asked * 100:g} % or less"
    bias = f"bias {signed(verdict.bias)}"
    if verdict.asked_bias is not None:
        bias += f" (asked: \u00b1{verdict.asked_bias * 100:g} %)"
    if complete:
        asked += _said(verdict.met)
        bias += _said(verdict.bias_met)
    runs = f"{verdict.rows:,} runs" + ("" if complete else " so far")
    near = f"{_within(frame, verdict, 0.1)} of {runs} within 10 %"
    return (
        f"{NAMES[verdict.quantity]}{stack}",
        f"{verdict.mean_error * 100:.1f} %",
        "  \n".join(line for line in (asked, bias, near) if line),
    )


def _said(met: bool | None) -> str:
    return {None: "", True: ": :green[**met**]", False: ": :red[**not met**]"}[met]


def in_words(met: bool | None) -> str:
    """Met or not met, without colour."""
    return {None: "", True: "met", False: "not met"}[met]


def _within(frame: pd.DataFrame, verdict: Verdict, share: float) -> str:
    return f"{int((_errors(frame, verdict).abs() <= share).sum()):,}"


def _errors(frame: pd.DataFrame, verdict: Verdict) -> pd.Series:
    """Signed errors of the runs that count."""
    counted = frame[frame["status"].isin(COUNTED)]
    return counted[f"{verdict.stack}_{verdict.quantity}_error"].dropna()

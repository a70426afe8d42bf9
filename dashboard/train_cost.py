"""The tab Whole run of the page Train: days, cost and energy of a run over so many tokens."""

from __future__ import annotations

import streamlit as st

from dashboard.bound import number
from dashboard.cards import show_cards
from dashboard.numbers import say_refused
from dashboard.plain import plain
from dashboard.train_settings import SETTINGS
from triosim.errors import counted
from triosim.figures.text import digits
from triosim.train import TrainResult
from triosim.train.cost import RunCost
from triosim.workload import count_parameters

BILLION = 1e9
# Hoffmann et al. 2022, arXiv 2203.15556: compute is spent best on about so many.
TOKENS_PER_PARAMETER = 20


def run_tab(result: TrainResult) -> None:
    """How long, how much, and what it draws; at the speed of the simulated step."""
    if result.scenario.prefill:
        st.info("A prefill trains nothing: switch it off for a whole run.")
        return
    if not result.plan.in_tokens:
        st.info("This recorded step does not say how many tokens a sample has.")
        return
    optimum = _optimum(result)
    left, right, _ = st.columns([0.3, 0.3, 0.4])
    with left:
        typed = number(
            SETTINGS["tokens"],
            step=100,
            placeholder="needed" if optimum is None else f"{optimum / BILLION:,.4g}",
            help=f"Empty: {TOKENS_PER_PARAMETER} for each parameter, with which a budget of "
            "compute is spent best (Hoffmann et al. 2022, arXiv 2203.15556).",
        )
        say_refused("tokens")
    with right:
        price = number(
            SETTINGS["price"], step=0.5, placeholder="none",
            help="In any currency; the cost is in the same one.",
        )  # fmt: skip
        say_refused("price")
    tokens = optimum if typed is None else typed * BILLION
    if tokens is None:
        st.info("Type how many tokens the run has.")
        return
    _show(result, result.run_cost(tokens, price))


def _optimum(result: TrainResult) -> float | None:
    """So many tokens for each parameter; a recorded step does not say what it holds."""
    if result.scenario.trace_dir is not None:
        return None
    return float(TOKENS_PER_PARAMETER * count_parameters(result.plan.model).total)


def _show(result: TrainResult, run: RunCost) -> None:
    gpu, gpus = result.plan.gpu, result.scenario.gpus
    show_cards(
        (
            (
                "Duration",
                _duration(run.days),
                f"{run.steps:,.0f} steps of {result.tokens:,} tokens, without failures and "
                "checkpoints",
            ),
            ("GPU hours", f"{run.gpu_hours:,.0f}", f"on {counted(gpus, 'GPU')}"),
            (
                "Cost",
                "n/a" if run.cost is None else f"{run.cost:,.0f}",
                "type a price of a GPU hour" if run.cost is None else _per_tokens(run),
            ),
            (
                "Energy of the GPUs",
                _energy(run.energy_kwh),
                f"at {gpu.power_w:,.0f} W each, their rated power; hosts and cooling are not in it",
            ),
        ),
        key="_run",
    )
    st.caption(f"Power: {plain(run.power_source)}. {_budget(result, run)}")


def _duration(days: float) -> str:
    return f"{days:,.1f} days" if days >= 2 else f"{days * 24:,.2f} hours"


def _energy(kwh: float) -> str:
    return f"{kwh / 1e3:,.1f} MWh" if kwh >= 1e4 else f"{digits(kwh)} kWh"


def _per_tokens(run: RunCost) -> str:
    assert run.cost is not None
    return f"{run.cost / run.tokens * BILLION:,.2f} for a billion tokens"


def _budget(result: TrainResult, run: RunCost) -> str:
    flops = result.model_flops * run.steps
    return f"Model FLOPs of the run: {flops:.3g}." if flops else ""

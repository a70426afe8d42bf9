"""The four pictures of the mesh lab."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import pandas as pd
import streamlit as st

from dashboard.cards import show_cards
from dashboard.lab.desk import Desk
from dashboard.lab.mesh_placed import drawn, mesh_of, placed, ranges_table, shape_of, times
from dashboard.plain import plain
from triosim.collective import collective
from triosim.errors import counted
from triosim.figures.text import bytes_text, time_text
from triosim.mesh import (
    PRESETS,
    DeviceMesh,
    Preset,
    Step,
    format_placements,
    local_shapes,
    matmul_plan,
    matmul_strategies,
    preset,
    redistribute,
)
from triosim.mesh.matmul import RULES
from triosim.mesh.presets import ELEMENT_BYTES

CHECK = ":material/check_circle:"
TITLES = {one.name: one.title for one in PRESETS}
NAMES = {title: name for name, title in TITLES.items()}


def holds(desk: Desk) -> None:
    """A tensor on the mesh."""
    mesh, shape = mesh_of(desk), shape_of(desk)
    placements = placed(desk, mesh, "p")
    sizes = local_shapes(shape, mesh, placements).prod(axis=-1)
    empty = int((sizes == 0).sum())
    show_cards(
        (
            ("Ranks", f"{mesh.size:,}", f"a mesh of {times(mesh.shape)}"),
            ("Placements", f"[{format_placements(placements)}]", f"of a tensor {times(shape)}"),
            ("Most on a rank", f"{sizes.max():,}", f"of {counted(prod(shape), 'element')}"),
            ("Least on a rank", f"{sizes.min():,}", "elements"),
            ("Hold nothing", f"{empty:,}", "of the ranks"),
        )
    )
    drawn(desk, mesh, shape, placements, "tensor")
    ranges_table(mesh, shape, placements)


def change(desk: Desk) -> None:
    """Before, the collectives, and after."""
    mesh, shape = mesh_of(desk), shape_of(desk)
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("**Before**")
        before = placed(desk, mesh, "p")
    with right:
        st.markdown("**After**")
        after = placed(desk, mesh, "t")
    element_bytes = round(desk.values["element_mb"] * 1e6)
    steps = redistribute(shape, element_bytes, mesh, before, after)
    _cost(steps, desk.values["gb_per_s"])
    with left:
        drawn(desk, mesh, shape, before, "before")
    with right:
        drawn(desk, mesh, shape, after, "after")


def _cost(steps: Sequence[Step], gb_per_s: float) -> None:
    """What is sent, step by step."""
    if not steps:
        st.info("Both are the same layout: nothing is sent.")
        return
    times = [step_ms(step, gb_per_s) for step in steps]
    sent = sum(step.sent_bytes for step in steps)
    names = [step.operation for step in steps if step.sends]
    show_cards(
        (
            ("Collectives", ", ".join(names) or "none", f"{counted(len(steps), 'step')}"),
            ("A rank sends", bytes_text(sent), "on rings, at most"),
            ("Time", time_text(sum(times)), f"at {gb_per_s:g} GB/s, one step after the other"),
        ),
        "change",
    )
    st.dataframe(_steps_table(steps, times), hide_index=True)


def _steps_table(steps: Sequence[Step], times: Sequence[float]) -> pd.DataFrame:
    rows = []
    for number, (step, ms) in enumerate(zip(steps, times, strict=True), 1):
        rows.append(
            {
                "step": number,
                "what": step.operation,
                "along": f"{step.axis} ({step.group_size} ranks)",
                "placement": f"{step.before} \u2192 {step.after}",
                "array of a group": bytes_text(step.array_bytes) if step.sends else "",
                "padding": bytes_text(step.padding_bytes) if step.padding_bytes else "",
                "a rank sends": bytes_text(step.sent_bytes) if step.sends else "nothing",
                "time": time_text(ms) if step.sends else "",
                "then": f"[{format_placements(step.placements)}]",
            }
        )
    return pd.DataFrame(rows)


def step_ms(step: Step, gb_per_s: float) -> float:
    """A step's collective by the engine; an all-to-all goes directly, the others on a ring."""
    if not step.sends:
        return 0.0
    return collective(
        step.operation,
        size_bytes=step.array_bytes,
        ranks=step.group_size,
        algorithm="direct" if step.operation == "all-to-all" else "ring",
        link_gb_per_s=gb_per_s,
    ).time_ms


def product(desk: Desk) -> None:
    """A @ B: what the inputs' placements make of the output, or what has to be sent before."""
    mesh = mesh_of(desk)
    rows, inner = desk.count("rows"), desk.count("columns")
    shapes = (rows, inner), (inner, rows)
    left, middle, right = st.columns(3, gap="large")
    with left:
        st.markdown(f"**A**, {times(shapes[0])}")
        a = placed(desk, mesh, "p", across=1)
    with middle:
        st.markdown(f"**B**, {times(shapes[1])}")
        b = placed(desk, mesh, "b", across=1)
    size = round(desk.values["element_mb"] * 1e6)
    plan = matmul_plan(*shapes, mesh, a, b, element_bytes=size)
    with left:
        drawn(desk, mesh, shapes[0], plan.a, "a")
    with middle:
        drawn(desk, mesh, shapes[1], plan.b, "b")
    with right:
        st.markdown(f"**A @ B**, {times((rows, rows))}")
        st.markdown(plain(f"[{format_placements(plan.out)}]"))
        drawn(desk, mesh, (rows, rows), plan.out, "product")
    if plan.direct:
        st.success("Nothing is sent: every rank multiplies what it has.", icon=CHECK)
    else:
        st.warning(
            plain(
                "No rule fits, so torch moves inputs first (drawn as they then are): "
                f"A [{format_placements(a)}] to [{format_placements(plan.a)}], "
                f"B [{format_placements(b)}] to [{format_placements(plan.b)}]."
            ),
            icon=":material/sync_alt:",
        )
        _cost((*plan.a_steps, *plan.b_steps), desk.values["gb_per_s"])
    _rules(mesh, shapes)


def _rules(mesh: DeviceMesh, shapes: tuple[tuple[int, int], tuple[int, int]]) -> None:
    """On each axis of the mesh one of these has to hold."""
    table = pd.DataFrame(
        {
            "A": [str(rule.a) for rule in RULES],
            "B": [str(rule.b) for rule in RULES],
            "output": [str(rule.out) for rule in RULES],
            "why": [rule.why for rule in RULES],
        }
    )
    for name, size in zip(mesh.names, mesh.shape, strict=True):
        legal = matmul_strategies(*shapes, size)
        table[f"{name} ({size})"] = ["yes" if rule in legal else "too short" for rule in RULES]
    with st.container(key="table_rules"):
        st.markdown("**Legal placements of A @ B on a dimension of the mesh**")
        st.dataframe(table, hide_index=True)


def ready(desk: Desk) -> None:
    """One of the layouts that training uses most."""
    shown = preset(NAMES[desk.choice("layout", width=420)])
    st.markdown(plain(f"{shown.idea} Mesh: {shown.mesh!r}."))
    columns = st.columns(len(shown.tensors), gap="medium")
    for tensor, column in zip(shown.tensors, columns, strict=True):
        with column:
            placed = plain(f"[{format_placements(tensor.placements)}]")
            st.markdown(f"**{tensor.name}** {times(tensor.shape)}, {placed}")
            drawn(desk, shown.mesh, tensor.shape, tensor.placements, tensor.name)
            st.caption(plain(tensor.note))
    with st.container(key="table_sent"):
        st.markdown("**What is sent in a step**")
        st.dataframe(_events(shown), hide_index=True)
        st.caption("The sliders of mesh and tensor do not change these five.")


def _events(shown: Preset) -> pd.DataFrame:
    rows = []
    for event in shown.events:
        sending = [step for step in event.steps(shown.mesh) if step.sends]
        share = sum(step.sent_bytes for step in sending) / (ELEMENT_BYTES * prod(event.shape))
        rows.append(
            {
                "when": event.when,
                "tensor": event.tensor,
                "before": format_placements(event.before),
                "after": format_placements(event.after),
                "collective": ", ".join(step.operation for step in sending) or "nothing",
                "along": ", ".join(dict.fromkeys(step.axis for step in sending)),
                "a rank sends, of the tensor": f"{share:.3g}\u00d7" if sending else "",
            }
        )
    return pd.DataFrame(rows)

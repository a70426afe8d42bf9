"""The part of the sidebar of the page Train that says what is trained."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from dashboard import train_configs
from dashboard.address import set_all
from dashboard.bound import BOUND
from dashboard.folded import folded
from dashboard.links import shipped_traces
from dashboard.plain import plain
from dashboard.traces_store import label_of, uploads
from dashboard.train_controls import Controls
from dashboard.train_settings import (
    CONFIG,
    NEEDED,
    SETTINGS,
    SIZES,
    TRACE,
    TYPED,
)
from dashboard.train_values import model_scenario
from triosim.errors import ConfigError, TrioSimError, counted
from triosim.train import TrainScenario
from triosim.workload import Transformer, count_parameters

_ROWS = (
    ("layers", "hidden"), ("heads", "kv_heads"), ("head_dim", "ffn"), ("vocab",), ("gated",),
    ("tied",), ("experts", "top_k"), ("shared_experts", "expert_ffn"),
)  # fmt: skip
# What a model typed in has where nothing is typed.
_ABSENT: Mapping[str, str] = {
    "kv_heads": "as heads", "head_dim": "hidden / heads", "experts": "0", "top_k": "0",
    "shared_experts": "0", "expert_ffn": "as the MLP", "seq_len": "8192",
}  # fmt: skip
_PARTS: Mapping[str, str] = {"head_dim": "width", "kv_heads": "groups", "expert_ffn": "moe_ffn"}


def choose_model(controls: Controls) -> None:
    """Where the model is from, and which one; then its sizes, folded unless they are typed in."""
    controls.choice("origin", on_change=_from_another)
    origin = controls.values["origin"]
    controls.choice("model")
    if origin == CONFIG:
        _config(controls)
    if origin == TRACE:
        _recorded(controls)
        return
    base = _base(controls)
    if origin == TYPED:
        _sizes(controls, base)
    else:
        sizes = [SETTINGS[name] for name in SIZES]
        folded("Change its sizes", sizes, lambda: _sizes(controls, base))
    _caption(controls)


def sequence_placeholder(controls: Controls) -> str:
    """What an empty sequence stands for."""
    if not controls.matters("seq"):
        return ""
    try:
        return str(model_scenario(controls.known).sequence)
    except TrioSimError:
        return _ABSENT["seq_len"]


def _base(controls: Controls) -> Transformer | None:
    """The model without what is typed over it; None for one of one's own, and for a wrong one."""
    if controls.values["origin"] == TYPED:
        return None
    try:
        return model_scenario(controls.known, sizes=False).transformer()
    except TrioSimError:
        return None


def _sizes(controls: Controls, base: Transformer | None) -> None:
    for names in _ROWS:
        controls.row(
            names,
            **{
                name: {"placeholder": _placeholder(name, base)}
                for name in names
                if SETTINGS[name].kind == "whole"
            },
        )


def _placeholder(name: str, base: Transformer | None) -> str:
    if base is None:
        return "needed" if name in NEEDED else _ABSENT[name]
    return str(getattr(base, _PARTS.get(name, name)))


def _caption(controls: Controls) -> None:
    """How large the model is; nothing where the sizes do not make one."""
    try:
        model = model_scenario(controls.known).transformer()
    except TrioSimError:
        return
    total = count_parameters(model).total
    st.caption(f"{total / 1e9:,.4g} B parameters, {counted(model.layers, 'layer')}")


def _from_another() -> None:
    """Sizes that are not typed in yet begin with those of the model that was chosen before."""
    if st.session_state["origin"] != TYPED or all(st.session_state.get(n) for n in NEEDED):
        return
    try:
        model = TrainScenario(model=st.session_state.get("model")).transformer()
    except TrioSimError:
        return
    empty = {
        name: value
        for name, value in typed_sizes(model).items()
        if st.session_state.get(name) in (None, SETTINGS[name].default)
    }
    set_all(empty, SETTINGS)


def typed_sizes(model: Transformer) -> dict[str, Any]:
    """A model as the fields for sizes say it, as far as they can."""
    values: dict[str, Any] = {
        name: getattr(model, name) or None for name in SIZES if SETTINGS[name].kind == "whole"
    }
    for name in ("gated", "tied"):
        values[name] = "yes" if getattr(model, name) else "no"
    return values


def _config(controls: Controls) -> None:
    """A file for a model of Hugging Face, and those that this session has brought along."""
    st.file_uploader(
        "A config.json of Hugging Face", type=["json"], key="config_file", max_upload_size=1,
        on_change=_upload,
    )  # fmt: skip
    refused = st.session_state.pop("config_refused", None)
    if refused:
        st.error(plain(refused))
    chosen = _chosen(controls, "config", list(train_configs.configs()))
    if chosen is not None:
        st.caption(f"Yours: {plain(train_configs.label_of(chosen))}")


def _upload() -> None:
    """Take over an uploaded file, or note what is wrong with it."""
    file = st.session_state.get("config_file")
    if file is None:
        return
    try:
        st.session_state["config"] = train_configs.keep(file.getvalue())
    except ConfigError as error:
        where = "" if error.field == train_configs.FILE else f"{train_configs.FILE}, "
        st.session_state["config_refused"] = error.named(f"{where}{error.field}")


def _recorded(controls: Controls) -> None:
    """A recorded step: one that is shipped, or one of this session's uploads."""
    chosen = _chosen(controls, "recorded", [*shipped_traces(), *uploads()])
    yours = f"Yours: {plain(label_of(chosen))}. " if chosen in uploads() else ""
    st.caption(
        f"{yours}"
        "Its layers are found by module path. Times are the trace's, on the chosen GPU where it "
        "says which one it was taken on."
    )
    st.page_link("pages/traces.py", label="Upload a trace of your own", icon=":material/upload:")


def _chosen(controls: Controls, name: str, options: list[str]) -> str | None:
    """One of some names, of which none may be chosen; the address has what the page shows."""
    if st.session_state.get(name) not in (None, *options):
        st.session_state[name] = None
    chosen = st.selectbox(
        SETTINGS[name].label,
        options,
        index=None,
        key=name,
        placeholder="choose one" if options else "none yet",
        disabled=not options,
        **BOUND,
    )
    controls.put(name, chosen)
    return chosen

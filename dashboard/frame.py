"""Parameters of the address that belong to no page: who shows which step of which preset.

`present=1` is an instructor's screen, `preset=NAME` the class that a session is in, and `slide=3`
the step of the preset that is shown. A session keeps them while it goes from page to page, because
moving on leaves the address bare.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from dashboard.seminar.library import library
from dashboard.seminar.presets import MAX_STEPS, Preset
from triosim.errors import ConfigError


def _present(text: str) -> bool:
    if text not in ("0", "1"):
        raise ConfigError("present", text or "(empty)", "must be 1, or absent")
    return text == "1"


def _preset(text: str) -> str:
    known = library().presets()
    if text not in known:
        raise ConfigError("preset", text or "(empty)", f"must be one of {', '.join(known)}")
    return text


def _slide(text: str) -> int:
    found = followed()
    last = len(found.steps) if found is not None else MAX_STEPS
    if not re.fullmatch(r"[1-9]\d{0,2}", text, re.ASCII) or int(text) > last:
        raise ConfigError("slide", text or "(empty)", f"must be a step from 1 to {last}")
    return int(text)


FRAME: Mapping[str, Callable[[str], bool | str | int]] = {
    "present": _present, "preset": _preset, "slide": _slide,
}  # fmt: skip


def frame_value(name: str, texts: Sequence[str]) -> bool | str | int:
    """One of these parameters, read; raises `ConfigError`."""
    if len(texts) != 1:
        said = " and ".join(texts) or "(empty)"
        raise ConfigError(name, said, "a setting has one value")
    return FRAME[name](texts[0])


def remember() -> None:
    """Keep what the address says and is legal; pages say what is not."""
    for name, read in FRAME.items():
        if name in st.query_params:
            try:
                st.session_state[f"frame_{name}"] = read(st.query_params[name])
            except ConfigError:
                continue


def presenting() -> bool:
    """Whether this is an instructor's screen."""
    remember()
    return bool(st.session_state.get("frame_present"))


def preset() -> str:
    """The preset whose class this session is in; empty outside a class."""
    remember()
    name: str = st.session_state.get("frame_preset", "")
    return name


def slide() -> int:
    """The step of the preset that is shown, from 1; 0 for none."""
    remember()
    number: int = st.session_state.get("frame_slide", 0)
    return number


def current() -> Preset | None:
    """The preset that is presented or followed."""
    remember()
    return followed()


def followed() -> Preset | None:
    """The same, as it was last read from the address."""
    return library().presets().get(st.session_state.get("frame_preset", ""))


def leave() -> None:
    """In a callback: no longer an instructor's screen, and in no class."""
    for name in FRAME:
        st.session_state.pop(f"frame_{name}", None)
        st.query_params.pop(name, None)

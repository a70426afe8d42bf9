"""The presets of this server by name: those found in `presets/` at start, and uploaded ones.

A name is one preset's, for every session: a class's answers are counted by it, and students open
what their instructor has uploaded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import Lock

import streamlit as st

from dashboard.seminar.presets import Preset, read_folder
from triosim.errors import ConfigError

MAX_UPLOADS = 64


class Library:
    """Presets of all sessions; every method may be called from any thread.

    `wrong` are sentences on shipped files that are no presets.
    """

    def __init__(self, shipped: Mapping[str, Preset], wrong: Sequence[str] = ()) -> None:
        self.shipped, self.wrong = shipped, tuple(wrong)
        self._lock = Lock()
        self._uploads: OrderedDict[str, Preset] = OrderedDict()

    def presets(self) -> Mapping[str, Preset]:
        with self._lock:
            return {**self.shipped, **self._uploads}

    def add(self, found: Preset) -> None:
        """Keep an upload; the oldest goes where there are too many.

        Raises `ConfigError` where another preset has its name.
        """
        with self._lock:
            known = self.shipped.get(found.name) or self._uploads.get(found.name)
            if known not in (None, found):
                legal = "must not be the name of another preset; call the file something else"
                raise ConfigError("name", found.name, legal)
            if known is None:
                self._uploads[found.name] = found
                while len(self._uploads) > MAX_UPLOADS:
                    self._uploads.popitem(last=False)


@st.cache_resource(max_entries=1, show_spinner=False)
def library() -> Library:
    """The server's."""
    return Library(*read_folder())

"""Uploaded traces: whose they are, and the folders that the engine reads them from.

A session has its own uploads and sees no other's. What the engine needs as a folder lies in a
temporary folder of the server's, under the digest of what was uploaded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from threading import Lock
from weakref import finalize

import streamlit as st

from dashboard.traces_read import Files, Reading
from triosim.errors import ConfigError
from triosim.scenario import SAMPLE_TRACES

PREFIX = "upload-"
DIGITS = 12
MAX_UPLOADS = 4  # of one session
MAX_FOLDERS = 24  # of all sessions
MAX_STORED = 512 * 2**20  # bytes
# Found once: what a link or a browser says is looked up here, and never part of a path.
SHIPPED = {file.parent.name: file.parent for file in sorted(SAMPLE_TRACES.glob("*/trace.csv"))}


@dataclass(frozen=True, kw_only=True, slots=True)
class Upload:
    """A trace that a session has brought along; `label` is what its owner calls it."""

    digest: str
    label: str
    reading: Reading

    @property
    def name(self) -> str:
        """As addresses and lists call it."""
        return name_of(self.digest)


def name_of(digest: str) -> str:
    return PREFIX + digest[:DIGITS]


def is_upload(name: str) -> bool:
    """Whether an address means an uploaded trace."""
    digest = name.removeprefix(PREFIX)
    return name != digest and len(digest) == DIGITS and set(digest) <= set("0123456789abcdef")


def digest_of(uploaded: Files, step: int | None) -> str:
    """The same for the same contents (and step), whatever the files are called."""
    parts = sorted(sha256(data).hexdigest() for _, data in uploaded)
    if step is not None:
        parts.append(f"step {step}")
    return sha256("\n".join(parts).encode()).hexdigest()


def uploads() -> dict[str, Upload]:
    """This session's uploads by name, the latest last."""
    return st.session_state.setdefault("uploads", {})


def label_of(name: str) -> str:
    """What a trace is called: an upload as its owner calls it."""
    upload = uploads().get(name)
    return name if upload is None else upload.label


def keep(upload: Upload) -> None:
    """Add an upload to this session; the oldest go where there are too many."""
    mine = uploads()
    mine.pop(upload.name, None)
    mine[upload.name] = upload
    while len(mine) > MAX_UPLOADS:
        del mine[next(iter(mine))]


def folder_of(name: str) -> Path:
    """The folder of a trace: a shipped one, or one that this session has uploaded.

    Raises `ConfigError` where there is none of that name.
    """
    if not is_upload(name):
        if name not in SHIPPED:
            raise ConfigError("trace_dir", name, f"must be one of {', '.join(SHIPPED)}")
        return SHIPPED[name]
    upload = uploads().get(name)
    if upload is None:
        raise ConfigError("trace_dir", name, absent(name))
    return shared_store().folder(upload.digest, name, upload.reading.files)


def absent(name: str) -> str:
    """What to say where a session lacks an upload."""
    return (
        "this trace was uploaded elsewhere; upload the file with the digest "
        f"{name.removeprefix(PREFIX)} on the page Traces"
    )


class Store:
    """Trace folders under the digests of their uploads; those unused for longest go first."""

    def __init__(self) -> None:
        self.root = Path(mkdtemp(prefix="triosim-uploads-"))  # nobody else may read it
        finalize(self, rmtree, self.root, ignore_errors=True)
        self._lock = Lock()
        self._sizes: OrderedDict[str, int] = OrderedDict()

    def folder(self, digest: str, name: str, files: Mapping[str, bytes]) -> Path:
        """The folder with these files, written if it is not there."""
        folder = self.root / digest / name
        with self._lock:
            if not all((folder / file).exists() for file in files):
                folder.mkdir(parents=True, exist_ok=True)
                for file, data in files.items():
                    (folder / file).write_bytes(data)
            self._sizes[digest] = sum(map(len, files.values()))
            self._sizes.move_to_end(digest)
            for old in self._surplus():
                rmtree(self.root / old, ignore_errors=True)
        return folder

    def _surplus(self) -> Sequence[str]:
        gone = []
        while len(self._sizes) > MAX_FOLDERS or (
            len(self._sizes) > 1 and sum(self._sizes.values()) > MAX_STORED
        ):
            gone.append(self._sizes.popitem(last=False)[0])
        return gone


@st.cache_resource(max_entries=1, show_spinner=False)
def shared_store() -> Store:
    """The server's folders; they go when the server does."""
    return Store()

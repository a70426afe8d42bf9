"""A password for a whole class, asked before anything of a page is run or drawn.

Set TRIOSIM_PASSWORD_FILE (a file with the password) or TRIOSIM_PASSWORD; without either, every
visitor may enter. A session that has given it stays admitted until it ends. Wrong passwords are
limited per address and over all addresses, and while they are, right ones are not looked at.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import os
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import streamlit as st

VARIABLE = "TRIOSIM_PASSWORD"
FILE_VARIABLE = "TRIOSIM_PASSWORD_FILE"
LONGEST = 200  # characters
# A class behind one address may mistype this often; a dictionary would take years.
WINDOW_S = 60.0
WRONG_PER_CLIENT = 10
WRONG_OF_ALL = 60
MAX_CLIENTS = 1024
ADMITTED = "admitted"
FIELD = "class_password"


class NoPasswordError(Exception):
    """A password was asked for, and there is none to compare with."""


def password_digest() -> bytes | None:
    """SHA-256 of the password that the environment names; None where it names none.

    Raises `NoPasswordError` for an empty one and a file that cannot be read: the door stays shut.
    """
    name, text = VARIABLE, os.environ.get(VARIABLE)
    if FILE_VARIABLE in os.environ:
        name = FILE_VARIABLE
        try:
            text = Path(os.environ[FILE_VARIABLE]).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError):
            raise NoPasswordError(f"the file that {name} names cannot be read as text") from None
    if text is None:
        return None
    if not 0 < len(text) <= LONGEST:
        raise NoPasswordError(f"{name} must give 1 to {LONGEST} characters")
    return _digest(text)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


@dataclass(eq=False)
class Limit:
    """Wrong passwords of the last minute, by client and of all."""

    now_s: Callable[[], float] = time.monotonic
    _all: deque[float] = field(default_factory=lambda: deque(maxlen=WRONG_OF_ALL))
    _by_client: OrderedDict[str, deque[float]] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def wait_s(self, client: str) -> float:
        """How long until this client may try again; 0 for now."""
        with self._lock:
            return self._wait_s(client)

    def _wait_s(self, client: str) -> float:
        counted = [self._all, *filter(None, [self._by_client.get(client)])]
        full = [tries[0] for tries in counted if len(tries) == tries.maxlen]
        return max([0.0, *(first + WINDOW_S - self.now_s() for first in full)])

    def try_password(self, client: str, given: str, wanted: bytes) -> bool:
        """Whether it is right; one that comes while the client has to wait is not looked at."""
        with self._lock:  # or many at once would all come before the first has been counted
            if self._wait_s(client) > 0:
                return False
            if hmac.compare_digest(_digest(given), wanted):
                return True
            own = self._by_client.setdefault(client, deque(maxlen=WRONG_PER_CLIENT))
            self._by_client.move_to_end(client)
            for tries in (own, self._all):
                tries.append(self.now_s())
            while len(self._by_client) > MAX_CLIENTS:
                self._by_client.popitem(last=False)
            return False


def client_of(address: str | None) -> str:
    """Whom an address stands for: a household of IPv6 addresses is one client."""
    try:
        ip = ipaddress.ip_address(address or "")
    except ValueError:
        return "this machine"
    if ip.version == 6:
        return str(ipaddress.ip_network((ip, 64), strict=False))
    return str(ip)


@st.cache_resource(max_entries=1, show_spinner=False)
def shared_limit() -> Limit:
    """The server's."""
    return Limit()


def admitted() -> bool:
    """Whether this session may see the pages."""
    if st.session_state.get(ADMITTED):
        return True
    try:
        return password_digest() is None
    except NoPasswordError:
        return False


def door() -> None:
    """What a visitor sees who has not been admitted: a field for the password."""
    try:
        wanted = password_digest()
    except NoPasswordError as error:
        st.error(f"This server lets nobody in: {error}.")
        return
    if wanted is None:
        return
    with st.container(width=420):
        with st.form("door"):
            st.subheader("TrioSim", anchor=False)
            given = st.text_input(
                "Password of the class",
                type="password",
                key=FIELD,
                max_chars=LONGEST,
                autocomplete="current-password",
            )
            pressed = st.form_submit_button("Enter")
        if pressed:
            _answer(given, wanted)


def _answer(given: str, wanted: bytes) -> None:
    limit, client = shared_limit(), client_of(st.context.ip_address)
    if limit.try_password(client, given, wanted):
        st.session_state[ADMITTED] = True
        st.rerun()
    wait_s = math.ceil(limit.wait_s(client))
    if wait_s:
        st.error(f"Too many wrong passwords: the next one is looked at in {wait_s} s.")
    else:
        st.error("That is not the password of the class.")

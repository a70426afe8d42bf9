"""A Chromium whose pages run as a visitor's do.

Playwright lets V8 note the stack of everything that a script throws and catches; for that V8 reads
Plotly's 4.7 MB again, four times, which makes a first chart 0.9 s late. Here the same protocol is
spoken without that.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from websockets.sync.client import ClientConnection, connect

START_S, POLL_S = 60.0, 0.05


class Target:
    """Something that commands can be sent to: the browser, or a tab."""

    def __init__(self, url: str) -> None:
        self._socket: ClientConnection = connect(url, max_size=None)
        self._numbers = itertools.count(1)

    def call(self, method: str, **parameters: Any) -> Any:
        """Send a command and wait for its answer."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self._socket.recv())
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def value(self, script: str) -> Any:
        """What an expression is in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        return answer["result"].get("value")

    def wait_for(self, script: str, most_s: float) -> None:
        """Until an expression is true."""
        end = time.monotonic() + most_s
        while not self.value(script):
            if time.monotonic() > end:
                raise RuntimeError(f"not within {most_s:g} s: {script}")
            time.sleep(POLL_S)

    def close(self) -> None:
        self._socket.close()


class Chromium:
    """A running browser with a profile of its own."""

    def __init__(self, host: str, path: str, size: tuple[int, int]) -> None:
        self._host, self._size = host, size
        self._browser = Target(f"ws://{host}{path}")

    @contextmanager
    def tab(self, first_script: str, *, cold: bool) -> Iterator[Target]:
        """An empty tab, where a script runs before each page's own; a cold one shares no cache."""
        own = self._browser.call("Target.createBrowserContext") if cold else {}
        found = self._browser.call("Target.createTarget", url="about:blank", **own)
        target = Target(f"ws://{self._host}/devtools/page/{found['targetId']}")
        try:
            width, height = self._size
            target.call(
                "Emulation.setDeviceMetricsOverride",
                width=width, height=height, deviceScaleFactor=1, mobile=False,
            )  # fmt: skip
            target.call("Page.enable")
            target.call("Page.addScriptToEvaluateOnNewDocument", source=first_script)
            yield target
        finally:
            target.close()
            self._browser.call("Target.closeTarget", targetId=found["targetId"])
            if own:
                self._browser.call("Target.disposeBrowserContext", **own)

    def close(self) -> None:
        self._browser.close()


@contextmanager
def running(program: str, arguments: Sequence[str], size: tuple[int, int]) -> Iterator[Chromium]:
    """Start a browser, and end it."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [program, "--headless=new", "--no-first-run", "--remote-debugging-port=0",
             f"--user-data-dir={profile}", *arguments],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            chromium = Chromium(*_door(Path(profile) / "DevToolsActivePort", process), size)
            yield chromium
            chromium.close()
        finally:
            process.terminate()
            process.wait(20)


def _door(file: Path, process: subprocess.Popen[bytes]) -> tuple[str, str]:
    """Host and path where the browser takes commands."""
    end = time.monotonic() + START_S
    while not (file.exists() and len(lines := file.read_text().splitlines()) == 2):
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError("Chromium did not start")
        time.sleep(POLL_S)
    port, path = lines
    return f"127.0.0.1:{port}", path

"""A class on one server: python -m benchmarks.class_load

Starts the dashboard; 40 websocket sessions on mixed pages each move a slider every 3 s for 5
minutes, and a real Chromium beside them waits for its picture. Prints exceptions, the time from a
move to the end of the script (late moves count from when they were due), CPU per move, memory of
the server and its workers, and its slope over the last 40 % of the run.

python -m benchmarks.class_load --sessions 8 --seconds 30 --no-browser
python -m benchmarks.class_load --heavy                   # in the second half, one session more
python -m benchmarks.class_load --pages train --sessions 5  # what one page costs
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
from playwright.sync_api import sync_playwright

from benchmarks.serving import serving
from benchmarks.visitor import Trip, Visitor

ROOT = Path(__file__).resolve().parents[1]
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
# Where the time axis of the last chart ends, once Plotly has drawn it.
END_OF_AXIS = """() => {
  const drawn = [...document.querySelectorAll("[data-testid=stPlotlyChart] .js-plotly-plot")];
  return drawn.at(-1)?._fullLayout?.xaxis?.range[1];
}"""
SHOW_ME = "Show me"
SIMULATE_KEYS = ("ptp_bandwidth_gb_per_s_slider", "gpus_slider", "bandwidth_gb_per_s_slider")
ON_SIMULATE = dict.fromkeys(SIMULATE_KEYS, ())
ON_TRAIN = {"micro": (1, 2, 4), "seq": (2048, 4096, 8192), "train_window": (), "world": (8, 16, 32)}
TRIPS = (
    Trip(page="simulate", query="v=1&case=1", moves=ON_SIMULATE),
    Trip(page="train", moves=ON_TRAIN),
    Trip(page="lab_pipeline", press=SHOW_ME),
    Trip(page="network"),
    Trip(page="simulate", query="v=1&case=2", moves={**ON_SIMULATE, "window": ()}),
    Trip(page="lab_data_parallel", press=SHOW_ME),
    Trip(page="lab_fsdp", press=SHOW_ME),
    Trip(page="train", query="v=1&world=64&tp=8", moves=ON_TRAIN),
    Trip(page="lab_tensor", press=SHOW_ME),
    Trip(page="simulate", query="v=1&case=4&gpus=4", moves=ON_SIMULATE),
    Trip(page="lab_context", press=SHOW_ME),
    Trip(page="lab_recompute", press=SHOW_ME),
    Trip(page="network", query="v=1&show=Step+by+step"),
    Trip(page="lab_compile", press=SHOW_ME),
    Trip(page="lab_mesh", press=SHOW_ME),
    Trip(page="lab_llama", press=SHOW_ME),
)
# Near the most that the page lets through, and never the same twice.
HEAVY = Trip(page="simulate", query="v=1&case=2&gpus=128&fold=false", moves={SIMULATE_KEYS[0]: ()})
PERIOD_S = 3.0
SAMPLE_S = 5.0
LATE_S = 30.0  # after the last move was due, what is still to come counts as unanswered
LAST = 0.4  # of the run: memory must be flat there
MB = 1e6
# The targets: 95th percentiles, and memory.
SCRIPT_S, PICTURE_S, MOST_MB = 1.0, 2.0, 2000.0


@dataclass(frozen=True, kw_only=True)
class Move:
    """When it was due, from the start of the run, and how long after that the script had ended."""

    page: str
    at_s: float
    took_s: float


@dataclass
class Memory:
    """Proportional set sizes over time: shared pages are counted once."""

    at_s: list[float] = field(default_factory=list)
    server_bytes: list[int] = field(default_factory=list)
    workers_bytes: list[int] = field(default_factory=list)

    def sample(self, server: psutil.Process, at_s: float) -> None:
        self.at_s.append(at_s)
        self.server_bytes.append(_pss_bytes(server))
        self.workers_bytes.append(sum(map(_pss_bytes, server.children(recursive=True))))

    @property
    def total_bytes(self) -> np.ndarray:
        return np.add(self.server_bytes, self.workers_bytes)

    def slope_bytes_per_min(self) -> float:
        """Of a straight line through the last part."""
        first = int(len(self.at_s) * (1 - LAST))
        at_min, total = np.array(self.at_s[first:]) / 60, self.total_bytes[first:]
        return float(np.polyfit(at_min, total, 1)[0]) if len(total) > 2 else float("nan")


def _pss_bytes(process: psutil.Process) -> int:
    try:
        full = process.memory_full_info()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return 0
    return int(getattr(full, "pss", full.rss))


@dataclass
class Class:
    """The sessions, and what was measured."""

    trips: Sequence[Trip]
    seconds: float
    seed: int
    moves: list[Move] = field(default_factory=list)
    heavy: list[Move] = field(default_factory=list)
    memory: Memory = field(default_factory=Memory)
    visitors: list[Visitor] = field(default_factory=list)
    cpu_s: tuple[float, float] = (0.0, 0.0)  # server, workers

    async def attend(self, address: str, server: psutil.Process, with_heavy: bool) -> None:
        """Open all sessions, then move until the time is over."""
        self.visitors = [Visitor(trip, self.seed + i) for i, trip in enumerate(self.trips)]
        for visitor in self.visitors:
            await visitor.open(address)
        before = _cpu_s(server)
        self._began = time.monotonic()
        tasks = [asyncio.create_task(self._moves(v, self.moves)) for v in self.visitors]
        if with_heavy:
            tasks.append(asyncio.create_task(self._heavy(address)))
        while (passed := self._passed_s()) < self.seconds:
            await asyncio.to_thread(self.memory.sample, server, passed)
            await asyncio.sleep(min(SAMPLE_S, self.seconds - passed))
        await asyncio.gather(*tasks)
        after = _cpu_s(server)
        self.cpu_s = after[0] - before[0], after[1] - before[1]
        for visitor in self.visitors:
            await visitor.close()

    async def _moves(self, visitor: Visitor, moves: list[Move], from_s: float = 0.0) -> None:
        due_s = from_s + random.Random(visitor.seed).uniform(0, PERIOD_S)
        while due_s < self.seconds:
            await asyncio.sleep(max(0.0, due_s - self._passed_s()))
            # A server that is too slow has late moves against it, but not the rest of the day.
            if self._passed_s() < self.seconds + LATE_S:
                try:
                    await visitor.move()
                except Exception as error:
                    visitor.problems.append(repr(error))
                    return
            took_s = self._passed_s() - due_s
            moves.append(Move(page=visitor.trip.name, at_s=due_s, took_s=took_s))
            due_s += PERIOD_S

    def _passed_s(self) -> float:
        return time.monotonic() - self._began

    async def _heavy(self, address: str) -> None:
        await asyncio.sleep(self.seconds / 2)
        visitor = Visitor(HEAVY, self.seed - 1)
        self.visitors.append(visitor)
        await visitor.open(address)
        await self._moves(visitor, self.heavy, from_s=self.seconds / 2)


def _cpu_s(server: psutil.Process) -> tuple[float, float]:
    """Of the server itself, and of its workers that live."""
    workers = 0.0
    for child in server.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            workers += sum(child.cpu_times()[:2])
    return sum(server.cpu_times()[:2]), workers


def pictures_s(address: str, chromium: str, seconds: float, times: list[float]) -> None:
    """Seconds from each move of a slider to the picture that Plotly has drawn from it."""
    end = time.monotonic() + seconds
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.goto(f"http://{address}/simulate?v=1&case=1", timeout=120_000)
        page.locator("[data-testid=stPlotlyChart] .main-svg").first.wait_for(timeout=120_000)
        slider = page.locator(f".st-key-{SIMULATE_KEYS[0]} input[type=range]").first
        step = 0
        while time.monotonic() < end:
            key = "ArrowRight" if step % 20 < 10 else "ArrowLeft"
            old = page.evaluate(f"({END_OF_AXIS})()")
            began = time.perf_counter()
            slider.press(key)
            page.wait_for_function(f"old => ({END_OF_AXIS})() !== old", arg=old, timeout=60_000)
            took_s = time.perf_counter() - began
            times.append(took_s)
            step += 1
            page.wait_for_timeout(max(0.0, PERIOD_S - took_s) * 1e3)
        browser.close()


def centile_s(times_s: Sequence[float], share: float) -> float:
    return float(np.quantile(times_s, share)) if times_s else float("nan")


def spread(times_s: Sequence[float]) -> str:
    """Median, 95th percentile and longest."""
    p50, p95, most = (centile_s(times_s, share) for share in (0.5, 0.95, 1.0))
    return f"{len(times_s):5,} moves: p50 {p50:.3f} s, p95 {p95:.3f} s, max {most:.3f} s"


def report(found: Class, pictures: Sequence[float], log: Path) -> bool:
    """Print what was measured; whether all targets are met."""
    took = [move.took_s for move in found.moves]
    print(f"script   {spread(took)}")
    for page in sorted({move.page for move in found.moves}):
        print(f"  {page:42}{spread([m.took_s for m in found.moves if m.page == page])}")
    server_ms, workers_ms = (1e3 * cpu_s / max(len(took), 1) for cpu_s in found.cpu_s)
    print(f"CPU      {server_ms:.0f} ms a move in the server, {workers_ms:.0f} in its workers")
    print(f"picture  {spread(pictures)}")
    most_mb = report_memory(found.memory)
    report_heavy(found)
    print(f"refusals {sum(v.sentences for v in found.visitors)} sentences on pages")
    good = report_problems(found.visitors, log)
    good = good and centile_s(took, 0.95) < SCRIPT_S and most_mb < MOST_MB
    return good and (not pictures or centile_s(pictures, 0.95) < PICTURE_S)


def report_memory(memory: Memory) -> float:
    """The most there was, in MB."""
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        i = round(share * (len(memory.at_s) - 1))
        server, workers = memory.server_bytes[i] / MB, memory.workers_bytes[i] / MB
        at_s = memory.at_s[i]
        print(f"memory   at {at_s:4.0f} s: server {server:,.0f} MB, workers {workers:,.0f} MB")
    most_mb = float(memory.total_bytes.max()) / MB
    slope = memory.slope_bytes_per_min() / MB
    print(f"memory   most {most_mb:,.0f} MB, slope at the end {slope:+.1f} MB/min")
    return most_mb


def report_heavy(found: Class) -> None:
    """How much slower the others were in the half that had a heavy session, if one had."""
    if not found.heavy:
        return
    half = found.seconds / 2
    for name, share in (("p50", 0.5), ("p95", 0.95)):
        alone = centile_s([m.took_s for m in found.moves if m.at_s < half], share)
        beside = centile_s([m.took_s for m in found.moves if m.at_s >= half], share)
        ratio = beside / alone
        print(f"heavy    {name} of the others {alone:.3f} -> {beside:.3f} s: {ratio:.2f} times")
    print(f"heavy    itself {spread([m.took_s for m in found.heavy])}")


def report_problems(visitors: Sequence[Visitor], log: Path) -> bool:
    """Whether there were none."""
    problems = [f"{v.trip.name}: {text}" for v in visitors for text in v.problems]
    text = log.read_text(errors="replace")
    tracebacks = text.count("Traceback (most recent call last)")
    print(f"problems {len(problems)} on pages, {tracebacks} tracebacks in the log")
    for line in sorted(set(problems))[:10]:
        print(f"  {line[:300]}")
    if tracebacks:
        print(text[-3000:])
    return not problems and not tracebacks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--heavy", action="store_true", help="one heavy session in the second half")
    parser.add_argument("--pages", default="", help="only pages whose name has this in it")
    parser.add_argument("--no-browser", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    # As at any other end, the server ends too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    trips = [trip for trip in TRIPS if options.pages in trip.name]
    if not trips:
        sys.exit(f"no page has {options.pages!r} in its name")
    seats = [trips[i % len(trips)] for i in range(options.sessions)]
    found = Class(trips=seats, seconds=options.seconds, seed=options.seed)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    pictures: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "server.log"
        with log.open("wb") as file, serving(out=file, err=file) as (address, number):
            server = psutil.Process(number)
            browser = threading.Thread(
                target=pictures_s, args=(address, chromium, options.seconds, pictures), daemon=True
            )
            if chromium and not options.no_browser:
                browser.start()
            asyncio.run(found.attend(address, server, options.heavy))
            if browser.ident is not None:
                browser.join(60)
        loads = ", ".join(f"{load:.1f}" for load in os.getloadavg())
        print(f"{options.sessions} sessions, {options.seconds:g} s, load average {loads}")
        sys.exit(not report(found, pictures, log))


if __name__ == "__main__":
    main()

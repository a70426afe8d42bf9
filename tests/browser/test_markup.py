"""A trace whose every text is markup: it is shown as text on every page, in every tab."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from triosim.scenario import SAMPLE_TRACES

expect = pytest.importorskip("playwright.sync_api").expect
pytestmark = pytest.mark.browser
Visits = Callable[..., Any]
MARK = "MARKED"
# Each is drawn or run by something on the way: HTML, Plotly's own tags, Markdown, formulas, CSS.
EVIL = (
    f'<img src="/evil.png" onerror="window.evil=1"><b>{MARK}</b>',
    f"<a href='javascript:window.evil=2'>{MARK}</a><br>x",
    f"</script><script>window.evil=3</script>{MARK}",
    f"[{MARK}](javascript:window.evil=4) ![i](/evil.svg) **{MARK}**",
    f"$\\frac{{{MARK}}}{{2}}$ :red[{MARK}] `x` <!--",
    f"<style>body{{display:none}}</style><svg onload=window.evil=5>{MARK}",
)
FORMULA = '=HYPERLINK("http://example.org/evil")'
# What a page would have made of such texts; what it shows of them must still have its signs.
FOUND = """() => {
  const all = [...document.querySelectorAll("*")];
  const made = all.filter(e =>
    (e.matches("img, a, image") && /evil|javascript:/.test(e.outerHTML.slice(0, 300))) ||
    (e.matches("script, style, b, strong, em, code, .katex, [style*='font-weight']") &&
      e.children.length === 0 && e.textContent.includes("MARKED") &&
      !/[<\\[$*]/.test(e.textContent)) ||
    ["onerror", "onload"].some(name => e.hasAttribute(name)));
  const texts = all.filter(e => !e.children.length && e.textContent.includes("MARKED"));
  const bare = texts.filter(e => !/[<\\[$*]/.test(e.textContent));
  return {
    evil: window.evil ?? null, made: made.map(e => e.outerHTML.slice(0, 200)),
    bare: bare.map(e => e.parentElement.outerHTML.slice(0, 300)), shown: texts.length,
  };
}"""


def files() -> list[dict[str, Any]]:
    """The shipped MLP with markup for names of operators, modules, tensors and in meta.json."""
    folder = SAMPLE_TRACES / "mlp"
    rows = [line.split(",") for line in (folder / "trace.csv").read_text().splitlines()]
    name, module = rows[0].index("OperatorName"), len(rows[0])
    for number, row in enumerate(rows[1:]):
        row[name] = quoted(f"{row[name]} {EVIL[number % len(EVIL)]}")
        row.append(quoted(EVIL[(number + 1) % len(EVIL)]))
    rows[1][name] = quoted(FORMULA)
    rows[0].append("module")
    assert module == len(rows[0]) - 1
    meta = {"batch_size": 2, "name": EVIL[0], "gpu": EVIL[1], "notes": list(EVIL), EVIL[2]: 1}
    tensors = (folder / "tensor.csv").read_text().replace("input", quoted(EVIL[3]))
    texts = {"trace.csv": "\n".join(map(",".join, rows)), "tensor.csv": tensors}
    texts[f"{EVIL[0]}.json"] = json.dumps(meta)
    return [
        {"name": label, "mimeType": "text/plain", "buffer": text.encode()}
        for label, text in texts.items()
    ]


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def assert_no_raw_table(page: Any, saved: Path) -> None:
    """Streamlit's own CSV would have formulas; the page's has a quote before them."""
    page.get_by_test_id("stDataFrame").hover()
    expect(page.get_by_role("button", name="Search")).to_be_visible()
    expect(page.get_by_role("button", name="Download as CSV")).to_have_count(0)
    with page.expect_download() as download:
        page.get_by_role("button", name="Operators (CSV)").click()
    download.value.save_as(saved)
    names = list(pd.read_csv(saved)["name"])
    assert f"'{FORMULA}" in names
    assert FORMULA not in names


def assert_only_text(one: Any, *, shown: bool = True) -> None:
    expect(one.page.get_by_test_id("stException")).to_have_count(0)
    found = one.page.evaluate(FOUND)
    assert (found["evil"], found["made"], found["bare"]) == (None, [], [])
    assert found["shown"] > 0 or not shown
    assert one.complaints == []
    inside = ("data:", "blob:", one.address)
    assert [u for u in one.requests if not u.startswith(inside) or "evil" in u] == []


def assert_only_text_on(one: Any, tab: str) -> None:
    """The same of a tab, once it is open."""
    opened = one.page.get_by_role("tab", name=tab)
    opened.click()
    expect(opened).to_have_attribute("aria-selected", "true")
    one.page.wait_for_timeout(500)
    assert_only_text(one, shown=False)


def hover(page: Any, mark: str) -> None:
    """Over a mark of a chart, so that its hover is drawn."""
    page.locator(mark).last.hover(force=True)
    page.locator(".hoverlayer text").first.wait_for()


def test_names_are_text_on_every_page(patient_visit: Visits, tmp_path: Path) -> None:
    one = patient_visit()
    page = one.page
    page.on("dialog", lambda dialog: one.complaints.append(f"dialog {dialog.message}"))
    one.open("/traces?v=1&view=Where+time+goes&by=name")
    page.locator("input[type=file]").set_input_files(files())
    expect(page.get_by_role("heading").first).to_contain_text("<img src=", timeout=90_000)
    expect(page.locator(".treemaplayer text", has_text=MARK).first).to_be_attached()
    hover(page, ".treemaplayer path.surface")
    assert_only_text(one)
    for tab in ("Operators", "Roofline", "Memory", "Tensors", "Where it is from"):
        assert_only_text_on(one, tab)
        if tab == "Operators":
            assert_no_raw_table(page, tmp_path / "operators.csv")
    page.get_by_role("link", name="Simulate this").click()
    expect(page.get_by_role("heading").first).to_contain_text("GPUs")
    page.locator(".st-key-chart_operators .barlayer path").first.wait_for()
    hover(page, ".st-key-chart_operators .barlayer path")
    assert_only_text(one)
    for tab in ("Where time goes", "Communication", "Memory", "Network", "Checks and assumptions"):
        assert_only_text_on(one, tab)
    page.get_by_role("tab", name="Timeline").click()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as HTML: Operators and").click()
    saved.value.save_as(tmp_path / "chart.html")
    page.get_by_role("button", name="Pin", exact=True).click()
    gpus = page.get_by_role("spinbutton", name="GPUs, exact")
    gpus.fill("4")
    gpus.press("Enter")
    expect(page.get_by_role("heading").first).to_contain_text("4 GPUs")
    page.get_by_role("button", name="Compare with pinned").click()
    expect(page.get_by_text("baseline", exact=True)).to_be_visible()
    for tab in ("Timelines", "Memory", "Settings", "Where the difference is"):
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
        page.wait_for_timeout(500)
        assert_only_text(one, shown=False)
    page.goto((tmp_path / "chart.html").as_uri())
    hover(page, ".barlayer path")
    found = page.evaluate(FOUND)
    assert (found["evil"], found["made"], found["bare"]) == (None, [], [])

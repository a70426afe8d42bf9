"""Rules for the code of the dashboard."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from triosim.figures import CLASS_COLOURS, PHASE_COLOURS, Style
from triosim.figures.palette import contrast

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "pages").glob("*.py"))
CODE = [ROOT / "app.py", *PAGES, *sorted((ROOT / "dashboard").rglob("*.py"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_pages_are_thin(page: Path) -> None:
    text = page.read_text()
    assert len(text.splitlines()) <= 150
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < 40, node.name


def test_every_cache_is_limited() -> None:
    for path in CODE:
        for call in re.findall(r"@st\.cache_\w+(?:\([^)]*\))?", path.read_text()):
            assert "max_entries" in call, f"{path.name}: {call}"


def test_no_raw_html_from_data() -> None:
    for path in CODE:
        assert "unsafe_allow_html" not in path.read_text(), path.name


def test_the_theme_has_the_colours_of_the_figures() -> None:
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())
    palette = {c.lower() for c in (*PHASE_COLOURS.values(), *CLASS_COLOURS.values())}
    assert set(config["theme"]["chartCategoricalColors"]) <= palette
    for scheme, surface in (("light", "#FFFFFF"), ("dark", "#0E1117")):
        theme = config["theme"][scheme]
        assert theme["backgroundColor"].upper() == surface == Style(dark=scheme == "dark").surface
        assert contrast(theme["primaryColor"].upper(), surface) >= 4.5


def test_torch_is_not_imported() -> None:
    modules = ["dashboard.controls", "dashboard.views", "dashboard.computed", "dashboard.look"]
    code = f"import sys, {', '.join(modules)}; sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_workers_do_not_import_the_dashboard() -> None:
    code = "import sys, dashboard.work; sys.exit('streamlit' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_a_worker_watches_its_server_before_it_loads_the_engine() -> None:
    code = "import sys, dashboard.lifeline; sys.exit('triosim' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()

"""The rules of the layout, held by reading the code."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import triosim

ROOT = Path(__file__).resolve().parents[1]
ENGINE = sorted((ROOT / "triosim").rglob("*.py"))
# What each part may import of the others; a part may always import itself.
ALLOWED = {
    "errors": set(),
    "files": set(),
    "amounts": set(),
    "catalogue": {"errors"},
    "hardware": {"errors", "catalogue"},
    "trace": {"errors", "files", "hardware"},
    "workload": {"errors", "catalogue", "hardware", "trace"},
    "compile": {"errors", "hardware", "workload"},
    "network": {"errors", "catalogue", "hardware"},
    "mesh": {"errors", "network"},
    "engine": {"errors", "network"},
    "parallel": {"errors", "trace", "network", "engine"},
    "schedules": {"errors", "network", "engine"},
    # What is said of a result is worked out where it is asked for: the one way back.
    "shown": {"notebook"},
    "pipelines": {"errors", "schedules", "shown"},
    "legal": {"errors"},
    "scenario": {"errors", "hardware", "network", "legal"},
    "analysis": {"errors", "amounts", "trace", "network", "engine", "parallel"},
    "notes": {"errors", "hardware", "trace", "network", "engine", "parallel", "scenario"},
    "size": {"errors", "trace", "engine", "parallel", "scenario", "jitter"},
    "jitter": set(),
    "collective": {"errors", "network", "shown"},
    "result": {
        "errors", "engine", "network", "analysis", "scenario", "trace", "jitter", "legal", "shown",
    },
    "joined": {"network", "scenario"},
    "variation": {"jitter", "parallel", "scenario"},
    "simulate": {
        "errors", "trace", "network", "engine", "parallel", "analysis", "scenario", "joined",
        "notes", "result", "size", "variation",
    },
    "train": {
        "errors", "hardware", "trace", "network", "engine", "schedules", "mesh", "workload",
        "compile", "analysis", "result", "legal",
    },
    "resolved": {
        "errors", "hardware", "legal", "network", "result", "scenario", "simulate", "trace",
        "train", "workload",
    },
    "compare": {"errors", "amounts", "analysis", "resolved", "result", "shown"},
    "search": {
        "errors", "compare", "hardware", "legal", "mesh", "network", "schedules", "shown", "train",
    },
    "sweep": {"errors", "files", "analysis", "legal", "resolved", "result", "shown", "train"},
    "saved": {
        "errors", "analysis", "jitter", "legal", "resolved", "result", "shown", "train",
    },
    "notebook": {
        "errors", "amounts", "analysis", "chakra", "collective", "compare", "explain", "figures",
        "pipelines", "result", "saved", "scenario", "search", "shown", "sweep", "train",
    },
    "validation": {"errors", "hardware", "network", "pipelines", "scenario", "simulate", "train"},
    "commands": {
        "errors", "amounts", "hardware", "network", "schedules", "export", "collective",
        "pipelines", "train", "validation", "workload", "analysis", "legal", "result", "scenario",
        "simulate", "compare", "explain", "resolved", "search", "sweep", "chakra", "overlay",
    },
    "explain": {
        "errors", "amounts", "analysis", "engine", "hardware", "joined", "network", "result",
        "shown", "simulate", "trace", "train", "workload",
    },
    "export": {"errors", "files", "analysis", "engine", "result", "scenario"},
    "chakra": {"errors", "legal", "analysis", "engine", "export", "network", "result"},
    "overlay": {"errors", "engine", "export", "result"},
    "figures": {
        "errors", "network", "analysis", "engine", "result", "scenario", "trace", "joined",
        "train", "mesh", "workload", "explain", "pipelines", "lab", "search", "sweep", "compare",
        "overlay",
    },
    "lab": {
        "errors", "analysis", "collective", "compile", "engine", "hardware", "mesh", "network",
        "pipelines",
        "scenario", "simulate", "trace", "train", "validation", "workload",
    },
}  # fmt: skip


def imports(path):
    """Modules that a file imports at run time (not under TYPE_CHECKING)."""
    found = set()

    class Visitor(ast.NodeVisitor):
        def visit_If(self, node):
            if ast.unparse(node.test) != "TYPE_CHECKING":
                self.generic_visit(node)

        def visit_Import(self, node):
            found.update(alias.name for alias in node.names)

        def visit_ImportFrom(self, node):
            found.add(node.module)

    Visitor().visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


def part(name):
    pieces = name.split(".")
    return pieces[1] if len(pieces) > 1 else ""


@pytest.mark.parametrize("path", ENGINE, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path):
    own = path.relative_to(ROOT / "triosim").with_suffix("").parts[0]
    found = imports(path)
    roots = {name.split(".")[0] for name in found}
    assert roots.isdisjoint({"streamlit", "torch"})
    assert "IPython" not in roots or own == "notebook"
    assert "plotly" not in roots or own == "figures"
    assert "simpy" not in roots or own in ("engine", "network")
    assert roots.isdisjoint({"pages", "dashboard", "app"})
    if own in ALLOWED:
        others = {part(name) for name in found if name.startswith("triosim.")} - {own}
        assert others <= ALLOWED[own]


def test_the_engine_starts_without_the_dashboard_or_torch():
    code = (
        "import sys, triosim, triosim.cli; "
        "kept_out = ('streamlit', 'plotly', 'torch', 'IPython', 'ipywidgets'); "
        "print([m for m in kept_out if m in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert run.stdout.strip() == "[]"


def test_all_public_names_are_listed_and_exist():
    listed = set(triosim.__all__)
    public = {
        name
        for name, value in vars(triosim).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("triosim")
    }
    assert listed == public

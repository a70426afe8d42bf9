"""Promises of SECURITY.md that can be read off the code: what it runs, writes and depends on."""

from __future__ import annotations

import ast
import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PARTS = ("triosim", "tracer", "dashboard", "pages")
FILES = [ROOT / "app.py", *(file for part in PARTS for file in sorted((ROOT / part).rglob("*.py")))]
MODULES = {
    "pickle", "dill", "cloudpickle", "shelve", "marshal", "yaml", "joblib", "code", "subprocess",
    "pty", "ctypes", "zipfile", "zipimport", "tarfile", "http.server",
}  # fmt: skip
KEYWORDS = {"shell", "unsafe_allow_html", "allow_pickle", "trust_remote_code"}
BUILTINS = {"eval", "exec", "compile", "__import__", "breakpoint", "input"}
METHODS = {"read_pickle", "to_pickle", "system", "popen", "unsafe_load", "extractall", "query"}
# Why a file may have what others may not.
ALLOWED = {
    ("dashboard/export.py", "zipfile"): "writes an archive; none is ever opened",
    ("dashboard/memory.py", "ctypes"): "two calls of the C library, with numbers of its own",
}
WRITES = {"write_text", "write_bytes", "to_parquet", "to_json", "savez", "to_pickle"}
# What else writes to disk, and why half a file of it does no harm.
WRITERS = {
    "triosim/files.py": "the one place where files are replaced",
    "triosim/export/files.py": "a terminal or a pipe cannot be replaced",
    "triosim/sweep/store.py": "Parquet as bytes, which triosim/files.py writes",
    "dashboard/traces_read.py": "a folder of its own, gone when the function returns",
    "dashboard/traces_store.py": "a folder of this server's, gone when it ends",
}


def nodes(path, kind):
    return [n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, kind)]


def named(call):
    """The last part of what is called."""
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def imported(path):
    found = {alias.name for node in nodes(path, ast.Import) for alias in node.names}
    return found | {node.module or "" for node in nodes(path, ast.ImportFrom)}


def place(path):
    return path.relative_to(ROOT).as_posix()


def risks(path):
    """What a file uses that could run or unpack what it is given."""
    for name in imported(path):
        if {name, name.split(".")[0]} & MODULES:
            yield name
    for call in nodes(path, ast.Call):
        if isinstance(call.func, ast.Name) and call.func.id in BUILTINS:
            yield call.func.id
        if isinstance(call.func, ast.Attribute) and call.func.attr in METHODS:
            yield call.func.attr
        yield from (k.arg for k in call.keywords if k.arg in KEYWORDS)


def test_nothing_runs_what_it_reads():
    assert {(place(path), name) for path in FILES for name in risks(path)} == set(ALLOWED)


def test_the_look_for_that_finds_it(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text(
        "import pickle, os\nfrom yaml import load\nos.system('x')\neval('1')\nf(shell=True)\n"
    )
    assert set(risks(bad)) == {"pickle", "yaml", "system", "eval", "shell"}


def test_only_generated_rules_of_style_are_html():
    """`st.html` with anything else would have to escape it: the legend below a figure does."""
    found = {
        place(path) for path in FILES for call in nodes(path, ast.Call) if named(call) == "html"
    }
    assert found == {
        "dashboard/lab/page.py", "dashboard/lab/strip.py", "dashboard/look.py",
        "dashboard/seminar/presenter.py", "dashboard/timeline.py",
    }  # fmt: skip


def test_files_are_written_in_one_place():
    found = set()
    for path in FILES:
        for call in nodes(path, ast.Call):
            modes = [a.value for a in call.args if isinstance(a, ast.Constant)]
            opens = named(call) == "open" and any(
                isinstance(mode, str) and re.fullmatch(r"[wax]b?\+?", mode) for mode in modes
            )
            if opens or (
                isinstance(call.func, ast.Attribute) and call.func.attr in WRITES - {"to_json"}
            ):
                found.add(place(path))
    assert found == set(WRITERS)


def test_tables_are_written_in_one_place():
    """The two-file format is read back exactly, so its names stay as they are."""
    found = set()
    for path in FILES:
        calls = nodes(path, ast.Call)
        if "csv" in imported(path) and any(named(c) in ("writer", "DictWriter") for c in calls):
            found.add(place(path))
        if any(isinstance(c.func, ast.Attribute) and c.func.attr == "to_csv" for c in calls):
            found.add(place(path))
    assert found == {"triosim/export/table.py", "triosim/trace/write.py"}


SILENCERS = {"tracer/collect/modules.py"}  # keeps a warning of torch from being printed


def test_nothing_is_logged_but_one_line_on_standard_error():
    """Without a logger nothing of an upload, a link or a password gets into a log."""
    for path in FILES:
        loggers = {"logging", "warnings", "syslog"} & imported(path)
        if place(path) in SILENCERS:
            loggers.remove("warnings")
            calls = {named(call) for call in nodes(path, ast.Call)}
            assert calls.isdisjoint({"warn", "warn_explicit", "showwarning"})
        assert not loggers, place(path)
        if place(path).startswith(("dashboard/", "pages/", "app.py")):
            assert not any(named(call) == "print" for call in nodes(path, ast.Call)), place(path)


# --- dependencies


def direct():
    """Names in requirements.txt and pyproject.toml."""
    text = (ROOT / "requirements.txt").read_text("utf-8")
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines += project["dependencies"]
    lines += [one for extra in project["optional-dependencies"].values() for one in extra]
    names = (re.match(r"[A-Za-z0-9._-]+", line) for line in lines if not line.startswith("-"))
    return {re.sub(r"[-_.]+", "-", name.group()).lower() for name in names if name}


def test_every_direct_dependency_is_listed_with_its_licence():
    text = (ROOT / "docs" / "licences.md").read_text("utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", text, re.MULTILINE)
    listed = {re.sub(r"[-_.]+", "-", name).lower(): licence.strip() for name, licence in rows}
    assert direct() <= set(listed)
    assert all(listed.values())


@pytest.mark.parametrize("name", ["streamlit", "plotly", "simpy", "numpy", "pandas"])
def test_listed_licences_are_those_that_the_packages_state(name):
    text = (ROOT / "docs" / "licences.md").read_text("utf-8")
    (listed,) = re.findall(rf"^\| `{name}` \| ([^|]+) \|", text, re.MULTILINE)
    meta = distribution(name).metadata
    stated = meta.get("License-Expression") or meta.get("License") or ""
    classifiers = " ".join(meta.get_all("Classifier") or [])
    assert listed.split()[0].split("-")[0] in f"{stated} {classifiers}"

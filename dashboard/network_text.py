"""Descriptions of topologies as text: TOML out, TOML or JSON in."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from triosim.errors import ConfigError
from triosim.network.topology.describe import Description
from triosim.network.topology.plain import TOO_DEEP

MAX_CHARACTERS = 200_000
_LINE = re.compile(r"line \d+")


def write_toml(description: Description) -> str:
    """The description as a TOML file that reads back as the same."""
    return _table(description.to_dict(), "").strip() + "\n"


def _table(values: Mapping[str, Any], path: str) -> str:
    lines = [
        f"{name} = {_value(value)}"
        for name, value in values.items()
        if not _is_section(name, value)
    ]
    for name, value in values.items():
        if not _is_section(name, value):
            continue
        place = f"{path}{name}"
        if isinstance(value, Mapping):
            lines += ["", f"[{place}]", _table(value, f"{place}.")]
        else:
            for entry in value:
                lines += ["", f"[[{place}]]", _table(entry, f"{place}.")]
    return "\n".join(lines)


def _is_section(name: str, value: object) -> bool:
    if isinstance(value, Mapping):
        return name != "link"
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{name} = {_value(entry)}" for name, entry in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str):
        # A TOML basic string has the escapes of JSON, but not its pairs of surrogates.
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    return f"{value:g}" if value == float(f"{value:g}") else repr(value)


def read_text(text: str) -> Description:
    """The description in a TOML text, or a JSON text where it begins with a brace.

    Raises `ConfigError` on field "topology".
    """
    if len(text) > MAX_CHARACTERS:
        size = f"{len(text):,} characters"
        raise ConfigError("topology", size, f"a description has at most {MAX_CHARACTERS:,}")
    kind = "JSON" if text.lstrip().startswith("{") or _is_json_list(text) else "TOML"
    try:
        values = json.loads(text) if kind == "JSON" else tomllib.loads(text)
    except RecursionError:
        raise ConfigError("topology", "text", TOO_DEEP) from None
    except ValueError as error:
        raise ConfigError("topology", _place(error, text), f"not {kind} ({error})") from None
    if isinstance(values, list):
        raise ConfigError("topology", "a JSON list", 'must be an object, as in {"kind": "ring"}')
    if not values:
        raise ConfigError("topology", "(empty)", 'needs kind and more, as in kind = "ring"')
    return Description.from_dict(values)


def _is_json_list(text: str) -> bool:
    """Whether a text that begins with a bracket is no TOML, whose sections begin with one, too."""
    if not text.lstrip().startswith("["):
        return False
    try:
        json.loads(text)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def _place(error: Exception, text: str) -> str:
    """Where a parser stopped; only the newer ones say it other than in words."""
    said = _LINE.search(str(error))
    if said:
        return said.group()
    return f"line {len(text.splitlines()) or 1}" if "end of document" in str(error) else "text"


def read_faults(text: str) -> tuple[tuple[str, float], ...]:
    """Connections and the share that is left of each: "GPU 0-GPU 1" (dead), "2-3=0.5"."""
    found: dict[str, float] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, given, share = part.partition("=")
        try:
            found[name.strip()] = float(share) if given else 0.0
        except ValueError:
            problem = "must be a connection, or one and its share left, as in 3-4=0.5"
            raise ConfigError("dead_links", part, problem) from None
    return tuple(found.items())

"""What is shipped for a server: that it names what there is, and opens no more than it says."""

import configparser
import re
import socket
import tomllib
from pathlib import Path

import pytest
from starlette.routing import Route
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from benchmarks.serving import serving

ROOT = Path(__file__).resolve().parents[1]


def test_the_image_is_made_of_files_that_there_are() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copies = [line.split()[1:-1] for line in lines if line.startswith("COPY ") and "--" not in line]
    names = {name for copy in copies for name in copy}
    assert {"app.py", "serve.py", "pages", "triosim", ".streamlit"} <= names
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    for name in names:
        assert (ROOT / name).exists(), name
        assert f"!{name.partition('/')[0]}" in ignored, name
    assert "USER 10001" in lines


def test_the_container_is_read_only_and_published_on_loopback() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    service = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["dashboard"]
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["environment"]["TRIOSIM_PASSWORD_FILE"].startswith("/run/secrets/")


def test_the_names_of_the_server_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    names = re.search(r"TRIOSIM_HOSTS:-([^}]*)}", (ROOT / "compose.yaml").read_text())
    assert names is not None
    monkeypatch.setenv("STREAMLIT_SERVER_ALLOWED_HOSTS", names[1])
    with serving() as (address, _):
        for host in ("localhost", "127.0.0.1"):
            assert connects(address, host)
        assert not connects(address, "elsewhere.example")


def connects(address: str, host: str) -> bool:
    """Whether a page that was opened under this name gets its connection."""
    port = address.rpartition(":")[2]
    stream = f"ws://{host}:{port}/_stcore/stream"
    with socket.create_connection(("127.0.0.1", int(port)), timeout=60) as plain:
        try:
            with connect(stream, sock=plain, subprotocols=["streamlit"], open_timeout=60):
                return True
        except InvalidStatus:
            return False


def test_the_service_and_the_configuration_listen_on_loopback() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.read(ROOT / "deploy" / "triosim.service")
    assert re.search(r"serve\.py --server\.address 127\.0\.0\.1$", unit["Service"]["ExecStart"])
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())
    assert config["server"]["address"] == "127.0.0.1"
    assert config["runner"]["postScriptGC"] is False


def test_the_server_has_the_health_endpoint() -> None:
    import serve

    assert [route.path for route in serve.app._user_routes if isinstance(route, Route)] == [
        "/health"
    ]

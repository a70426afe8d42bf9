import pytest


@pytest.fixture(scope="session")
def in_torch():
    """Opens a mesh in torch 2.13, whose private functions the comparison needs."""
    torch = pytest.importorskip("torch")
    if not torch.__version__.startswith("2.13."):
        pytest.skip(f"compares with torch 2.13, this is {torch.__version__}")
    from tests.mesh.torch_dtensor import open_torch

    return open_torch

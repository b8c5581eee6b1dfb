"""One folder for the kernels that Warp compiles, shared by all tests and workers of a session."""

import os
import tempfile

import pytest

CACHE = "WARP_CACHE_PATH"


def pytest_configure(config):
    """The controller makes the folder; xdist's workers inherit it with the environment."""
    if CACHE not in os.environ:
        folder = tempfile.TemporaryDirectory(prefix="warp-debug-gradients-kernels-", ignore_cleanup_errors=True)
        os.environ[CACHE] = folder.name
        config.add_cleanup(folder.cleanup)
        config.add_cleanup(lambda: os.environ.pop(CACHE, None))


@pytest.fixture
def anyio_backend():
    return "asyncio"

"""One small good file of each kind, as a fixture."""

import pytest

from good_images import GOOD


@pytest.fixture(params=list(GOOD))
def kind(request) -> str:
    """Name of one kind of file."""
    return request.param


@pytest.fixture
def good(kind) -> bytes:
    """Content of a good file of that kind."""
    return GOOD[kind]()


@pytest.fixture(autouse=True)
def _with_their_packages(request):
    """Tests named after OpenEXR or MCAP are left out where only the core is installed."""
    for word, package in (("exr", "OpenEXR"), ("mcap", "rosbags")):
        if word in request.node.name:
            pytest.importorskip(package)

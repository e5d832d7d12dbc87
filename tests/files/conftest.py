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

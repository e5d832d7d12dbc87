"""Settings that every test shares."""

import sys
from pathlib import Path

import pytest
from hypothesis import settings

from d3s.runtime import parallel

# Modules of these folders are imported by their names.
for folder in (".", "physics", "helpers", "claims"):
    sys.path.insert(0, str(Path(__file__).parent / folder))

# The time of one example says nothing on a busy machine, and tests never assert seconds.
settings.register_profile("d3s", deadline=None, derandomize=True)
settings.load_profile("d3s")


@pytest.fixture(autouse=True)
def _share_all_work(monkeypatch):
    """Small pictures among threads, too: or the tests that compare numbers of them would not."""
    monkeypatch.setattr(parallel, "_WORTH_SHARING_BYTES", 0)

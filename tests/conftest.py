"""Settings that every test shares."""

import sys
from pathlib import Path

from hypothesis import settings

# tests/physics/analytic.py is imported by its name.
sys.path.insert(0, str(Path(__file__).parent / "physics"))

# The time of one example says nothing on a busy machine, and tests never assert seconds.
settings.register_profile("d3s", deadline=None, derandomize=True)
settings.load_profile("d3s")

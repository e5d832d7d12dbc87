"""Frames that end their worker, by their names."""

import os
from collections.abc import Mapping
from typing import Any

from d3s.batch import frame_maker as real


def make_frame(maker: str, frame: Mapping[str, Any]) -> dict[str, Any]:
    if frame["name"].startswith("leaves"):
        os._exit(3)
    return real.make_frame(maker, frame)

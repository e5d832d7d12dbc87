"""Frames that hang, eat memory, or end their worker: by their names."""

import os
from collections.abc import Mapping
from typing import Any

import poison
from d3s.batch import frame as real


def make_frame(plan: str, frame: Mapping[str, Any]) -> dict[str, Any]:
    if frame["name"] == "hangs":
        poison.hang(600)
    elif frame["name"] == "eats":
        poison.eat(900_000_000)
    elif frame["name"] == "leaves":
        os._exit(3)
    return real.make_frame(plan, frame)


def describe_blind(seen: Any, written: Any) -> dict[str, Any]:
    """Description by a worker that sees no file."""
    from d3s.tasks import node

    return {**node.describe(seen, written), "missing": [seen[0][0]]}

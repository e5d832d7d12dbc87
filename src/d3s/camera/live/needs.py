"""Packages of the extras that live pages need."""

import importlib.util

from d3s.errors import InputError


def check_server() -> None:
    """Raise an `InputError` if the package that serves pages is not installed."""
    if importlib.util.find_spec("aiohttp") is None:
        raise InputError("live pages need the package aiohttp: pip install 'd3s[live]'.")


def check_points() -> None:
    """Raise an `InputError` if the package that shows 3D points is not installed."""
    if importlib.util.find_spec("viser") is None:
        raise InputError("3D points need the package viser: pip install 'd3s[points]'.")

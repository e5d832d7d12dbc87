"""Versions of this package and of the libraries that decide figures, and a digest of all code."""

import hashlib
from functools import cache
from importlib.metadata import version

import numpy as np

from d3s.runtime.digest import package_digest
from d3s.version import __version__


@cache
def code_digest() -> str:
    """Digest of our source and of library versions: the cache key of everything computed."""
    text = "\n".join((package_digest(), *versions().values()))
    return hashlib.sha256(text.encode()).hexdigest()


def versions() -> dict[str, str]:
    """Versions of this package and of the libraries that decide figures."""
    import cv2

    return {
        "d3s": __version__,
        "numpy": np.__version__,
        "scipy": version("scipy"),
        "numba": version("numba"),
        "opencv": cv2.__version__,
    }

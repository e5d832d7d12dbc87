"""Mitsuba 3, the extra `d3s[render]`: loaded when it is first needed, in the fastest way there is.

The variant `llvm_ad_mono` compiles the path tracer for this processor, and needs the library of
LLVM 16 or newer (Debian: libllvm19). Older ones are not tried: Mitsuba crashes with LLVM 15. The
variant `scalar_rgb` needs no library, and takes about three times as long.
"""

import importlib
import importlib.util
import os
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from d3s.errors import InputError

LLVM_PATH = "DRJIT_LIBLLVM_PATH"
"""Environment variable with the path of the LLVM library; empty for the variant without it."""
_FAST, _PLAIN = "llvm_ad_mono", "scalar_rgb"
_LLVM_NUMBERS = range(16, 30)
_LLVM_FOLDER = "/usr/lib/llvm-{}/lib"
_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")


def check_installed() -> None:
    """Raise an `InputError` with the command to install Mitsuba if it is missing."""
    if importlib.util.find_spec("mitsuba") is None:
        raise InputError(
            "Rooms are rendered by Mitsuba 3, which is not installed: pip install 'd3s[render]'."
        )


def mitsuba_version() -> str:
    """Version of the installed Mitsuba; an InputError if there is none."""
    check_installed()
    return version("mitsuba")


@cache
def load_mitsuba() -> Any:
    """Module of Mitsuba, with the fastest variant of this machine; an InputError without it."""
    check_installed()
    path = llvm_path()
    if path:
        os.environ[LLVM_PATH] = path
    mitsuba = importlib.import_module("mitsuba")
    mitsuba.set_variant(_FAST if path else _PLAIN)
    mitsuba.set_log_level(mitsuba.LogLevel.Error)
    return mitsuba


def llvm_path() -> str | None:
    """Path of a usable LLVM library: as the environment has it, or the newest that is found."""
    if LLVM_PATH in os.environ:
        return os.environ[LLVM_PATH] or None
    for number in reversed(_LLVM_NUMBERS):
        for folder in (_LLVM_FOLDER.format(number), *_FOLDERS):
            for name in (f"libLLVM.so.{number}.1", f"libLLVM-{number}.so"):
                path = Path(folder, name)
                if path.exists():
                    return str(path)
    return None

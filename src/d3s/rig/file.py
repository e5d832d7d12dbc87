"""The rig file: a short TOML text, and the plain values that are in it.

What the values mean is the business of `d3s.rig`. The errors here do not name the file: whoever
knows its name adds it.
"""

import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

import tomli_w

from d3s.errors import RigError
from d3s.rig.record import shown

SCHEMA_VERSION = 1
# A rig file has a few kilobytes; whoever names a gigabyte of something else learns it at once.
MAX_BYTES = 1_000_000
# tomllib takes a time, and memory, that grow with the square of the number of parts of a key
# (a.a.a...): ten seconds for one line of 40 kB.
MAX_LINE_CHARS = 1000

_HEADER = """\
# A D3S camera rig, to be read with d3s.Rig.load. All values are in SI units, and the unit is the
# end of each name: m metres, dpt dioptres (1/m), rad radians, px pixels of the sensor. A cubic has
# the coefficients of 1, x, x^2 and x^3, x being a virtual baseline in metres.

"""


def format_document(values: dict[str, Any]) -> str:
    """Text of a rig file that holds these values, every float to its last bit."""
    text = tomli_w.dumps({"schema_version": SCHEMA_VERSION, **values})
    return _HEADER + re.sub(r"\[\n((?: +[^\n\"]+,\n)+)\]", _on_one_line, text)


def _on_one_line(numbers: re.Match[str]) -> str:
    """A list of numbers as a person writes it; tomli_w gives each a line of its own."""
    return f"[{', '.join(line.strip(' ,') for line in numbers[1].splitlines())}]"


def read_document(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Values in a rig file, not checked yet; `name` is None where the file has none.

    Raises
    ------
    RigError
        When the file cannot be read, is not TOML, or is of a version that is not known.
    """
    document = _parse(_decode(_read(path)))
    _check_version(document)
    # A rig in Python may go unnamed. A file lies among others, so there the name is asked for.
    return {"name": None, **{key: document[key] for key in document if key != "schema_version"}}


def _read(path: str | os.PathLike[str]) -> bytes:
    try:
        _check_size(Path(path).stat())
        return Path(path).read_bytes()
    except RigError:
        raise
    except FileNotFoundError as error:
        raise RigError("there is no such file.") from error
    except (OSError, ValueError) as error:  # ValueError for a zero byte in the path
        raise RigError(f"cannot be read: {error}.") from error


def _check_size(status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise RigError("is a folder. Name the rig file in it.")
    if not stat.S_ISREG(status.st_mode):  # a pipe would hang, and a device may have no end
        raise RigError("is no ordinary file.")
    if status.st_size > MAX_BYTES:
        raise RigError(f"has {status.st_size} bytes: a rig file has at most {MAX_BYTES}.")


def _decode(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")  # some editors begin a text with a byte order mark
    except UnicodeDecodeError as error:
        raise RigError(f"is not UTF-8 text (at byte {error.start}). Is it a rig file?") from error


def _parse(text: str) -> dict[str, Any]:
    longest = max(len(line) for line in text.split("\n"))
    if longest > MAX_LINE_CHARS:
        raise RigError(f"is not a rig file: a line has {longest} characters.")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise RigError("is not a rig file: it is nested too deeply.") from error
    except ValueError as error:  # TOMLDecodeError, or an integer too long to convert
        raise RigError(f"is not valid TOML: {error}{_quoted_line(text, str(error))}") from error


def _quoted_line(text: str, message: str) -> str:
    # tomllib says where, but not at which key. The line does; of a list over several lines it is
    # the line on which the list begins.
    place = re.search(r"at line (\d+)", message)
    if place is None:
        return ""
    lines = [line.strip()[:80] for line in text.split("\n")[: int(place[1])]]
    opening = next((line for line in reversed(lines) if re.match(r"\[|[^=]+=", line)), lines[-1])
    after = "" if opening is lines[-1] else f", after {opening!r}"
    return f": {lines[-1]!r}{after}"


def _check_version(document: dict[str, Any]) -> None:
    known = f"this D3S reads version {SCHEMA_VERSION}"
    if "schema_version" not in document:
        raise RigError(f"schema_version is missing: {known}. Is it a rig file?")
    version = document["schema_version"]
    if type(version) is not int:  # True is an int too
        raise RigError(f"schema_version={shown(version)} must be a whole number: {known}.")
    if version != SCHEMA_VERSION:
        raise RigError(f"schema_version={shown(version)} is unknown: {known}.")

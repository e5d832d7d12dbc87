"""Files of named values: short TOML texts with a version, read with suspicion.

What the values mean is the business of whoever reads them. The errors here do not name the file:
whoever knows its name adds it.
"""

import os
import re
import stat
import textwrap
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from d3s.errors import RecordError
from d3s.record import shown

# Such a file has a few kilobytes; whoever names a gigabyte of something else learns it at once.
MAX_BYTES = 1_000_000
# tomllib takes a time, and memory, that grow with the square of the number of parts of a key
# (a.a.a...): ten seconds for one line of 40 kB.
MAX_LINE_CHARS = 1000

# A longer list of numbers goes over several lines.
_LIST_CHARS = 75


@dataclass(frozen=True, kw_only=True)
class DocumentKind:
    """One kind of file: what people call it, its version, its first lines, its error."""

    noun: str
    schema_version: int
    header: str
    error: type[RecordError]

    def format(self, values: dict[str, Any]) -> str:
        """Text of a file that holds these values, every float to its last bit."""
        text = tomli_w.dumps({"schema_version": self.schema_version, **values})
        return self.header + re.sub(r"\[\n((?: +[^\n\"]+,\n)+)\]", _on_one_line, text)

    def read(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Values in a file, not checked yet, without the version.

        Raises
        ------
        RecordError
            When the file cannot be read, is not TOML, or is of a version that is not known.
        """
        document = self._parse(self._decode(self._read(path)))
        self._check_version(document)
        return {key: document[key] for key in document if key != "schema_version"}

    def _read(self, path: str | os.PathLike[str]) -> bytes:
        try:
            self._check_size(Path(path).stat())
            return Path(path).read_bytes()
        except RecordError:
            raise
        except FileNotFoundError as error:
            raise self.error("there is no such file.") from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise self.error(f"cannot be read: {reason}. Check the name and the rights.") from error
        except ValueError as error:  # a zero byte in the path
            raise self.error(f"cannot be read: {error}. Check the name.") from error

    def _check_size(self, status: os.stat_result) -> None:
        if stat.S_ISDIR(status.st_mode):
            raise self.error(f"is a folder. Name the {self.noun} in it.")
        if not stat.S_ISREG(status.st_mode):  # a pipe would hang, and a device may have no end
            raise self.error("is no ordinary file.")
        if status.st_size > MAX_BYTES:
            raise self.error(f"has {status.st_size} bytes: a {self.noun} has at most {MAX_BYTES}.")

    def _decode(self, raw: bytes) -> str:
        try:
            return raw.decode("utf-8-sig")  # some editors begin a text with a byte order mark
        except UnicodeDecodeError as error:
            raise self.error(
                f"is not UTF-8 text (at byte {error.start}). Is it a {self.noun}?"
            ) from error

    def _parse(self, text: str) -> dict[str, Any]:
        longest = max(len(line) for line in text.split("\n"))
        if longest > MAX_LINE_CHARS:
            raise self.error(f"is not a {self.noun}: a line has {longest} characters.")
        try:
            return tomllib.loads(text)
        except RecursionError as error:
            raise self.error(f"is not a {self.noun}: it is nested too deeply.") from error
        except ValueError as error:  # TOMLDecodeError, or an integer too long to convert
            raise self.error(
                f"is not valid TOML: {error}{_quoted_line(text, str(error))}"
            ) from error

    def _check_version(self, document: dict[str, Any]) -> None:
        known = f"this D3S reads version {self.schema_version}"
        if "schema_version" not in document:
            raise self.error(f"schema_version is missing: {known}. Is it a {self.noun}?")
        version = document["schema_version"]
        if type(version) is not int:  # True is an int too
            raise self.error(f"schema_version={shown(version)} must be a whole number: {known}.")
        if version != self.schema_version:
            raise self.error(f"schema_version={shown(version)} is unknown: {known}.")


def _on_one_line(numbers: re.Match[str]) -> str:
    """A list of numbers as a person writes it; tomli_w gives each a line of its own."""
    line = ", ".join(line.strip(" ,") for line in numbers[1].splitlines())
    if len(line) <= _LIST_CHARS:
        return f"[{line}]"
    indent = " " * 4
    wrapped = textwrap.fill(
        line, 100, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
    return f"[\n{wrapped},\n]"


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

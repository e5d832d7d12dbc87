"""TOML files of named values, with a schema version.

This module reads and writes the text; the caller validates the values. Errors raised here do not
name the file: the caller adds the path.
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
from d3s.record import short_repr

# A document has a few kilobytes. The limit rejects other, huge files before they are read.
MAX_BYTES = 1_000_000
# Time and memory of tomllib grow with the square of the number of parts of a key (a.a.a...): ten
# seconds for one line of 40 kB.
MAX_LINE_CHARS = 1000

# Longer lists of numbers are wrapped over several lines.
_LIST_CHARS = 75


@dataclass(frozen=True, kw_only=True)
class DocumentKind:
    """Kind of document, such as a rig file."""

    noun: str  # in error messages
    schema_version: int  # that is written, and the only one that is read
    header: str  # comment lines at the top of a file
    error: type[RecordError]  # for a file that cannot be read

    def format(self, values: dict[str, Any]) -> str:
        """Text of a file with these values; floats are exact."""
        text = tomli_w.dumps({"schema_version": self.schema_version, **values})
        # Every line of the pattern matches in one way only: otherwise lists within lists take
        # exponential time.
        numbers = r"\[\n((?: +[^\s\[\]\"][^\n\[\]\"]*,\n)+)( *)\]"
        return self.header + re.sub(numbers, _on_one_line, text)

    def read(self, path: str | os.PathLike[str]) -> dict[str, Any]:
        """Read the values of a file, without the version; the caller validates them."""
        return self.parse(self._read(path))

    def parse(self, content: bytes) -> dict[str, Any]:
        """Values of the content of a file, without the version, as `read` returns them."""
        document = self._parse(self._decode(content))
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
        if not stat.S_ISREG(status.st_mode):  # a pipe would block, a device may be endless
            raise self.error("is no ordinary file.")
        if status.st_size > MAX_BYTES:
            raise self.error(f"has {status.st_size} bytes: a {self.noun} has at most {MAX_BYTES}.")

    def _decode(self, raw: bytes) -> str:
        try:
            return raw.decode("utf-8-sig")  # skips a byte order mark
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
            raise self.error(
                f"schema_version={short_repr(version)} must be a whole number: {known}."
            )
        if version != self.schema_version:
            raise self.error(f"schema_version={short_repr(version)} is unknown: {known}.")


def _on_one_line(numbers: re.Match[str]) -> str:
    """List of numbers on one line, or wrapped; tomli_w writes each number on its own line."""
    line = ", ".join(line.strip(" ,") for line in numbers[1].splitlines())
    if len(line) <= _LIST_CHARS:
        return f"[{line}]"
    indent = numbers[2] + " " * 4
    wrapped = textwrap.fill(
        line, 100, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
    return f"[\n{wrapped},\n{numbers[2]}]"


def _quoted_line(text: str, message: str) -> str:
    # tomllib names the line number but not the key: quote the line, and for a list over several
    # lines also the line on which the list begins.
    place = re.search(r"at line (\d+)", message)
    if place is None:
        return ""
    lines = [line.strip()[:80] for line in text.split("\n")[: int(place[1])]]
    opening = next((line for line in reversed(lines) if re.match(r"\[|[^=]+=", line)), lines[-1])
    after = "" if opening is lines[-1] else f", after {opening!r}"
    return f": {lines[-1]!r}{after}"

"""Parser of the documentation: code blocks, commands and tables of a page."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """Fenced code block of a page."""

    language: str
    code: str


def blocks(page: Path, after: str = "", before: str = "\0") -> list[Block]:
    """All fenced blocks of a page in order, also indented ones; of the part between two texts."""
    found = _BLOCK.findall(page.read_text().partition(after or "#")[2].partition(before)[0])
    return [Block(language, dedent(code)) for _, language, code in found]


def python_blocks(page: Path, after: str = "") -> list[str]:
    """Python blocks of a page, or of its part after a text."""
    return [block.code for block in blocks(page, after) if block.language == "python"]


def shell_lines(code: str) -> Iterator[list[str]]:
    """Words of each command of a shell block, without comments."""
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words


def inline_commands(page: Path, program: str) -> list[list[str]]:
    """Commands of a program in the text, between backticks."""
    found = re.findall(rf"`({program} [^`\n]+)`", page.read_text())
    return [shlex.split(line) for line in found]


def table_rows(page: Path) -> list[list[str]]:
    """Cells of every table row of a page."""
    lines = page.read_text().splitlines()
    rows = [line.strip("|").split(" | ") for line in lines if line.startswith("| ")]
    return [[cell.strip(" |") for cell in row] for row in rows]

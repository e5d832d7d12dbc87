"""Parser of the documentation: fenced blocks and commands of a page."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)


def blocks(page: Path, after: str = "#") -> list[tuple[str, str]]:
    """Language and text of the fenced blocks of a page in order, or of its part after a text."""
    text = page.read_text().partition(after)[2]
    return [(language, dedent(code)) for _, language, code in _BLOCK.findall(text)]


def python_blocks(page: Path, after: str = "#") -> list[str]:
    """Python blocks of a page, or of its part after a text."""
    return [text for language, text in blocks(page, after) if language == "python"]


def shell_lines(text: str) -> Iterator[list[str]]:
    """Words of each command of a shell block, without comments."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words


def commands(page: Path) -> Iterator[list[str]]:
    """Words of each `d3s` command of a page: in shell and text blocks, and between backticks."""
    for language, text in blocks(page):
        if language in ("shell", "text"):
            lines = [line for line in text.replace("\\\n", " ").splitlines() if "d3s " in line]
            yield from (words for words in shell_lines("\n".join(lines)) if words[0] == "d3s")
    for line in re.findall(r"`(d3s [^`]+)`", _BLOCK.sub("", page.read_text())):
        yield shlex.split(line)

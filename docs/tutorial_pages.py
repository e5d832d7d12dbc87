"""Sphinx extension: pages of docs/tutorials are executed, and offered as notebooks.

A tutorial is a Markdown page with Python blocks. While the documentation is built, the blocks of a
page run in order in an empty folder, and what the last line of a block gives is put below it: text,
HTML or a figure, as a notebook shows it. An error in a block fails the build. The same cells with
the same outputs are written as a notebook, which the page links to.
"""

import ast
import base64
import contextlib
import io
import json
import os
import re
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = "tutorials/"
_FENCE = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


class Cell(NamedTuple):
    """Part of a page: Markdown, or code."""

    is_code: bool
    text: str


class Output(NamedTuple):
    """Result of a code cell by MIME type; `stream` is what it printed."""

    stream: str
    data: dict[str, str]


def cells_of(page: str) -> list[Cell]:
    """Cells of a page in order."""
    cells, at = [], 0
    for block in _FENCE.finditer(page):
        cells += [Cell(False, page[at : block.start()].strip("\n")), Cell(True, block[1])]
        at = block.end()
    return [one for one in (*cells, Cell(False, page[at:].strip("\n"))) if one.text]


def run(cells: list[Cell], name: str) -> list[Output]:
    """Outputs of all cells; the code runs in a temporary folder."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return [_output(one, scope, name) for one in cells]
        finally:
            os.chdir(here)


def _output(cell: Cell, scope: dict[str, Any], name: str) -> Output:
    if not cell.is_code:
        return Output("", {})
    tree = ast.parse(cell.text)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda words, kind, *_: print(
            f"{kind.__name__}: {words}", file=printed
        )
        exec(compile(tree, name, "exec"), scope)
        value = None
        if last is not None:
            value = eval(compile(ast.Expression(last.value), name, "eval"), scope)
    return Output(printed.getvalue(), {} if value is None else _shown(value))


def _shown(value: Any) -> dict[str, str]:
    """Representations of a value, as a notebook asks for them."""
    data = {"text/plain": repr(value)}
    page = value._repr_html_() if hasattr(value, "_repr_html_") else None
    if page is not None:  # a figure of Matplotlib may have none
        data["text/html"] = page
    if hasattr(value, "_repr_png_"):
        data["image/png"] = base64.b64encode(value._repr_png_()).decode("ascii")
    return data


def as_page(cells: list[Cell], outputs: list[Output], notebook: str) -> str:
    """Markdown of the page with the outputs below the code, and a link to the notebook."""
    parts = []
    for cell, output in zip(cells, outputs, strict=True):
        parts.append(f"```python\n{cell.text}```" if cell.is_code else cell.text)
        if output.stream:
            parts.append(f"```text\n{output.stream.rstrip()}\n```")
        data = output.data
        if "image/png" in data:
            picture = f'<img alt="figure" src="data:image/png;base64,{data["image/png"]}">'
            parts.append(_raw(picture))
        elif "text/html" in data:
            parts.append(_raw(data["text/html"]))
        elif data:
            parts.append(f"```text\n{data['text/plain']}\n```")
    link = f'<p><a href="{notebook}" download>This page as a notebook</a></p>'
    return "\n\n".join([*parts, _raw(link)]) + "\n"


def _raw(text: str) -> str:
    return f"````{{raw}} html\n{text}\n````"


def as_notebook(cells: list[Cell], outputs: list[Output]) -> dict[str, Any]:
    """Notebook of the page, in the format nbformat 4.5."""
    found, count = [], 0
    for number, (cell, output) in enumerate(zip(cells, outputs, strict=True)):
        entry: dict[str, Any] = {
            "id": f"cell-{number}",
            "cell_type": "code" if cell.is_code else "markdown",
            "metadata": {},
            "source": cell.text.rstrip("\n"),
        }
        if cell.is_code:
            count += 1
            entry |= {"execution_count": count, "outputs": _entries(output, count)}
        found.append(entry)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": kernel, "language_info": {"name": "python"}},
        "cells": found,
    }


def _entries(output: Output, count: int) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    if output.stream:
        entries.append({"output_type": "stream", "name": "stdout", "text": output.stream})
    if output.data:
        entries.append(
            {
                "output_type": "execute_result",
                "execution_count": count,
                "data": output.data,
                "metadata": {},
            }
        )
    return entries


def _read(app: Any, name: str, source: list[str]) -> None:
    """Execute a tutorial when Sphinx reads it."""
    if not name.startswith(FOLDER):
        return
    cells = cells_of(source[0])
    outputs = run(cells, f"{name}.md")
    file = Path(app.outdir) / f"{name}.ipynb"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(as_notebook(cells, outputs), indent=1) + "\n")
    source[0] = as_page(cells, outputs, file.name)


def setup(app: Any) -> dict[str, bool]:
    """Connect the extension to Sphinx."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": False}

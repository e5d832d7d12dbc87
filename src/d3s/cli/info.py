"""`d3s info`: describe files."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from d3s.cli.output import BAD_INPUT, SOME_FAILED, end, say_json, say_step

if TYPE_CHECKING:
    from d3s.cli.description import Info

_BAR_CHARS, _NAME_CHARS = 40, 24
_SHARES = ("density", "share_", "known")


def info(files: list[Path], *, as_json: bool = False) -> None:
    """Say what a file is: an image, depth, points, a rig, a recipe, a folder of captures.

    Sizes, ranges, percentiles and a small histogram; of a depth map also how it was made. Of
    several files, the ones that cannot be read are named, and the exit code is 4, or 3 if there was
    none that could.

    Options:
        files (FILE...): Files or folders.
        as_json: Print everything as JSON, a list.
    """
    from d3s.cli.description import info as info_of
    from d3s.errors import D3SError

    found, refused = [], []
    for path in files:
        try:
            found.append(info_of(path))
        except D3SError as error:
            if len(files) == 1:
                raise
            refused.append(str(error))
    if as_json:
        say_json([one.as_json() for one in found])
    elif found:
        typer.echo("\n\n".join(map(_page, found)))
    for words in refused:
        say_step(f"d3s: {words}")
    if refused:
        end(SOME_FAILED if found else BAD_INPUT)


def _page(one: "Info") -> str:
    from d3s.files.raw import path_text

    lines = [f"{path_text(one.path)}: {one.kind}", *_lines(one.facts, "  ")]
    if one.histogram is not None:
        counts, edges = one.histogram["counts"], one.histogram["edges"]
        lines.append(f"  histogram of {one.histogram['of']}")
        for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
            bar = "#" * round(_BAR_CHARS * count / max(counts))
            share = f"{count / sum(counts):>4.0%}"
            lines.append(f"    {low:>9.4g} to {high:<9.4g} {share} {bar}".rstrip())
    return "\n".join(lines)


def _lines(facts: dict[str, Any], indent: str) -> list[str]:
    """Lines of facts, one each; nested tables are indented."""
    lines = []
    if "rows" in facts and "cols" in facts:
        facts = {"size": f"{facts['rows']} x {facts['cols']} px (rows x columns)", **facts}
        del facts["rows"], facts["cols"]
    for name, value in facts.items():
        if value is None or value in ([], {}):
            continue
        if isinstance(value, dict) and "percentiles" in value:
            lines += _range(name, value, indent)
        elif isinstance(value, dict):
            lines += [f"{indent}{name}", *_lines(value, indent + "  ")]
        else:
            lines.append(_line(name, _words(name, value), indent))
    return lines


def _line(name: str, words: str, indent: str) -> str:
    return f"{indent}{name:<{_NAME_CHARS - len(indent)}} {words}"


def _range(name: str, value: dict[str, Any], indent: str) -> list[str]:
    """Lines on an array: smallest and largest value, and percentiles."""
    first = f"{value['least']:.5g} to {value['largest']:.5g}"
    if value["known"] < 1:
        first += f", known of {value['known']:.1%}"
    if "shape" in value:
        first = f"{value['type']} ({', '.join(map(str, value['shape']))}): {first}"
    percents = [f"{percent}%: {_words('', part)}" for percent, part in value["percentiles"].items()]
    halves = ("  ".join(part) for part in (percents[:4], percents[4:]))
    return [_line(name, first, indent), *(_line("", half, indent) for half in halves)]


def _words(name: str, value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1%}" if name.startswith(_SHARES) or name.isupper() else f"{value:.5g}"
    if isinstance(value, list | tuple):
        return ", ".join(_words(name, part) for part in value)
    return str(value)

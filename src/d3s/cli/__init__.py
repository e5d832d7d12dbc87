"""The command line: one module per command, each a thin layer over the library.

In come arguments; out go calls of the library, lines on stdout, and an exit code.

align, calibrate, check, compare, convert, demo, densify, depth, design, doctor, evaluate, info,
reproduce, simulate
          one command each
live      `d3s live` and `d3s view`
depth_report, calibrate_many
          words and exit code of `d3s depth`; `d3s calibrate` of several cameras
record    `d3s record`, `d3s replay` and `d3s recover`
convert_recording
          conversions of recordings by `d3s convert`
rig       commands on rigs: `d3s rig import`
camera    camera of a command: a file, a name, or numbers
source    source of a command: its word, and options of cameras
page      pages in the browser: where they are served
groups    options that several commands share, as one parameter
output    common options, exit codes, checks of the output folder
progress  progress bar
light     options on colour sensors and on how files store light
units     lengths, shapes and depth ranges with units
start     time since the command began; Ctrl-C during the imports
sweep     options and execution of commands with many trials
"""

from d3s.cli import start  # isort: skip  # first: it takes the time

import codecs
import gc
import io
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperGroup

import d3s
from d3s.cli.output import BAD_INPUT, INTERRUPTED
from d3s.errors import D3SError, MissingPackageError

start.interruptible()

# New objects until garbage is looked for. Imports make many that stay: looking more seldom saves a
# fifth of a second at the start.
_COLLECT_AFTER = 50_000


_DENSE = "--dense=5cm"


# In the order of the help text: what a newcomer needs first. Each is a function, or a group, of the
# module of its name, unless another one is named.
_COMMANDS = {
    **dict.fromkeys(("demo", "depth", "live")),
    "view": "live",
    **dict.fromkeys(("info", "convert", "record")),
    **dict.fromkeys(("replay", "recover"), "record"),
    **dict.fromkeys(("align", "densify", "calibrate", "rig", "check", "simulate", "design")),
    **dict.fromkeys(("evaluate", "compare", "reproduce", "doctor")),
}


class _Modules(Mapping[str, Any]):
    """Commands by name, each imported when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        """Return the command of this name."""
        module = import_module(f"d3s.cli.{_COMMANDS[name] or name}")
        found = getattr(module, name)
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(add_completion=False)
            alone.command(name, help=getattr(module, "HELP", None))(found)
            found = alone
        command = typer.main.get_command(found)
        command.name = name
        _join_lines(command)
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


def _join_lines(command: Any) -> None:
    """Paragraphs of the help as lines of any length: the terminal breaks them where it ends."""
    paragraphs = (command.help or "").split("\n\n")
    command.help = "\n\n".join(" ".join(one.split()) for one in paragraphs)
    for one in getattr(command, "commands", {}).values():
        _join_lines(one)


class _Commands(TyperGroup):
    """Prints a `D3SError` as one sentence; with --debug, raises it with its traceback."""

    def __init__(self, **given: Any) -> None:
        """Take no commands but those of `_COMMANDS`."""
        super().__init__(**given)
        self.commands = _Modules()  # type: ignore[assignment]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse empty arguments of all commands: an empty path would mean the current folder."""
        for before, one in pairwise(("", *args)):
            option, sign, value = one.partition("=")
            if not one or (one.startswith("--") and sign and not value):
                name = option or (before if before.startswith("-") else "")
                raise typer.BadParameter(
                    "it is empty. Is it a variable of the shell that has no value? Give one, or "
                    "leave it away.",
                    ctx=ctx,
                    param_hint=name or f"the argument after {before or 'd3s'}",
                )
        # The value of --dense may be left, which the parser cannot say.
        return super().parse_args(ctx, [_DENSE if one == "--dense" else one for one in args])

    def invoke(self, ctx: Any) -> Any:  # a click context, which typer may bundle
        try:
            return super().invoke(ctx)
        except D3SError as error:
            if ctx.params["debug"]:
                raise
            typer.echo(f"d3s: {error}", err=True)
            ctx.exit(BAD_INPUT)
        except ModuleNotFoundError as error:
            if error.name != "matplotlib" or ctx.params["debug"]:
                raise
            words = MissingPackageError("figures need the package matplotlib", "plot")
            typer.echo(f"d3s: {words}", err=True)
            ctx.exit(BAD_INPUT)


app = typer.Typer(
    cls=_Commands,
    help="Metric depth with an honest error bar from one snapshot of a tiny two-lens camera.",
    epilog="Exit codes: 0 done, 1 nothing usable came out, 2 wrong use, 3 bad input or a place "
    "that cannot be written, 4 some of several inputs or items failed, 5 a camera has drifted, 6 "
    "frames cannot tell whether it has.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"d3s {d3s.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Say which version this is."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show where in the code an error comes from.")
    ] = False,
) -> None:
    """Declare global options: `--version` has a callback, `--debug` is read by `_Commands`."""


def main() -> None:
    """Run the command line and report errors of printing, such as a full disk."""
    _escape_what_cannot_be_printed()
    gc.set_threshold(_COLLECT_AFTER)
    try:
        app()
    except KeyboardInterrupt:  # before a command began, which says more
        sys.exit(INTERRUPTED)
    except OSError as error:
        if not _is_print_error(error):
            raise
        with suppress(OSError):  # stderr may be full as well
            typer.echo(
                f"d3s: cannot print: {error.strerror or error}. Free some space where the output "
                "goes, or send it elsewhere. Files that were written stay.",
                err=True,
            )
        _discard_output()
        sys.exit(BAD_INPUT)


def _escape_what_cannot_be_printed() -> None:
    """Print characters that the terminal cannot show as escapes: an ASCII terminal has no µ."""
    codecs.register_error("d3s", _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None if closed
            stream.reconfigure(errors="d3s")


def _escaped(error: UnicodeError) -> tuple[str | bytes, int]:
    """Error handler of codecs: bytes of file names as they are, other characters escaped."""
    try:
        return codecs.lookup_error("surrogateescape")(error)
    except UnicodeError:
        return codecs.lookup_error("backslashreplace")(error)


def _is_print_error(error: OSError) -> bool:
    """Whether an error was raised by typer, click or rich, which write to the terminal only."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_globals["__name__"].partition(".")[0] in ("typer", "click", "rich")


def _discard_output() -> None:
    """Redirect stdout and stderr to nowhere: Python would flush them again at exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None if closed
        os.dup2(devnull, stream.fileno())

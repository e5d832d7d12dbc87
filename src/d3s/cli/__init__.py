"""The command line: options in, calls of the library, lines on stdout and an exit code out.

options   values with units, the options that commands share, options of records
output    exit codes, tables, progress bar, checks of places
camera    the camera and the source of a command
start     time since the command began; Ctrl-C during the imports

The others have the commands of `_COMMANDS`.
"""

from d3s.cli import start  # isort: skip  # first: it takes the time

import codecs
import gc
import io
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

import d3s
from d3s.cli.options import expanded, help_of
from d3s.cli.output import BAD_INPUT, INTERRUPTED
from d3s.errors import D3SError, MissingPackageError

start.interruptible()

# New objects until garbage is looked for. Imports make many that stay: looking more seldom saves a
# fifth of a second at the start.
_COLLECT_AFTER = 50_000

_DENSE = "--dense=5cm"

# Module and function of each command, in the order of the help text: what a newcomer needs first.
_COMMANDS: dict[str, Any] = {
    "demo": "reproduce",
    "depth": "depth",
    "live": "live",
    "view": "live",
    "info": "info",
    "convert": "convert",
    "record": "record",
    "replay": "record",
    "recover": "record",
    "align": "align",
    "densify": "densify",
    "calibrate": "calibrate",
    "rig": {
        "": "Rig files of stereo cameras, from calibrations of other programs.",
        "import": "camera:import_rig",
    },
    "check": "check",
    "simulate": "simulate",
    "design": "design",
    "evaluate": {
        "": "See how good the methods are, where the truth is known.",
        **dict.fromkeys(("planes", "scenes", "rooms", "thresholds"), "evaluate"),
        **dict.fromkeys(("quality", "stereo", "twin"), "measured"),
    },
    "compare": "compare",
    "reproduce": "reproduce",
    "doctor": "doctor",
}

# Options that were called otherwise, and what they are called now.
_RENAMED = {
    **dict.fromkeys(("--reach", "--near", "--far"), "--depth-range NEAREST:FARTHEST"),
    **dict.fromkeys(("--sequence", "--depths"), "--distances"),
    **dict.fromkeys(("--scenes", "--rooms"), "--count"),
    "--pixels": "--shape ROWSxCOLS",
    "--pixel": "--pixel-pitch LENGTH",
    "--focal-length-px": "--focal-length 6050px",
    "--design": "--rig FILE",
    "--fast": "--quick",
    "--pairs": "names that say left and right",
    "--skip-done": "the same command, which goes on by itself",
}


class _Modules(Mapping[str, Any]):
    """Commands by name, each imported when it is asked for."""

    def __init__(self, table: dict[str, Any]) -> None:
        self._table = {name: place for name, place in table.items() if name}

    def function(self, name: str) -> Callable[..., None]:
        """Function of a command."""
        module, _, function = self._table[name].partition(":")
        found: Callable[..., None] = getattr(import_module(f"d3s.cli.{module}"), function or name)
        return found

    def help_of(self, name: str) -> str:
        """Help text of a command, without its options."""
        place = self._table[name]
        return place[""] if isinstance(place, dict) else help_of(self.function(name))

    def __getitem__(self, name: str) -> Any:
        """Return the command of this name."""
        place = self._table[name]
        if isinstance(place, dict):
            return _Group(name=name, table=place, help=place[""], no_args_is_help=True)
        alone = typer.Typer(add_completion=False)
        alone.command(name, help=self.help_of(name))(expanded(self.function(name)))
        command = typer.main.get_command(alone)
        command.name = name
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)


class _Group(TyperGroup):
    """Commands that are imported and given their options when they are asked for."""

    def __init__(self, *, table: dict[str, Any] = _COMMANDS, **given: Any) -> None:
        super().__init__(**given)
        self.commands = self._modules = _Modules(table)  # type: ignore[assignment]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help page, which needs the first sentence of each command only."""
        self.commands = {
            name: TyperCommand(name, help=self._modules.help_of(name)) for name in self._modules
        }
        super().format_help(ctx, formatter)


class _Commands(_Group):
    """Prints a `D3SError` as one sentence; with --debug, raises it with its traceback."""

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
            if option in _RENAMED:
                raise typer.BadParameter(
                    f"there is no such option. Did you mean {_RENAMED[option]}?",
                    ctx=ctx,
                    param_hint=option,
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

"""The command line: one module a command, each a thin layer over the library."""

import os
import sys
import traceback
from contextlib import suppress
from itertools import pairwise
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import d3s
from d3s.cli.calibrate import calibrate
from d3s.cli.compare import compare
from d3s.cli.convert import HELP as CONVERT_HELP
from d3s.cli.convert import convert
from d3s.cli.demo import demo
from d3s.cli.depth import depth
from d3s.cli.doctor import doctor
from d3s.cli.evaluate import evaluate
from d3s.cli.info import info
from d3s.cli.output import BAD_INPUT
from d3s.cli.reproduce import reproduce
from d3s.cli.simulate import simulate
from d3s.errors import D3SError


class _Commands(TyperGroup):
    """Tells an error of ours in a sentence; with --debug, where in the code it comes from."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse what is empty, here for all commands: as a path it would be this very folder."""
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
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:  # a context of click, which typer may carry inside
        try:
            return super().invoke(ctx)
        except D3SError as error:
            if ctx.params["debug"]:
                raise
            typer.echo(f"d3s: {error}", err=True)
            ctx.exit(BAD_INPUT)


app = typer.Typer(
    cls=_Commands,
    help="Metric depth with an honest error bar from one snapshot of a tiny two-lens camera.",
    epilog="Exit codes: 0 done, 1 nothing usable came out, 2 wrong use, 3 bad input or a place "
    "that cannot be written, 4 some of several inputs or items failed.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
# In the order in which people come to need them.
app.command()(demo)
app.command()(depth)
app.command()(info)
app.command(help=CONVERT_HELP)(convert)
app.command()(calibrate)
app.command()(simulate)
app.add_typer(evaluate, name="evaluate")
app.command()(compare)
app.command()(reproduce)
app.command()(doctor)


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
    """Both options are taken up elsewhere: by the callback above, and by `_Commands`."""


def main() -> None:
    """Run the command line."""
    try:
        app()
    except OSError as error:
        if not _is_of_printing(error):
            raise
        with suppress(OSError):  # stderr may be full as well
            typer.echo(
                f"d3s: cannot print: {error.strerror or error}. Free some space where the output "
                "goes, or send it elsewhere. Files that were written stay.",
                err=True,
            )
        _print_nowhere()
        sys.exit(BAD_INPUT)


def _is_of_printing(error: OSError) -> bool:
    """Whether it comes from the packages that print: they write to nothing else."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_globals["__name__"].partition(".")[0] in ("typer", "click", "rich")


def _print_nowhere() -> None:
    """Python would try once more when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None where it is closed
        os.dup2(nowhere, stream.fileno())

"""The command line: one module a command, each a thin layer over the library.

Exit codes: 0 done, 1 nothing usable came out, 2 wrong use, 3 bad input or output place.
"""

import sys
from typing import Annotated

import typer

import d3s
from d3s.cli.demo import demo
from d3s.errors import D3SError

BAD_INPUT = 3

app = typer.Typer(
    help="Metric depth with an honest error bar from one snapshot of a tiny two-lens camera.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(demo)


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
    pass


def main() -> None:
    """Run the command line; an error of ours is told in a sentence, not as a traceback."""
    try:
        app()
    except D3SError as error:
        if "--debug" in sys.argv:
            raise
        typer.echo(f"d3s: {error}", err=True)
        sys.exit(BAD_INPUT)

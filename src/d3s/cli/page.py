"""Pages in the browser: the address that they are served at, until Ctrl-C."""

import gc
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from d3s.camera.live.server import Page

Host = Annotated[
    str,
    typer.Option(
        help="Address to listen at. Any other than this lets other machines watch and control the "
        "camera, if they have the printed address, over a connection that is not encrypted."
    ),
]
Port = Annotated[
    int, typer.Option(min=0, max=65535, help="Port to listen at; 0 for any that is free.")
]
Browser = Annotated[
    bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
]


class Address(NamedTuple):
    """Options on where pages are served."""

    host: Host = "127.0.0.1"
    port: Port = 0
    browser: Browser = True


def serve(
    pages: "list[Page]", address: Address, *, seconds: float | None = None, quiet: bool = False
) -> None:
    """Serve pages until Ctrl-C, or for some seconds.

    Parameters
    ----------
    pages
        Pages; the first is opened.
    address
        Where to.
    seconds
        Time after which it ends; None for no end.
    quiet
        Whether to print nothing but a warning.
    """
    from d3s.camera.live.security import warning_of
    from d3s.camera.live.server import Server

    def ready(link: str) -> None:
        gc.freeze()  # what is loaded stays: looking through it would hold up the grab thread
        warning = warning_of(address.host)
        if warning:
            typer.echo(f"Warning: {warning}", err=True)
        if not quiet:
            typer.echo(f"Open {link}\nCtrl-C ends it.")
        if address.browser:
            typer.launch(link)

    try:
        Server(pages, host=address.host, port=address.port).run(ready, seconds=seconds)
    finally:
        gc.unfreeze()

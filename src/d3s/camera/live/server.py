"""Web server of live pages: any number of pages, each with its files and one kind of WebSocket.

    server = Server([Page(name="live", title="Live", files=folder, serve=serve)])
    with server.running() as address: ...

Addresses are /TOKEN/NAME/ (the page in its shell), /TOKEN/NAME/FILE, /TOKEN/NAME/socket, and
/TOKEN/shared/FILE for files that all pages share. Nothing else is served. Files are those of a
folder of the package, read once at the start.

A page of another site must not read what the camera sees. It does not know the token; its requests
carry its own Origin; and if it renames itself to this machine (DNS rebinding), they carry its name
in Host. Each check alone refuses it.
"""

import asyncio
import ipaddress
import logging
import secrets
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from html import escape
from importlib.resources import files as package_files
from importlib.resources.abc import Traversable
from string import Template
from urllib.parse import urlsplit

from aiohttp import http_exceptions, web, web_protocol

from d3s.errors import InputError

LOOPBACK = "127.0.0.1"
"""Address of this machine that no other machine can reach."""

MAX_MESSAGE_BYTES = 16_384
"""Largest message that a client can send."""

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
        "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every answer: nothing is cached, framed, or loaded from elsewhere."""

DOCUMENT_HEADERS = HEADERS | {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; "
        "base-uri 'none'; form-action 'none'"
    )
}
"""Headers of a document that has its styles and pictures in itself, and no scripts."""


@dataclass(frozen=True, kw_only=True)
class Gate:
    """Rule that decides whether a request is answered.

    Parameters
    ----------
    host
        Address that the server listens at; 0.0.0.0 and :: are all addresses of this machine.
    port
        Its port.
    token
        Secret part of the address.
    """

    host: str
    port: int
    token: str = field(default_factory=partial(secrets.token_urlsafe, 18), repr=False)

    @property
    def address(self) -> str:
        """Address to open in a browser, with the token."""
        name = socket.gethostname() if is_wildcard(self.host) else self.host
        name = f"[{name}]" if ":" in name else name
        return f"http://{name}:{self.port}/{self.token}/"

    def refusal(self, *, token: str, host: str | None, origin: str | None, is_socket: bool) -> str:
        """Reason why a request is refused; empty if it is not."""
        if not self._is_own_host(host):
            return "the Host of the request is not this server."
        if origin is None and is_socket:
            return "a WebSocket needs an Origin."
        if origin is not None and origin.lower() != f"http://{host}".lower():
            return "the request comes from a page of another Origin."
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            return "the token is missing or wrong. Open the address that d3s printed."
        return ""

    def _is_own_host(self, host: str | None) -> bool:
        """Whether Host names this server: a foreign name that leads here is refused."""
        if not host:
            return False
        try:
            parts = urlsplit(f"//{host}")
            name, port = (parts.hostname or "").lower(), parts.port or 80
        except ValueError:
            return False
        if port != self.port or parts.username is not None or parts.path:
            return False
        if is_wildcard(self.host):
            return _is_ip(name) or name in ("localhost", socket.gethostname().lower())
        return name == self.host.lower() or (
            is_loopback(self.host) and name in (LOOPBACK, "localhost")
        )


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine only."""
    return host == "localhost" or (_is_ip(host) and ipaddress.ip_address(host).is_loopback)


def is_wildcard(host: str) -> bool:
    """Whether an address stands for all addresses of this machine."""
    return _is_ip(host) and ipaddress.ip_address(host).is_unspecified


def warning_of(host: str) -> str:
    """Sentence on what it means to listen at this address; empty for this machine only."""
    if is_loopback(host):
        return ""
    everywhere = "every network that this machine is in"
    where = everywhere if is_wildcard(host) else f"the network of {host}"
    return (
        f"the page can be reached from {where}, without encryption: everybody who has the address "
        "with its token sees the pictures and changes settings, and everybody on the way can read "
        "the token."
    )


def _is_ip(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


# Pages --------------------------------------------------------------------------------------------

_TYPES = {"": "text/html", ".css": "text/css", ".js": "text/javascript"}  # by suffix
_HEARTBEAT_S = 20.0  # after which a client that does not answer is disconnected
_SHUTDOWN_S = 2.0
_STRANGER_S = 10.0  # after which a connection that has not shown the token is closed
_MOST_STRANGERS = 64  # such connections at once; the oldest goes first
_BACKLOG = 16  # connections that are taken at once, so that the oldest is one that is made


def _is_of_ours(record: logging.LogRecord) -> bool:
    """Whether an error is not of a malformed request, whose text may have the token."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, http_exceptions.HttpProcessingError)


_LOG = logging.getLogger(__name__)
_LOG.addFilter(_is_of_ours)


@dataclass(frozen=True, kw_only=True)
class Page:
    """One page of a server: a shell that all share, with its own `body.html`, script and styles."""

    name: str  # part of the address, and name of the script and the styles
    title: str
    files: Traversable | None = None  # folder, most often in the package; no subfolders
    serve: Callable[[web.WebSocketResponse], Awaitable[None]] | None = None  # until it returns
    answer: Callable[[], str | None] | None = None  # in their place: a page without scripts

    def read_files(self) -> dict[str, bytes]:
        """Contents of the files by name."""
        if self.files is None:
            return {}
        found = _read_folder(self.files)
        shell = Template(_shared()["shell.html"].decode())
        body = found.pop("body.html").decode()
        page = shell.substitute(name=self.name, title=escape(self.title), body=body)
        return {**found, "": page.encode()}


def _shared() -> dict[str, bytes]:
    """Files that all pages share."""
    return _read_folder(package_files("d3s.camera.live") / "pages" / "shared")


def _read_folder(folder: Traversable) -> dict[str, bytes]:
    suffixes = (".html", *filter(None, _TYPES))
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.name.endswith(suffixes)}


class Server:
    """Web server of pages; closed to other machines unless `host` says otherwise.

    Parameters
    ----------
    pages
        Pages; the first is where the address leads.
    host
        Address to listen at. 127.0.0.1 is this machine only; 0.0.0.0 is every network that this
        machine is in, where everybody who has the address with its token can watch and control.
    port
        Port to listen at; 0 takes any that is free.
    """

    def __init__(self, pages: Sequence[Page], host: str = LOOPBACK, port: int = 0) -> None:
        names = [page.name for page in pages]
        if not names or len({*names, "shared"}) <= len(names):
            raise InputError(f"pages are named {names}: there must be one, and no name twice.")
        self.gate = Gate(host=host, port=port)
        self._pages = {page.name: page for page in pages}
        self._files = {page.name: page.read_files() for page in pages} | {"shared": _shared()}
        self._sockets: set[web.WebSocketResponse] = set()
        self._strangers: dict[web_protocol.RequestHandler, None] = {}
        self._runner: web.AppRunner | None = None
        self._listener: asyncio.Server | None = None

    @property
    def clients(self) -> int:
        """Number of open WebSockets."""
        return len(self._sockets)

    async def start(self) -> str:
        """Start to listen, in the running event loop; return the address, with its token."""
        app = web.Application(client_max_size=MAX_MESSAGE_BYTES)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(
            app, access_log=None, logger=_LOG, shutdown_timeout=_SHUTDOWN_S, handle_signals=False
        )
        await self._runner.setup()
        gate = self.gate
        try:
            self._listener = await asyncio.get_running_loop().create_server(
                self._connection, gate.host, gate.port, backlog=_BACKLOG
            )
        except OSError as error:
            await self._runner.cleanup()
            raise InputError(
                f"cannot listen at {gate.host}, port {gate.port}: {error.strerror or error}. "
                "Choose another --port, or 0 for any that is free."
            ) from error
        port = self._listener.sockets[0].getsockname()[1]
        self.gate = Gate(host=gate.host, port=port, token=gate.token)
        return self.gate.address

    async def stop(self) -> None:
        """Close all connections, and stop to listen."""
        for one in tuple(self._sockets):
            await one.close(code=1001, message=b"the server stops")
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def _connection(self) -> asyncio.Protocol:
        """Protocol of a new connection, which must show the token in time."""
        server = None if self._runner is None else self._runner.server
        if server is None:  # it stops
            return asyncio.Protocol()
        if len(self._strangers) >= _MOST_STRANGERS:
            self._drop_stranger(next(iter(self._strangers)))
        new = server()
        self._strangers[new] = None
        asyncio.get_running_loop().call_later(_STRANGER_S, self._drop_stranger, new)
        return new

    def _drop_stranger(self, connection: web_protocol.RequestHandler) -> None:
        if connection in self._strangers:
            del self._strangers[connection]
            connection.force_close()

    def run(self, ready: Callable[[str], None], *, seconds: float | None = None) -> None:
        """Serve until Ctrl-C, SIGTERM, or for a time."""
        with suppress(KeyboardInterrupt, asyncio.CancelledError):
            asyncio.run(self._run(ready, seconds))

    async def _run(self, ready: Callable[[str], None], seconds: float | None) -> None:
        task = asyncio.current_task()
        if task is not None:
            with suppress(ValueError, NotImplementedError):  # not in the main thread
                asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        ready(await self.start())
        try:
            await (asyncio.Event().wait() if seconds is None else asyncio.sleep(seconds))
        finally:
            await self.stop()

    @contextmanager
    def running(self) -> Iterator[str]:
        """Run the server in a thread of its own; gives the address."""
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="d3s-server", daemon=True)
        thread.start()
        try:
            yield asyncio.run_coroutine_threadsafe(self.start(), loop).result()
        finally:
            asyncio.run_coroutine_threadsafe(self.stop(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request: checks first, then the page's own answer, the WebSocket, or a file."""
        token, *path = request.match_info["path"].split("/")
        is_socket = request.headers.get("Upgrade", "").lower() == "websocket"
        refusal = self.gate.refusal(
            token=token,
            host=request.headers.get("Host"),
            origin=request.headers.get("Origin"),
            is_socket=is_socket,
        )
        if refusal:
            return web.Response(status=403, text=f"Refused: {refusal}\n", headers=HEADERS)
        self._strangers.pop(request.protocol, None)
        if request.method != "GET":
            return web.Response(status=405, text="Only GET is answered.\n", headers=HEADERS)
        match path:
            case [] | [""]:
                return _moved(f"/{token}/{next(iter(self._pages))}/")
            case [name] if name in self._files:  # so that relative addresses of the page work
                return _moved(f"/{token}/{name}/")
            case [name, "socket"] if is_socket and name in self._pages:
                serve = self._pages[name].serve
                if serve is not None:
                    return await self._serve_socket(request, serve)
            case [name, file]:
                return self._file(name, file)
        return _not_found()

    def _file(self, name: str, file: str) -> web.Response:
        page = self._pages.get(name)
        if page is not None and page.answer is not None:
            text = None if file else page.answer()
            if text is None:
                return _not_found()
            return web.Response(text=text, content_type="text/html", headers=DOCUMENT_HEADERS)
        content = self._files.get(name, {}).get(file)
        kind = _TYPES.get(file[file.rfind(".") :])
        if content is None or kind is None:
            return _not_found()
        return web.Response(body=content, content_type=kind, charset="utf-8", headers=HEADERS)

    async def _serve_socket(
        self, request: web.Request, serve: Callable[[web.WebSocketResponse], Awaitable[None]]
    ) -> web.WebSocketResponse:
        answer = web.WebSocketResponse(
            max_msg_size=MAX_MESSAGE_BYTES, heartbeat=_HEARTBEAT_S, compress=False
        )
        await answer.prepare(request)
        self._sockets.add(answer)
        try:
            await serve(answer)
        finally:
            self._sockets.discard(answer)
            await answer.close()
        return answer


def _moved(path: str) -> web.Response:
    return web.Response(status=302, headers={**HEADERS, "Location": path})


def _not_found() -> web.Response:
    return web.Response(status=404, text="There is no such page.\n", headers=HEADERS)

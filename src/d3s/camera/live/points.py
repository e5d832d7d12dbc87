"""`PointsPage`: the newest depth as 3D points, by viser, behind the checks of our own server.

viser's server has no check of who connects, and any client can ask it to open a public tunnel. So
it answers requests only that carry a secret header, which a browser cannot send and our proxy adds
after token, Host and Origin were checked; requests for a tunnel are dropped on the way, and have no
handler.
"""

import asyncio
import functools
import importlib
import io
import math
import secrets
import threading
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any, Self

import numpy as np
from aiohttp import ClientError, ClientSession, ClientWebSocketResponse, WSMsgType, web
from numpy.typing import NDArray

from d3s.camera.live import check_points
from d3s.camera.live.results import LiveDepth
from d3s.camera.live.saved import Show
from d3s.camera.live.security import HEADERS, LOOPBACK
from d3s.camera.live.server import Page
from d3s.errors import InputError
from d3s.estimate import DepthMap

MOST_POINTS = 100_000
"""Points that are shown at most."""

MOST_CLIENT_BYTES = 65_536
"""Largest message of a client: its camera, and clicks."""

_SECRET_HEADER = "X-D3S-Secret"
_TUNNEL = b"ShareUrl"  # in the type of the messages that open and close a tunnel
_ROOM = 1.1  # of the first view, to the size of the picture
_WAIT_S = 0.5
# viser's page is one file with scripts and styles inside.
_HEADERS = HEADERS | {
    "Content-Security-Policy": (
        "default-src 'self' 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval' blob: data:; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )
}


def points_of(shown: DepthMap, most: int = MOST_POINTS) -> tuple[NDArray[Any], NDArray[np.uint8]]:
    """Points in space, float32 in metres, and their colours, of at most so many pixels."""
    found = shown.points()
    count = len(found.xyz_m)
    kept = np.linspace(0, count - 1, min(count, most)).astype(np.intp)
    xyz_m = np.ascontiguousarray(found.xyz_m[kept], dtype=np.float32)
    if found.colour is not None:
        return xyz_m, found.colour[kept]
    if found.intensity is None:
        return xyz_m, np.full((len(kept), 3), 128, dtype=np.uint8)
    grey = np.sqrt(np.clip(np.nan_to_num(found.intensity[kept]), 0, 1))
    return xyz_m, np.repeat((255 * grey).astype(np.uint8)[:, np.newaxis], 3, axis=1)


class PointsPage:
    """Page of 3D points; `with PointsPage(show) as points: Server([..., points.page])`."""

    def __init__(self, show: Show) -> None:
        check_points()
        self._show = show
        self._secret = secrets.token_urlsafe(24)
        self._viser = _guarded_server(self._secret)
        self._port = int(self._viser.get_port())
        self._changed = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="d3s-points", daemon=True)

    @property
    def page(self) -> Page:
        """Page for the server."""
        return Page(name="points", title="3D points", answer=self._answer)

    @property
    def port(self) -> int:
        """Port of viser itself, which refuses everybody but our proxy."""
        return self._port

    def __enter__(self) -> Self:
        """Start to follow the results."""
        self._viser.scene.set_up_direction("-y")  # y is down in our coordinates
        self._viser.gui.configure_theme(show_share_button=False)
        self._viser.on_client_connect(self._look_forward)
        self._show.results.listeners.append(self._changed.set)
        self._changed.set()
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop viser."""
        self._stopping.set()
        self._changed.set()
        self._show.results.listeners.remove(self._changed.set)
        self._thread.join()
        with redirect_stdout(io.StringIO()):
            self._viser.stop()

    def _work(self) -> None:
        """Send points of the newest result, while anybody watches."""
        sent: object = None
        while not self._stopping.is_set():
            self._changed.wait(_WAIT_S)
            self._changed.clear()
            result, limits = self._show.results.peek(), self._show.settings.shown
            if result is None or not self._viser.get_clients() or (result, limits) == sent:
                continue
            xyz_m, colours = points_of(result.shown(limits))
            self._viser.scene.add_point_cloud(
                "/depth", xyz_m, colours, point_size=_spacing_m(xyz_m, result), precision="float32"
            )
            sent = (result, limits)

    def _look_forward(self, client: Any) -> None:
        """Begin with the view of the left lens, with some room around it."""
        result = self._show.results.peek()
        client.camera.position = (0.0, 0.0, 0.0)
        client.camera.look_at = (0.0, 0.0, 1.0)
        if result is not None:
            focal_px = result.depth_map.rig.optics.focal_length_px
            client.camera.fov = 2 * math.atan(_ROOM * max(result.shape) / 2 / focal_px)

    # Proxy ----------------------------------------------------------------------------------------

    async def _answer(self, request: web.Request, rest: str) -> web.StreamResponse:
        """Pass a request on to viser; the server has checked it."""
        async with ClientSession(headers={_SECRET_HEADER: self._secret}) as session:
            try:
                if request.headers.get("Upgrade", "").lower() == "websocket":
                    return await self._pass_socket(request, session)
                address = f"http://{LOOPBACK}:{self._port}/{rest}"
                async with session.get(address) as answer:
                    return web.Response(
                        status=answer.status,
                        body=await answer.read(),
                        content_type=answer.content_type,
                        headers=_HEADERS,
                    )
            except ClientError:
                return web.Response(status=502, text="3D points do not answer.\n", headers=HEADERS)

    async def _pass_socket(
        self, request: web.Request, session: ClientSession
    ) -> web.WebSocketResponse:
        names = request.headers.get("Sec-WebSocket-Protocol", "")
        protocols = [one.strip() for one in names.split(",") if one.strip()]
        async with session.ws_connect(
            f"ws://{LOOPBACK}:{self._port}/", protocols=protocols, max_msg_size=0, compress=0
        ) as inner:
            outer = web.WebSocketResponse(
                protocols=protocols, max_msg_size=MOST_CLIENT_BYTES, heartbeat=20.0, compress=False
            )
            await outer.prepare(request)
            await _pump(outer, inner)
            return outer


async def _pump(outer: web.WebSocketResponse, inner: ClientWebSocketResponse) -> None:
    """Pass messages in both directions until one side closes; requests for a tunnel are dropped."""

    async def outwards() -> None:
        async for message in inner:
            if message.type is WSMsgType.BINARY:
                await outer.send_bytes(message.data)

    async def inwards() -> None:
        async for message in outer:
            if message.type is WSMsgType.BINARY and _TUNNEL not in message.data:
                await inner.send_bytes(message.data)

    tasks = [asyncio.create_task(outwards()), asyncio.create_task(inwards())]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await outer.close()


# Guard --------------------------------------------------------------------------------------------


def _guarded_server(secret: str) -> Any:
    """Viser's server on this machine, which refuses requests without the secret.

    viser does not let its callers check requests, so the function that it serves with is wrapped
    while it starts.
    """
    viser = importlib.import_module("viser")
    library: Any = importlib.import_module("websockets.asyncio.server")
    original: Callable[..., Any] = library.serve
    is_guarded = threading.Event()

    @functools.wraps(original)
    def guarded(*arguments: Any, **options: Any) -> Any:
        is_guarded.set()
        options["process_request"] = _with_secret(options.get("process_request"), secret)
        options["max_size"] = MOST_CLIENT_BYTES
        return original(*arguments, **options)

    library.serve = guarded
    try:
        with redirect_stdout(io.StringIO()):  # it prints its own address, which refuses everybody
            server = viser.ViserServer(host=LOOPBACK, port=0, verbose=False)
    finally:
        library.serve = original
    if not is_guarded.is_set() or not _without_tunnel(server):
        server.stop()
        raise InputError(
            f"viser {viser.__version__} cannot be guarded: it serves in another way than viser 1.1 "
            "does. Install viser 1.1, or leave --points."
        )
    return server


def _with_secret(inner: Callable[..., Any] | None, secret: str) -> Callable[..., Any]:
    def process_request(connection: Any, request: Any) -> Any:
        given = request.headers.get(_SECRET_HEADER, "")
        if not secrets.compare_digest(given.encode(), secret.encode()):
            return connection.respond(403, "Refused: open 3D points from the live page.\n")
        return None if inner is None else inner(connection, request)

    return process_request


def _without_tunnel(server: Any) -> bool:
    """Take away the handlers that open and close tunnels; tells whether they are gone."""
    messages = importlib.import_module("viser._messages")
    sockets: Any = getattr(server, "_websock_server", None)
    try:
        for kind in (messages.ShareUrlRequest, messages.ShareUrlDisconnect):
            sockets.unregister_handler(kind)
            if kind in sockets._incoming_handlers:
                return False
    except (AttributeError, AssertionError):
        return False
    return True


def _spacing_m(xyz_m: NDArray[Any], result: LiveDepth) -> float:
    """Distance of neighbouring points at the middle depth, which is the size to draw them at."""
    if not len(xyz_m):
        return 1e-3
    step_px = math.sqrt(result.depth_map.depth_m.size / len(xyz_m))
    return float(np.median(xyz_m[:, 2])) * step_px / result.depth_map.rig.optics.focal_length_px

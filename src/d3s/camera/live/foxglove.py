"""Depth of a show in the application Foxglove, live, by the SDK that writes recordings."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from d3s.camera.live.pipeline import Pipeline
from d3s.camera.live.server import LOOPBACK
from d3s.camera.recording import mcap
from d3s.camera.recording.mcap import Channels
from d3s.camera.recording.writer import send_depth, send_images
from d3s.errors import InputError
from d3s.estimate.saving import as_image
from d3s.frames import Frame

PORT = 8765
"""Port that Foxglove proposes."""
_TOPICS = (
    *(mcap.LEFT, mcap.RIGHT, mcap.LEFT_CAMERA, mcap.RIGHT_CAMERA),
    *(mcap.DEPTH, mcap.SIGMA, mcap.DISPARITIES, mcap.DEPTH_CAMERA),
)
WARNING = (
    "Foxglove is served without a token, and neither Host nor Origin is checked: every program and "
    "every page in a browser of this machine can read the pictures."
)


@contextmanager
def serving(show: Pipeline, *, title: str, port: int = PORT) -> Iterator[str]:
    """Serve views, depth and sigma to Foxglove on this machine; gives the address.

    Parameters
    ----------
    show
        Pipeline whose newest result is sent while somebody watches.
    title
        Name of the source.
    port
        Port to listen at; 0 for any that is free.
    """
    channels = Channels()
    import foxglove

    try:
        server = foxglove.start_server(
            name=title, host=LOOPBACK, port=port, context=channels.context
        )
    except RuntimeError as error:
        raise InputError(f"Foxglove cannot be served at port {port}: {error}") from error
    for topic in _TOPICS:
        channels.declare(topic)
    changed, stopping = threading.Event(), threading.Event()

    def send() -> None:
        while changed.wait() and not stopping.is_set():
            changed.clear()
            result = show.results.peek()
            if result is None or not channels.is_watched:
                continue
            now_ns = time.time_ns()
            shown = result.shown(show.settings.shown)
            if result.left is not None and result.right is not None:
                pair = Frame(number=result.number, views=(result.left, result.right))
                send_images(channels, pair, shown.rig, now_ns)
            send_depth(channels, as_image(shown), now_ns)

    thread = threading.Thread(target=send, name="d3s-foxglove", daemon=True)
    thread.start()
    show.results.listeners.append(changed.set)
    try:
        yield f"ws://{LOOPBACK}:{server.port}"
    finally:
        with suppress(ValueError):
            show.results.listeners.remove(changed.set)
        stopping.set()
        changed.set()
        thread.join()
        server.stop()

"""3D points by viser: what is sent, and that only our own checked server reaches it."""

import asyncio

import aiohttp
import numpy as np
import pytest

import d3s
from d3s.camera.live import points
from d3s.camera.live.feed import Feed, live_page
from d3s.camera.live.pipeline import Pipeline
from d3s.camera.live.server import Server
from d3s.camera.live.shows import LiveShow
from live_pages import DEPTHS_M, RIG, FakeCamera, views

pytest.importorskip("viser")
msgspec = pytest.importorskip("msgspec")


@pytest.fixture(scope="module")
def running():
    with Pipeline(FakeCamera(), RIG) as pipeline:
        show = LiveShow(pipeline, title="points", has_points=True)
        feed = Feed(show)
        with points.PointsPage(show) as page, Server([live_page(feed), page.page]).running() as at:
            yield page, at
        feed.close()


def status(address, **headers):
    async def run():
        async with (
            aiohttp.ClientSession() as session,
            session.get(address, headers=headers) as answer,
        ):
            return answer.status, await answer.text()

    return asyncio.run(run())


def handshake(address, **headers):
    async def run():
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(address, headers=headers, protocols=["viser-v1.1.1"]),
        ):
            return 101

    try:
        return asyncio.run(run())
    except aiohttp.WSServerHandshakeError as error:
        return error.status


async def ask_for_tunnel(address, headers):
    """Send the message by which a client of viser opens a public tunnel."""
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.ws_connect(address, protocols=["viser-v1.1.1"]) as socket,
    ):
        await socket.send_bytes(msgspec.msgpack.encode({"type": "ShareUrlRequest"}))
        await asyncio.sleep(0.5)


def origin(address) -> str:
    return "/".join(address.split("/")[:3])


def test_page_comes_through_our_server(running):
    _, address = running
    code, text = status(f"{address}points/")
    assert code == 200
    assert "<html" in text.lower()
    assert handshake(f"{address}points", Origin=origin(address)) == 101


def test_viser_itself_refuses_everybody(running):
    page, _ = running
    direct = f"http://127.0.0.1:{page.port}"
    assert status(f"{direct}/")[0] == 403
    assert handshake(direct) == 403
    assert handshake(direct, Origin=direct) == 403
    assert handshake(direct, **{"X-D3S-Secret": "guess"}) == 403


def test_checks_of_our_server_hold_for_points(running):
    _, address = running
    own = origin(address)
    assert status(f"{address}points/", Host="evil.example")[0] == 403
    assert handshake(f"{address}points", Origin="http://evil.example") == 403
    assert handshake(f"{address}points") == 403
    assert handshake(f"{own}/wrong/points", Origin=own) == 403
    assert status(f"{own}/wrong/points/")[0] == 403


@pytest.mark.parametrize("is_dropped_on_the_way", [True, False])
def test_tunnel_cannot_be_asked_for(running, monkeypatch, is_dropped_on_the_way):
    """Neither through the proxy, which drops the request, nor by viser, which has no handler."""
    page, address = running
    asked = []
    monkeypatch.setattr(page._viser, "request_share_url", lambda *_, **__: asked.append(1))
    if not is_dropped_on_the_way:
        monkeypatch.setattr(points, "_TUNNEL", b"nothing that is ever sent")

    asyncio.run(ask_for_tunnel(f"{address}points", headers={"Origin": origin(address)}))
    assert asked == []


def test_version_that_cannot_be_guarded_is_refused(monkeypatch):
    monkeypatch.setattr(points, "_without_tunnel", lambda _: False)
    with pytest.raises(d3s.errors.InputError, match="cannot be guarded"):
        points._guarded_server("secret")


def test_points_are_those_of_the_depth_map():
    est = d3s.estimate(*views(0), RIG)
    xyz_m, colours = points.points_of(est)
    assert xyz_m.dtype == np.float32
    assert len(xyz_m) == len(colours) == est.valid.sum()
    assert np.median(xyz_m[:, 2]) == pytest.approx(DEPTHS_M[0], abs=0.02)
    few, colours = points.points_of(est, 500)
    assert len(few) == len(colours) == 500
    assert np.median(few[:, 2]) == pytest.approx(DEPTHS_M[0], abs=0.02)


def test_tunnel_opens_without_our_guard(monkeypatch):
    """The message of the test above is the one that opens a tunnel, where nothing guards."""
    monkeypatch.setattr(points, "_without_tunnel", lambda _: True)
    server = points._guarded_server("secret")
    asked = []
    monkeypatch.setattr(server, "request_share_url", lambda *_, **__: asked.append(1))

    address = f"ws://127.0.0.1:{server.get_port()}/"
    try:
        asyncio.run(ask_for_tunnel(address, headers={"X-D3S-Secret": "secret"}))
    finally:
        server.stop()
    assert asked == [1]

"""The server as a client sees it: frames, clicks, settings, and what is refused."""

import asyncio
import socket
import time
from contextlib import ExitStack, suppress

import aiohttp
import cv2
import numpy as np
import pytest

from d3s.camera.live import server
from d3s.camera.live.server import MAX_MESSAGE_BYTES
from live_pages import SHAPE, answer_to, depth_of, message_of, next_frame, running_live, talk

PANELS = [{"kind": "depth", "width": 200}, {"kind": "flags", "width": 100}]


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    with running_live(tmp_path_factory.mktemp("shots")) as running:
        yield running


async def frame_of(socket, *, after=None, version=None, panels=PANELS):
    return await next_frame(socket, after=after, version=version, panels=panels)


def test_frames_come_one_by_one_with_pictures(live):
    async def work(socket):
        hello, _ = await message_of(socket, "hello")
        assert [one["kind"] for one in hello["panels"]][:3] == ["left", "right", "depth"]
        first, pictures = await frame_of(socket)
        second, _ = await frame_of(socket, after=first["serial"], version=first["version"])
        return first, second, pictures

    first, second, pictures = talk(live.address, work)
    assert second["serial"] > first["serial"]
    assert second["number"] > first["number"]
    shapes = [cv2.imdecode(np.frombuffer(one, np.uint8), 1).shape for one in pictures]
    assert shapes == [(100, 200, 3), (50, 100, 3)]
    depth, flags = first["pictures"]
    assert depth["low"] < depth_of(first["number"]) < depth["high"]
    assert (depth["unit"], depth["is_log"]) == ("m", True)
    assert sum(one["share"] for one in flags["flags"]) == pytest.approx(1)
    assert first["shape"] == list(SHAPE)
    assert sum(first["light"]["histogram"]) == pytest.approx(1)
    assert first["counts"]["computed"] >= 1


def test_clicks_are_answered_from_the_frame_shown(live):
    async def work(socket):
        found = []
        after = None
        for _ in range(4):
            header, _ = await frame_of(socket, after=after, version=0, panels=[])
            after = header["serial"]
            await asyncio.sleep(0.1)  # newer results come meanwhile
            value = await answer_to(socket, ask="pixel", serial=after, place=[50, 90])
            found.append((header["number"], value))
        return found

    for number, value in talk(live.address, work):
        assert value["depth_m"] == pytest.approx(depth_of(number), abs=0.02)
        assert 0 < value["sigma_m"] < 0.01
        assert value["flags"] == []
        assert 0 <= value["left"] <= 1


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"ask": "pixel", "serial": -5, "place": [1, 1]}, "no longer kept"),
        ({"ask": "pixel", "serial": "x", "place": [1, 1]}, "no longer kept"),
        ({"ask": "set", "changes": {"nonsense": 1}}, "is no setting"),
        ({"ask": "set", "changes": {"options": {"window": -3}}}, "window"),
        ({"ask": "set", "changes": {"min_confidence": 7}}, "min_confidence"),
        ({"ask": "set", "changes": {"exposure_s": 0.1}}, "no camera"),
        ({"ask": "set", "changes": 5}, "table"),
        ({"ask": "record", "on": True}, "nowhere to record"),
        ({"ask": "seek", "position": 3}, "saved files"),
        ({"ask": "format the disk"}, "not known"),
    ],
)
def test_wrong_questions_are_answered_in_a_sentence(live, question, words):
    async def work(socket):
        return await answer_to(socket, **question)

    assert words in talk(live.address, work)["error"]


@pytest.mark.parametrize(
    "panels",
    [7, [3], [{"kind": "depth"}], [{"kind": "x", "width": 90}], [{"kind": "depth", "width": 1e9}]],
)
def test_wrong_panels_are_a_problem(live, panels):
    async def work(socket):
        await socket.send_json({"ask": "frame", "panels": panels})
        return await message_of(socket, "problem")

    assert talk(live.address, work)


# Refused ------------------------------------------------------------------------------------------


def get(address, **headers):
    async def run():
        async with (
            aiohttp.ClientSession() as session,
            session.get(address, headers=headers, allow_redirects=False) as answer,
        ):
            return answer.status, await answer.text(), dict(answer.headers)

    return asyncio.run(run())


def connect(address, **headers):
    async def run():
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(address, headers=headers),
        ):
            return 101

    try:
        return asyncio.run(run())
    except aiohttp.WSServerHandshakeError as error:
        return error.status


def test_right_request_is_answered(live):
    status, text, headers = get(f"{live.address}live/")
    assert status == 200
    assert "live.js" in text
    assert headers["Cache-Control"] == "no-store"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in headers
    assert get(f"{live.address}shared/page.js")[0] == 200
    assert get(live.address)[2]["Location"].endswith("/live/")
    assert connect(live.socket, Origin=live.origin) == 101


# Each has the right token and all else right, but for one thing.
@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"Host": "evil.example:{port}"}, "Host"),
        ({"Origin": "http://evil.example"}, "Origin"),
        ({"Origin": "null"}, "Origin"),
        ({"Origin": "https://127.0.0.1:{port}"}, "Origin"),
    ],
)
def test_foreign_host_and_foreign_origin_are_refused(live, headers, words):
    filled = {key: one.format(port=live.server.gate.port) for key, one in headers.items()}
    status, text, _ = get(f"{live.address}live/", **filled)
    assert status == 403
    assert words in text
    assert connect(live.socket, **{"Origin": live.origin, **filled}) == 403


@pytest.mark.parametrize("token", ["", "live", "x" * 24, "%00", "ünï"])
def test_missing_or_wrong_token_is_refused(live, token):
    root = f"{live.origin}/{token}".rstrip("/")
    for path in ("/", "/live/", "/live/live.js", "/shared/page.js"):
        status, text, _ = get(root + path)
        assert status == 403
        assert "token" in text
    assert connect(f"{root}/live/socket", Origin=live.origin) == 403


@pytest.mark.parametrize(
    "path",
    [
        "live/../../server.py",
        "live/%2e%2e/%2e%2e/server.py",
        "live/..%2f..%2fserver.py",
        "live//etc/passwd",
        "live/index.html%00",
        "shared/../live/index.html/",
        "../etc/passwd",
        "nowhere/",
        "live/server.py",
    ],
)
def test_only_files_of_the_pages_are_served(live, path):
    from yarl import URL

    status, text, _ = get(URL(live.address + path, encoded=True))
    assert status in (403, 404)
    assert "import" not in text


def opened_connection(live, words=b""):
    found = socket.create_connection(("127.0.0.1", live.server.gate.port), timeout=20)
    found.sendall(words)
    return found


def test_connections_without_the_token_are_closed_in_time(live, monkeypatch):
    monkeypatch.setattr(server, "_STRANGER_S", 0.5)
    known = (
        f"GET /{live.server.gate.token}/live/ HTTP/1.1\r\nHost: {live.origin[7:]}\r\n\r\n".encode()
    )
    for words in (b"", known[:40], known.replace(live.server.gate.token.encode(), b"wrong")):
        with opened_connection(live, words) as stranger:
            begun = time.monotonic()
            while stranger.recv(4096):
                pass
            assert 0.3 < time.monotonic() - begun < 5
    with opened_connection(live, known) as friend:
        time.sleep(1)
        friend.sendall(known)
        friend.settimeout(0.5)
        answers = b""
        with suppress(TimeoutError):
            while part := friend.recv(65536):
                answers += part
        assert answers.count(b"HTTP/1.1 200 OK") == 2


def test_of_too_many_connections_without_the_token_the_oldest_goes(live):
    with ExitStack() as stack:
        strangers = [
            stack.enter_context(opened_connection(live)) for _ in range(server._MOST_STRANGERS + 1)
        ]
        assert strangers[0].recv(1) == b""
        assert get(f"{live.address}live/")[0] == 200
        strangers[-1].settimeout(0.2)
        with pytest.raises(TimeoutError):
            strangers[-1].recv(1)


@pytest.mark.parametrize("form", ["http://[::1/{}/live/", "/{}/live/%zz\xff", "http://a:b:c/{}/"])
def test_malformed_addresses_do_not_print_the_token(live, form, caplog, capfd):
    words = f"GET {form.format(live.server.gate.token)} HTTP/1.1\r\n\r\n".encode("latin-1")
    with opened_connection(live, words) as client:
        assert b" 400 " in client.recv(4096)
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("message", "code"),
    [("x" * (MAX_MESSAGE_BYTES + 1), 1009), ("no json", 1007), ("[1]", 1007), (b"bytes", 1003)],
)
def test_long_and_strange_messages_end_the_connection(live, message, code):
    async def work(socket):
        await (socket.send_str if isinstance(message, str) else socket.send_bytes)(message)
        while (found := await socket.receive(timeout=20)).type is aiohttp.WSMsgType.TEXT:
            pass
        assert found.type is aiohttp.WSMsgType.CLOSE
        return found.data

    assert talk(live.address, work) == code
    assert connect(live.socket, Origin=live.origin) == 101  # the server lives

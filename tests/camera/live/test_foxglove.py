"""Depth for Foxglove, live: what a client of its protocol gets, and from where."""

import asyncio
import json

import aiohttp
import pytest

from live_pages import SHAPE, running_live


def test_a_client_gets_depth_from_this_machine_only():
    pytest.importorskip("foxglove")
    from d3s.camera.live.foxglove import serving

    async def first(address):
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(address, protocols=["foxglove.sdk.v1"]) as socket,
        ):
            channels = {}
            while "/depth/sigma" not in channels:
                message = json.loads((await socket.receive(timeout=10)).data)
                for one in message.get("channels", ()):
                    channels[one["topic"]] = one
            wanted = channels["/depth/sigma"]
            assert wanted["schemaName"] == "sensor_msgs/msg/Image"
            ask = {"op": "subscribe", "subscriptions": [{"id": 1, "channelId": wanted["id"]}]}
            await socket.send_str(json.dumps(ask))
            while (found := await socket.receive(timeout=30)).type is not aiohttp.WSMsgType.BINARY:
                pass
            return found.data

    with running_live() as live, serving(live.pipeline, title="Test", port=0) as address:
        assert address.startswith("ws://127.0.0.1:")
        data = asyncio.run(first(address))
    assert len(data) > 4 * SHAPE[0] * SHAPE[1]

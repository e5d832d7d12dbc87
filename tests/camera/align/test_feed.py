"""The alignment page as a client sees it: readings, captures, and the report."""

import asyncio
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import cv2
import numpy as np
import pytest

from align_frames import RIG, SHAPE, WALL_M, Camera, misassembled, wall
from chromium import CHROMIUM, tab
from d3s.camera.align.feed import align_pages
from d3s.camera.align.filing import CaptureFolder
from d3s.camera.align.session import CalibrationOutcome, Session, Watch
from d3s.camera.live.server import Server
from live_pages import answer_to, next_frame, talk

REPORT = "<!doctype html><title>Report</title><p>all is well</p>"


VALUES = """({
  now: document.getElementById("now-words").textContent,
  state: document.getElementById("now").className,
  size: parseFloat(getComputedStyle(document.getElementById("now-sign")).fontSize),
  lights: [...document.querySelectorAll("#steps button")].map((one) => one.className),
  wide: document.documentElement.scrollWidth,
})"""


@contextmanager
def running(folder: Path, *frames):
    """Address of the page of a camera, and its session."""

    def calibrate(path, _progress):
        verdict = {"grade": "good", "summary": "Use it.", "remarks": [], "measures": []}
        return CalibrationOutcome(
            values=verdict,
            page=REPORT,
            rig_path=path / "rig.toml",
            page_path=path / "rig.html",
            problem="",
        )

    session = Session(
        Camera(*frames),
        Watch(RIG, distance_m=WALL_M),
        captures=CaptureFolder(folder),
        calibrate=calibrate,
    )
    with session, Server(align_pages(session)).running() as address:
        yield address, session


def test_frames_have_readings_and_a_picture(tmp_path):
    async def work(socket):
        first = await next_frame(socket)
        second = await next_frame(socket)
        return first, second

    with running(tmp_path, misassembled("stone", -1)) as (address, _):
        (first, pictures), (second, _) = talk(address, work, "align")
    assert second["number"] > first["number"]
    assert (first["rows"], first["cols"]) == SHAPE
    assert first["next"] == "centre"
    level = next(step for step in first["steps"] if step["name"] == "level")
    assert level["state"] == "turn"
    assert level["readings"][0]["value"] == pytest.approx(-10, rel=0.1)
    assert first["shadow"]["column_px"] == pytest.approx(479.5 - 30, abs=3)
    assert len(first["outlines"]) == 2
    picture = cv2.imdecode(np.frombuffer(pictures[0], np.uint8), 0)
    assert picture.shape == SHAPE


def test_captures_and_calibration(tmp_path):
    async def work(socket):
        early = await answer_to(socket, ask="calibrate")
        filed = [
            await answer_to(socket, ask="capture", distance_m=0.3 + 0.1 * number)
            for number in range(5)
        ]
        back = await answer_to(socket, ask="take_back", name=filed[0]["filed"]["name"])
        again = await answer_to(socket, ask="capture", distance_m=0.3)
        async with aiohttp.ClientSession() as client:
            async with client.get(f"{address}report/") as missing:
                assert missing.status == 404
            done = await answer_to(socket, ask="calibrate")
            async with client.get(f"{address}report/") as report:
                policy = report.headers["Content-Security-Policy"]
                return early, filed, back, again, done, await report.text(), policy

    with running(tmp_path, wall(seed=1), wall(seed=2)) as (address, _):
        early, filed, back, again, done, page, policy = talk(address, work, "align")
    assert "5 more are needed" in early["error"]
    assert [one["problems"] for one in filed] == [[]] * 5
    assert len(back["captures"]["filed"]) == 4
    assert again["filed"]["name"] == "0.3000m_2.png"
    assert done["calibrated"]["grade"] == "good"
    assert page == REPORT
    assert "script" not in policy


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({"ask": "open"}, "must be distance"),
        ({"ask": "distance", "distance_m": "near"}, "number of metres"),
        ({"ask": "distance", "distance_m": 400}, "up to 20"),
        ({"ask": "capture"}, "number of metres"),
        ({"ask": "capture", "distance_m": True}, "number of metres"),
        ({"ask": "take_back", "name": "../rig.toml"}, "is not in"),
    ],
)
def test_wrong_questions_are_answered_in_a_sentence(tmp_path, question, words):
    async def work(socket):
        return await answer_to(socket, **question)

    with running(tmp_path, wall()) as (address, _):
        assert words in talk(address, work, "align")["error"]


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
@pytest.mark.parametrize("width", [400, 1400])
def test_page_in_a_browser(tmp_path, width):
    async def visit(address):
        async with tab() as page:
            await page.resize(width, 900)
            await page.open(address)
            first = await page.until("document.body.dataset.frame", 60)
            await page.until(f"Number(document.body.dataset.frame) > {first}", 60)
            values = await page.js(VALUES)
            await page.js(
                "document.getElementById('list').value = '0.4, 0.5';"
                "document.getElementById('list').dispatchEvent(new Event('change'))"
            )
            await page.until("document.getElementById('capture-distance').value === '0.4'", 60)
            await page.js("document.getElementById('capture').click()")
            await page.until(
                "document.getElementById('capture-note').textContent.startsWith('Filed')", 60
            )
            await page.until("document.getElementById('capture-distance').value === '0.5'", 60)
            return values, page.errors

    with running(tmp_path, misassembled("stone", -1)) as (address, session):
        values, errors = asyncio.run(visit(address))
    assert errors == []
    assert values["state"] == "turn"
    assert "move the plate to the left by" in values["now"]
    assert values["lights"][0] == "good"
    assert values["lights"][2:4] == ["turn", "turn"]
    assert values["size"] >= 60
    assert values["wide"] <= width
    assert [one.distance_m for one in session.captures.filed] == [0.4]

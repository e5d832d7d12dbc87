"""The live page in a real browser: frames move, clicks answer, sliders work, others are refused."""

import asyncio

import pytest
from aiohttp import web

import d3s
from chromium import CHROMIUM, tab
from d3s.camera.live.feed import Feed
from d3s.camera.live.saved import SavedShow, open_saved
from d3s.camera.live.server import Server
from live_pages import RIG, SHAPE, depth_of, running_live, views

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")

BOX = """(() => {
  const box = document.querySelector('.panel[data-kind="%s"] .picture').getBoundingClientRect();
  return [box.left, box.top, box.width, box.height];
})()"""
TEXT = "document.getElementById('%s').textContent"
# Pixels of the picture that are not grey: those that have a depth.
COLOURED = """(() => {
  const canvas = document.querySelector('.panel[data-kind="depth"] .picture');
  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  let coloured = 0;
  for (let i = 0; i < data.length; i += 4) {
    const pixel = data.slice(i, i + 3);
    if (Math.max(...pixel) - Math.min(...pixel) > 30) coloured++;
  }
  return coloured / (data.length / 4);
})()"""
# Share of the 3D canvas that points cover.
COVERED = """(() => {
  const [canvas, copy] = [d3s.panels.get('points').picture, document.createElement('canvas')];
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const context = copy.getContext('2d');
  context.drawImage(canvas, 0, 0);
  const data = context.getImageData(0, 0, copy.width, copy.height).data;
  let covered = 0;
  for (let i = 0; i < data.length; i += 4) covered += data[i] > 40;
  return covered / (data.length / 4);
})()"""
SET = """(() => {
  const input = document.getElementById('%s');
  input.focus({preventScroll: true});
  input.value = %s;
  for (const kind of ['input', 'change']) input.dispatchEvent(new Event(kind, {bubbles: true}));
})()"""


async def click(page, kind, row, col):
    left, top, width, height = await page.js(BOX % kind)
    await page.click(left + width * (col + 0.5) / SHAPE[1], top + height * (row + 0.5) / SHAPE[0])


@pytest.mark.parametrize("width", [400, 1400])
def test_live_page(tmp_path, width):
    async def run(live):
        async with tab() as page:
            await page.resize(width, 1000)
            await page.open(live.address)
            await page.until("d3s.frames > 5", 60)
            # Nothing is wider than the window.
            assert await page.js("document.documentElement.scrollWidth") <= width
            assert await page.js("document.querySelectorAll('.panel').length") == 7
            assert 0.3 < await page.js(COLOURED) < 1
            first = await page.js("d3s.frame.serial")
            await page.until(f"d3s.frame.serial > {first}")

            await page.key(" ")
            await page.until("d3s.paused")
            await asyncio.sleep(0.3)
            frames = await page.js("d3s.frames")
            await click(page, "depth", 50, 90)
            await page.until(f"{TEXT % 'pixel'}.includes('confidence')")
            number = await page.js("d3s.frame.number")
            text = await page.js(TEXT % "pixel")
            assert "row 50, column 90" in text
            assert float(text.split("): ")[1].split(" m")[0]) == pytest.approx(
                depth_of(number), abs=0.02
            )
            await page.key("ArrowDown")
            await page.until(f"{TEXT % 'pixel'}.includes('row 51')")
            await click(page, "depth", 50, 120)
            await page.until(f"{TEXT % 'distance'}.includes('A to B')")
            assert await page.js("!document.getElementById('profile').hidden")
            assert await page.js("d3s.frames") == frames
            await page.key(" ")
            await page.until(f"d3s.frames > {frames}")

            await page.js(SET % ("sigma", 0))
            await page.until(f"{COLOURED} < 0.01")
            assert live.pipeline.settings.shown.max_sigma_m == pytest.approx(1e-5)
            await page.js(SET % ("sigma", 100))
            await page.until(f"{COLOURED} > 0.3")
            await page.js("document.getElementById('sigma').blur()")
            await page.key("f")
            await page.until("document.getElementById('fast').checked")
            assert live.pipeline.settings.options.finest_scale == 2
            await page.key("5")
            await page.until("document.querySelector('.panel.large').dataset.kind === 'confidence'")
            await page.key("s")
            await page.until(f"{TEXT % 'note'}.startsWith('Saved')")
            live.camera.hold.set()
            await page.until("document.getElementById('panels').classList.contains('stale')")
            assert "no new frame" in await page.js(TEXT % "state")
            live.camera.hold.clear()
            await page.until("!document.getElementById('panels').classList.contains('stale')")
            assert page.errors == []

    with running_live(tmp_path) as live:
        asyncio.run(run(live))
    assert len(list(tmp_path.glob("snapshot_*.npz"))) == 1


def test_saved_page_with_time_line(tmp_path):
    for index in (0, 1):
        d3s.estimate(*views(index), RIG).save(tmp_path / f"{index}.npz")

    async def run(address):
        async with tab() as page:
            await page.resize(1400, 900)
            await page.open(address)
            await page.until("d3s.frames > 0")
            assert await page.js("document.querySelectorAll('.panel').length") == 6
            assert await page.js("!document.getElementById('timeline').hidden")
            await page.key(".")
            await page.until("d3s.frame.position === 1")
            await page.js(SET % ("position", 0))
            await page.until("d3s.frame.position === 0")
            # 3D points of the plane, turned away, and cut by their sigma.
            await page.key("6")
            await page.until(f"{COVERED} > 0.4")
            left, top, width, height = await page.js(BOX % "points")
            await page.drag(left + width / 2, top + height / 2, 0.3 * width)
            await page.until("d3s.panels.get('points').space.angles[0] > 0.5")
            assert 0.05 < await page.js(COVERED) < 0.9
            await page.js(SET % ("space-colour", "'sigma'"))
            assert await page.js("!d3s.panels.get('points').bar.hidden")
            await page.js(SET % ("space-cut", 0))
            await page.until(f"{COVERED} < 0.01")
            await page.js("document.activeElement.blur()")
            await page.key("2")
            await page.js(SET % ("confidence", 1))
            await page.until(f"{COLOURED} < 0.01")
            assert page.errors == []

    with SavedShow(open_saved(tmp_path)) as show:
        feed = Feed(show, title="saved")
        with Server([feed.page()]).running() as address:
            asyncio.run(run(address))
        feed.close()


def test_other_sites_reach_nothing():
    """With the right token in their hands; in a browser that obeys the rules of the web."""
    reach = """(async () => {
      const found = {};
      try { found.fetch = (await fetch('%(page)s')).status; } catch { found.fetch = 'refused'; }
      found.socket = await new Promise((done) => {
        const socket = new WebSocket('%(socket)s');
        socket.onmessage = () => done('message');
        socket.onerror = () => done('refused');
      });
      found.frame = await new Promise((done) => {
        const frame = document.createElement('iframe');
        frame.src = '%(page)s';
        frame.onload = () => {
          done(frame.contentDocument === null ? 'closed' : 'open');
        };
        document.body.append(frame);
      });
      return found;
    })()"""

    async def run(live):
        async def evil_page(_):
            return web.Response(text="<p>evil", content_type="text/html")

        app = web.Application()
        app.router.add_get("/", evil_page)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        own = live.server.gate.port
        evil = runner.addresses[0][1]
        paths = {
            "page": f"{live.address}live/",
            "socket": f"{live.socket}".replace("http:", "ws:"),
        }
        async with tab("--host-resolver-rules=MAP evil.test 127.0.0.1") as page:
            # A page of another origin.
            await page.open(f"http://127.0.0.1:{evil}/")
            assert await page.js(reach % paths) == {
                "fetch": "refused",
                "socket": "refused",
                "frame": "closed",
            }
            # A name that leads here, with the right port and token: DNS rebinding.
            path = live.address.split("/", 3)[3]
            await page.open(f"http://evil.test:{own}/{path}live/")
            assert "Refused: the Host" in await page.js("document.body.textContent")
            # No token.
            await page.open(f"http://127.0.0.1:{own}/live/")
            assert "Refused: the token" in await page.js("document.body.textContent")
            # And the right address works in this browser.
            await page.open(live.address)
            await page.until("d3s.frames > 0", 60)
        await runner.cleanup()

    with running_live() as live:
        asyncio.run(run(live))

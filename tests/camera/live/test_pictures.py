"""Pictures for the screen: colours, sizes and scales."""

from dataclasses import replace

import cv2
import matplotlib as mpl
import numpy as np
import pytest

from d3s.camera.live.pictures import PANELS, AutoRange, Panel, bar_colours, draw
from d3s.camera.live.results import compute
from d3s.camera.live.settings import Filter, Settings
from d3s.errors import InputError
from d3s.estimate.flags import Flag
from d3s.estimate.plot.flag_colours import FLAG_COLOURS
from live_pages import RIG, SHAPE, views


@pytest.fixture(scope="module")
def result():
    from d3s.frames import Frame

    return compute(Frame(number=4, views=views(0)), RIG, Settings(), serial=9, grabbed_s=0.0)


def with_arrays(result, **arrays):
    return replace(result, depth_map=replace(result.depth_map, **arrays), _filtered={})


ALL = Filter()


def picture(result, panel, limits=ALL):
    encoded, legend = draw(result, panel, limits, AutoRange())
    return cv2.imdecode(np.frombuffer(encoded, np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1], legend


@pytest.mark.parametrize("kind", PANELS)
@pytest.mark.parametrize("width", [64, 200, 4000])
def test_pictures_are_as_wide_as_asked_and_never_enlarged(result, kind, width):
    image, legend = picture(result, Panel(kind=kind, width=width))
    wide = min(width, SHAPE[1])
    assert image.shape == (wide // 2, wide, 3)
    assert (legend["width"], legend["height"]) == (wide, wide // 2)


def test_colours_are_those_of_the_scale(result):
    """Four bands of depth, each at a known place of the scale; one without a depth."""
    depth_m = np.empty(SHAPE, np.float32)
    for band, value in enumerate((0.5, 1.0, 2.0, np.nan)):
        depth_m[:, 50 * band : 50 * band + 50] = value
    image, legend = picture(
        with_arrays(result, depth_m=depth_m), Panel(kind="depth", width=200, low=0.5, high=2.0)
    )
    assert (legend["low"], legend["high"], legend["unit"]) == (0.5, 2.0, "m")
    table = mpl.colormaps["viridis_r"]
    expected = [255 * np.array(table(place)[:3]) for place in (0.0, 0.5, 1.0)]
    expected.append(np.full(3, 0xBB))
    for band, colour in enumerate(expected):
        assert image[20:80, 50 * band + 15 : 50 * band + 35].mean((0, 1)) == pytest.approx(
            colour, abs=4
        )


def test_values_beyond_the_scale_have_its_end_colours(result):
    depth_m = np.full(SHAPE, 0.1, np.float32)
    depth_m[:, 100:] = 50
    image, _ = picture(
        with_arrays(result, depth_m=depth_m), Panel(kind="depth", width=200, low=0.5, high=2.0)
    )
    table = mpl.colormaps["viridis_r"]
    assert image[50, 50] == pytest.approx(255 * np.array(table(0.0)[:3]), abs=4)
    assert image[50, 150] == pytest.approx(255 * np.array(table(1.0)[:3]), abs=4)


def test_flags_have_their_colours_and_shares(result):
    flags = np.zeros(SHAPE, np.uint16)
    flags[:, :50] = Flag.OCCLUDED | Flag.LOW_CONFIDENCE
    image, legend = picture(with_arrays(result, flags=flags), Panel(kind="flags", width=200))
    red = bytes.fromhex(FLAG_COLOURS[Flag.OCCLUDED][1:])
    assert image[50, 25] == pytest.approx(list(red), abs=6)
    shares = {one["name"]: one["share"] for one in legend["flags"]}
    assert shares == {"none": 0.75, "occluded": 0.25}


def test_filter_hides_depths(result):
    before, _ = picture(result, Panel(kind="depth", width=200))
    after, _ = picture(result, Panel(kind="depth", width=200), Filter(max_sigma_m=1e-9))
    assert before.std() > 5
    assert after == pytest.approx(0xBB, abs=2)


def test_missing_view_is_said_to_be_absent(result):
    _, legend = picture(replace(result, right=None), Panel(kind="right", width=100))
    assert legend["absent"]


def test_automatic_scale_follows_slowly_and_jumps_at_cuts(result):
    ranges = AutoRange()

    def high(serial, factor):
        scaled = with_arrays(result, depth_m=result.depth_map.depth_m * np.float32(factor))
        scaled = replace(scaled, serial=serial)
        return ranges.scale(scaled, scaled.depth_map, "depth").high

    first = high(1, 1.0)
    assert high(1, 1.2) == first  # the same result
    slow = high(2, 1.2)
    assert first < slow < 1.1 * first
    assert high(3, 4.0) == pytest.approx(4.0 * first, rel=1e-3)
    nothing = with_arrays(result, depth_m=np.full(SHAPE, np.nan, np.float32))
    assert ranges.scale(replace(nothing, serial=4), nothing.depth_map, "depth").high == (
        pytest.approx(4.0 * first, rel=1e-3)
    )


def test_bars_have_the_colours_of_the_pictures():
    assert bar_colours("depth")[0] == mpl.colors.to_hex(mpl.colormaps["viridis_r"](0.0))
    assert bar_colours("left")[-1] == "#ffffff"
    assert bar_colours("flags") == []


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"kind": "x", "width": 100}, "kind"),
        ({"kind": "depth", "width": 5}, "width"),
        ({"kind": "depth", "width": 1.5}, "width"),
        ({"kind": "depth", "width": 100, "low": float("nan")}, "low"),
        ({"kind": "depth", "width": 100, "high": -1}, "high"),
        ({"kind": "depth", "width": 100, "high": "1"}, "high"),
    ],
)
def test_wrong_panels_are_refused(values, words):
    with pytest.raises(InputError, match=words):
        Panel(**values)


def test_scale_with_wrong_order_is_mended(result):
    _, legend = picture(result, Panel(kind="depth", width=64, low=2.0, high=1.0))
    assert legend["low"] < legend["high"]

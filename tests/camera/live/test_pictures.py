"""Pictures for the screen: colours, sizes and scales."""

from dataclasses import replace

import cv2
import matplotlib as mpl
import numpy as np
import pytest

from d3s.camera.live.pictures import PANELS, AutoRange, Panel, draw
from d3s.camera.live.results import Filter, Settings, compute
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
    assert image.shape == ((2 if kind == "points" else 1) * (wide // 2), wide, 3)
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


def test_flags_have_their_colours_and_shares(result):
    flags = np.zeros(SHAPE, np.uint16)
    flags[:, :50] = Flag.OCCLUDED | Flag.LOW_CONFIDENCE
    image, legend = picture(with_arrays(result, flags=flags), Panel(kind="flags", width=200))
    red = bytes.fromhex(FLAG_COLOURS[Flag.OCCLUDED][1:])
    assert image[50, 25] == pytest.approx(list(red), abs=6)
    shares = {one["name"]: one["share"] for one in legend["flags"]}
    assert shares == {"none": 0.75, "occluded": 0.25}


def test_points_hold_depth_and_sigma(result):
    image, legend = picture(result, Panel(kind="points", width=4000))
    coded = image[: SHAPE[0]].astype(np.float64)
    code = 256 * coded[..., 0] + coded[..., 1]
    with np.errstate(divide="ignore"):
        share = np.where(code > 0, (code - 1) / 65534, np.nan)
    depth_m = legend["near"] * (legend["far"] / legend["near"]) ** share
    np.testing.assert_allclose(depth_m, result.depth_map.depth_m, rtol=1e-4)
    assert np.array_equal(coded[..., 2] > 0, np.isfinite(result.depth_map.sigma_m))
    assert legend["focal"] == pytest.approx(result.depth_map.rig.optics.focal_length_px)
    assert legend["centre"] == [(SHAPE[1] - 1) / 2, (SHAPE[0] - 1) / 2]

"""`DepthMap` as people use it: text, pixels, distances, points, xarray, figures, warnings."""

import dataclasses
import re
import warnings

import numpy as np
import pytest

import d3s
from d3s.errors import DepthWarning, InputError
from d3s.estimate import summary
from d3s.estimate.diagnosis import Cause
from d3s.files import read_depth

NAN = np.nan


def _made(**more) -> d3s.DepthMap:
    values = {
        "depth_m": np.array([[1, 2, 3], [4, NAN, NAN]], dtype=np.float32),
        "sigma_m": np.array([[0.01, 0.02, 0.03], [0.04, NAN, NAN]], dtype=np.float32),
        "confidence": np.array([[0.9, 0.6, 0.8], [0.7, 0.1, 0.95]], dtype=np.float32),
        "flags": np.array([[0, 1024, 0], [0, 256 + 8, 256]], dtype=np.uint16),
        "rig": d3s.Rig.from_pinhole(focal_length_px=100.0, baseline_m=0.1, name="<robot>"),
        "method": "by hand",
        "options": d3s.JointOptions(),
    }
    return d3s.DepthMap(**(values | more))


def _empty() -> d3s.DepthMap:
    blank = np.full((2, 3), NAN, dtype=np.float32)
    flags = np.full((2, 3), 8 + 256, dtype=np.uint16)
    return _made(depth_m=blank, sigma_m=blank, flags=flags, warnings=("no texture: none.",))


def test_text_is_short_and_has_the_numbers():
    text = repr(_made())
    assert text == str(_made())
    assert "\n" not in text
    assert "2 x 3 px by by hand, camera '<robot>': 67 % of the pixels have a depth" in text
    assert "1.03 m to 3.97 m, median sigma 25 mm" in text
    assert repr(_empty()).splitlines()[1] == "  Warning: no texture: none."


def test_explanation_has_warnings_and_reasons():
    assert _empty().explain().splitlines() == [
        "No pixel has a depth.",
        "No texture: none.",
        "Without a depth: 100 % of the pixels. Reasons, of which a pixel may have several:",
        "- 100 % low texture: the window holds too little texture to be told from noise",
    ]
    whole = _made(
        depth_m=np.ones((2, 3), np.float32), sigma_m=np.ones((2, 3), np.float32)
    ).explain()
    assert whole == "100 % of the pixels have a depth, 1 m to 1 m, median sigma 1 m."


def test_low_confidence_and_carried_are_reasons_where_there_is_no_other():
    found = {one.flag: one.share for one in summary.reasons(_made())}
    assert found == {d3s.Flag.LOW_TEXTURE: 1 / 6, d3s.Flag.LOW_CONFIDENCE: 1 / 6}
    dropped = _made().filter(carried=False)
    assert {one.flag for one in summary.reasons(dropped)} == {*found, d3s.Flag.CARRIED}


def test_pixel_with_and_without_a_depth():
    made = _made()
    here = made.at(1, 0)
    assert (here.row, here.col, here.depth_m, here.has_depth) == (1, 0, 4.0, True)
    assert here.reasons == ()
    # The middle of 2 x 3 px is row 0.5, column 1: half a pixel and one pixel away.
    assert here.point_m == pytest.approx((-0.04, 0.02, 4.0))
    assert str(here) == "row 1, column 0: 4 m, sigma 40 mm, confidence 0.70"
    assert str(made.at(0, np.int64(1))).endswith("; depth rests on texture elsewhere in the window")
    hole = made.at(1, 1)
    assert not hole.has_depth
    assert str(hole).startswith("row 1, column 1: no depth: the window holds too little texture")
    assert hole.flags == d3s.Flag.LOW_TEXTURE | d3s.Flag.LOW_CONFIDENCE


@pytest.mark.parametrize("place", [(2, 0), (0, 3), (-1, 0), (0.5, 1), ("a", 1)])
def test_pixel_outside_is_refused(place):
    with pytest.raises(InputError, match=r"row.*column"):
        _made().at(*place)


def test_distance_by_hand():
    # (-0.01, -0.005, 1) m and (0.03, -0.015, 3) m
    found = _made().distance((0, 0), (0, 2))
    assert found.distance_m == pytest.approx(np.sqrt(0.04**2 + 0.01**2 + 2**2), rel=1e-6)
    assert found.sigma_m == pytest.approx(np.hypot(0.01, 0.03), rel=1e-3)  # nearly along the axis
    assert _made().distance((0, 0), (0, 0)) == (0.0, 0.0)
    with pytest.raises(InputError, match=r"b=\(1, 1\) has no depth: the window holds"):
        _made().distance((0, 0), (1, 1))
    with pytest.raises(InputError, match=r"a=3 must be a pixel"):
        _made().distance(3, (0, 0))


def test_sigma_of_a_distance_is_the_spread_of_noisy_distances():
    rng = np.random.default_rng(5)
    rig = d3s.Rig.from_pinhole(focal_length_px=10.0, baseline_m=0.1)  # a wide view
    depth_m = np.linspace(2, 2.5, 400, dtype=np.float32).reshape(20, 20)
    made = _made(
        rig=rig,
        depth_m=depth_m,
        sigma_m=0.02 * depth_m,
        confidence=np.ones_like(depth_m),
        flags=np.zeros(depth_m.shape, np.uint16),
    )
    places = (0, 0), (19, 12)
    drawn = []
    for _ in range(1000):
        noisy = made.depth_m + made.sigma_m * rng.standard_normal(made.depth_m.shape)
        drawn.append(dataclasses.replace(made, depth_m=noisy).distance(*places).distance_m)
    assert np.std(drawn) == pytest.approx(made.distance(*places).sigma_m, rel=0.05)


def test_points_have_coordinates_sigma_and_colour():
    made = _made()
    colour = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
    found = made.points(colour=colour)
    assert len(found) == 4
    np.testing.assert_allclose(found.xyz_m[3], [-0.04, 0.02, 4.0], rtol=1e-6)
    np.testing.assert_array_equal(found.sigma_m, np.float32([0.01, 0.02, 0.03, 0.04]))
    np.testing.assert_array_equal(found.colour, colour[made.valid])
    few = made.points(mask=made.sigma_m < 0.025)
    np.testing.assert_array_equal(few.z_m, [1, 2])
    assert few.colour is None


def test_points_refuse_what_does_not_fit():
    with pytest.raises(InputError, match=r"mask has type int64"):
        _made().points(mask=np.ones((2, 3), dtype=np.int64))
    with pytest.raises(InputError, match=r"mask has type bool and shape \(3,\)"):
        _made().points(mask=np.ones(3, dtype=bool))
    with pytest.raises(InputError, match=r"colour has shape \(3, 2, 3\) and depth \(2, 3\)"):
        _made().points(colour=np.zeros((3, 2, 3), np.uint8))
    with pytest.raises(InputError, match=r"colour has type int64"):
        _made().points(colour=np.zeros((2, 3, 3), np.int64))


@pytest.mark.parametrize(
    ("white", "kind"), [(255, np.uint8), (65535, np.uint16), (1.0, np.float64)]
)
def test_colour_of_any_type_reaches_the_ply_file_and_comes_back(tmp_path, white, kind):
    colour = np.zeros((2, 3, 3), kind)
    colour[..., 0] = white
    made = _made(intensity=np.full((2, 3), 0.5, np.float32))
    made.save(tmp_path / "points.ply", colour=colour)
    found = read_depth(tmp_path / "points.ply")
    np.testing.assert_array_equal(found.colour, [[255, 0, 0]] * 4)
    made.save(tmp_path / "points.csv", colour=colour)
    head, first, *_ = (tmp_path / "points.csv").read_text().splitlines()
    assert head.endswith(",red,green,blue")
    assert first.endswith(",255,0,0")
    made.save(tmp_path / "grey.ply")
    assert read_depth(tmp_path / "grey.ply").colour is None


def test_xarray_has_units_and_flags():
    pytest.importorskip("xarray")
    data = _made().to_xarray()
    assert data.depth_m.dims == ("row", "col")
    assert data.depth_m.attrs["units"] == "m"
    assert float(data.depth_m.sel(row=1, col=0)) == 4.0
    flags = data["flags"]
    meanings = flags.attrs["flag_meanings"].split()
    masks = dict(zip(meanings, flags.attrs["flag_masks"], strict=True))
    assert (flags.values & masks["low_texture"] > 0).tolist() == [[False] * 3, [False, True, False]]
    assert "intensity" not in data


def test_html_escapes_and_has_warning_and_reasons():
    page = _empty()._repr_html_()
    assert "&lt;robot&gt;" in page
    assert "<robot>" not in page
    assert "<b>Warning:</b> no texture: none." in page
    assert "100 % <b>low texture</b>" in page
    assert re.search(r'src="data:image/png;base64,[\w+/]+', _made()._repr_html_())


def test_figure_has_its_panels_and_a_notebook_shows_it():
    for made in (_made(), _made(intensity=np.ones((2, 3), np.float32)), _empty()):
        figure = made.plot()
        titles = [axes.get_title() for axes in figure.axes]
        assert {"Depth", "Sigma, predicted", "Flags"} <= set(titles)
        assert ("Left view" in titles) == (made.intensity is not None)
        assert figure._repr_png_().startswith(b"\x89PNG")


def test_python_warns_as_the_command_line_does(plane):
    pair = plane(1.0)
    with pytest.warns(DepthWarning, match="left and right seem to be swapped") as caught:
        found = d3s.estimate(pair.right, pair.left, pair.rig)
    assert [str(one.message) for one in caught] == list(found.warnings)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        d3s.estimate(pair.left, pair.right, pair.rig)


def test_an_empty_depth_map_is_never_without_a_word():
    rng = np.random.default_rng(1)
    left, right = rng.uniform(size=(2, 20, 60))  # too small to search blocks in
    with pytest.warns(DepthWarning, match=Cause.EMPTY):
        found = d3s.estimate(left, right, d3s.Rig.paper_prototype(), options={"min_confidence": 1})
    assert found.density == 0

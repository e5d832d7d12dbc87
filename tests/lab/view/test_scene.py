"""Figures of the digital twin."""

import numpy as np
import pytest

import d3s
from d3s.errors import InputError
from d3s.lab.view.scene import plot_pair, plot_scenes, plot_textures

RIG = d3s.Rig.paper_prototype()
SMALL = (120, 180)


@pytest.fixture(scope="module")
def pair():
    return d3s.simulate(d3s.RandomScene(seed=1), RIG, shape=SMALL, noise=0.01)


@pytest.fixture(scope="module")
def plane():
    return d3s.simulate(d3s.Plane(depth_m=1.0), RIG, shape=SMALL)


@pytest.fixture(scope="module")
def raw():
    optics = RIG.optics.replace(pixel_pitch_m=20e-6)
    layout = d3s.RawLayout(
        rows_px=216, cols_px=384, field_radius_px=106, field_edge_px=3, partition_px=3
    )
    scene = d3s.Plane(depth_m=1.0)
    return d3s.simulate_raw(scene, RIG.replace(optics=optics), layout=layout)


def titles(figure):
    return [axes.get_title() for axes in figure.axes if axes.get_title()]


def panel(figure, begin):
    (axes,) = [axes for axes in figure.axes if axes.get_title().startswith(begin)]
    return axes.images[0]


def bar_labels(figure):
    return [axes.get_xlabel() for axes in figure.axes if axes.get_xlabel()]


def test_pair_shows_both_views_and_all_that_is_true(pair):
    figure = plot_pair(pair)
    assert titles(figure) == [
        "Left",
        "Right",
        "Left, perfect lens",
        f"Not in the right view: {pair.occluded.mean():.0%}",
        "Depth",
        "Disparity, left - right",
        "Blur radius, left (near +, far -)",
        "Blur radius, right (near +, far -)",
    ]
    assert bar_labels(figure) == ["m", "px", "px", "px"]
    np.testing.assert_array_equal(panel(figure, "Left,").get_array(), pair.all_in_focus)
    np.testing.assert_array_equal(panel(figure, "Depth").get_array(), pair.depth_m)
    np.testing.assert_array_equal(panel(figure, "Disparity").get_array(), pair.disparity_px)


def test_what_has_no_depth_has_a_colour_of_its_own(raw):
    figure = plot_scenes({"raw": raw})
    shown = panel(figure, "Depth")
    colours = shown.to_rgba(raw.depth_m)
    nothing = np.isnan(raw.depth_m)
    assert nothing.any()
    # Grey, which is not a colour of the map.
    assert len(np.unique(colours[nothing], axis=0)) == 1
    assert np.ptp(colours[nothing][0, :3]) == 0
    scale = shown.get_cmap()(np.linspace(0, 1, 256))[:, :3]
    assert np.abs(scale - colours[nothing][0, :3]).max(axis=1).min() > 0.1


def test_scenes_have_a_row_each_and_one_scale_of_depth(pair, plane, raw):
    figure = plot_scenes({"random": pair, "plane": plane, "sensor": raw})
    shown = titles(figure)
    assert shown.count("Left view") == shown.count("Right view") == 2
    assert sum(title.startswith("Not in the right view") for title in shown) == 2
    assert "Raw frame: right view | left view" in shown
    names = [axes.get_ylabel() for axes in figure.axes if axes.get_ylabel()]
    assert names == ["random", "plane", "sensor"]
    assert bar_labels(figure) == ["depth (m)"]
    depths = [axes.images[0] for axes in figure.axes if axes.get_title().startswith("Depth")]
    assert len({image.get_clim() for image in depths}) == 1


def test_sheets_of_nothing_are_refused(plane):
    with pytest.raises(InputError, match="examples is empty"):
        plot_scenes({})
    for textures in ({}, {"leaves": []}, {"leaves": [plane], "wood": [plane, plane]}):
        with pytest.raises(InputError, match="same number"):
            plot_textures(textures)

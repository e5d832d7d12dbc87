"""Figures of the digital twin."""

import numpy as np
import pytest

import d3s
from d3s.errors import InputError
from d3s.lab.view.truth import plot_pair, plot_scenes
from small_camera import SMALL_LAYOUT, small_rig

RIG = d3s.Rig.paper_prototype()
PLANE = d3s.Plane(depth_m=1.0)


@pytest.fixture(scope="module")
def pair():
    return d3s.simulate(d3s.RandomScene(seed=1), RIG, shape=(120, 180), noise=0.01)


@pytest.fixture(scope="module")
def raw():
    return d3s.simulate_raw(PLANE, small_rig(), layout=SMALL_LAYOUT)


def panel(figure, begin):
    (axes,) = [axes for axes in figure.axes if axes.get_title().startswith(begin)]
    return axes.images[0]


def test_pair_shows_what_is_true(pair):
    figure = plot_pair(pair)
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


def test_scenes_have_one_scale_of_depth(pair, raw):
    figure = plot_scenes({"random": pair, "sensor": raw})
    depths = [axes.images[0] for axes in figure.axes if axes.get_title().startswith("Depth")]
    assert len(depths) == 2
    assert len({image.get_clim() for image in depths}) == 1


def test_sheet_of_nothing_is_refused():
    with pytest.raises(InputError, match="examples is empty"):
        plot_scenes({})

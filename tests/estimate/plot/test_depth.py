"""Figure of a depth map beside its ground truth."""

import numpy as np
import pytest

import d3s
from d3s.errors import InputError
from d3s.estimate.plot.panels import NO_VALUE_COLOUR
from d3s.lab.view.truth import plot_depth_map

RIG = d3s.Rig.paper_prototype()


@pytest.fixture(scope="module")
def pair():
    return d3s.simulate(d3s.RandomScene(seed=1), RIG, shape=(120, 220), noise=0.01)


@pytest.fixture(scope="module")
def est(pair):
    return d3s.estimate(pair.left, pair.right, RIG)


def shown(figure, begin):
    (axes,) = [axes for axes in figure.axes if axes.get_title().startswith(begin)]
    return axes.images[0]


def test_figure_has_all_of_a_depth_map_beside_the_truth(pair, est):
    figure = plot_depth_map(pair, est)
    np.testing.assert_array_equal(shown(figure, "Left").get_array(), pair.left)
    np.testing.assert_array_equal(shown(figure, "True depth").get_array(), pair.depth_m)
    np.testing.assert_allclose(
        shown(figure, "Error (").get_array().filled(np.nan),
        100 * (est.depth_m - pair.depth_m),
        rtol=1e-5,
    )
    np.testing.assert_array_equal(shown(figure, "Confidence").get_array(), est.confidence)
    assert f"{est.density:.0%} of 120 x 220 px" in figure.get_suptitle()
    units = [axes.get_xlabel() for axes in figure.axes if axes.get_xlabel()]
    assert sorted(units) == sorted(["m", "cm", "cm", "standard deviations", "0 to 1"])


def test_pixels_without_depth_are_grey(pair, est):
    from matplotlib.colors import to_rgba

    assert 0 < est.density < 1
    for begin in ("Estimated", "Error (", "Sigma", "Error /"):
        image = shown(plot_depth_map(pair, est), begin)
        colours = image.to_rgba(image.get_array())
        (only,) = np.unique(colours[~est.valid], axis=0)
        assert only == pytest.approx(to_rgba(NO_VALUE_COLOUR))


def test_depth_map_of_another_pair_is_refused(pair, est):
    other = d3s.simulate(d3s.Plane(depth_m=1.0), RIG, shape=(100, 120))
    with pytest.raises(InputError, match=r"\(120, 220\) and pair \(100, 120\)"):
        plot_depth_map(other, est)

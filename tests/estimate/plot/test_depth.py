"""Figure of a depth map beside its ground truth."""

import re
from pathlib import Path

import numpy as np
import pytest

import d3s
from d3s.errors import InputError
from d3s.estimate import Flag
from d3s.estimate.plot.flag_colours import FLAG_COLOURS, first_flag
from d3s.estimate.plot.panels import NO_VALUE_COLOUR, VISIBLE_COLOUR
from d3s.estimate.plot.save import save_figure
from d3s.lab.view.truth import plot_depth_map

ROOT = Path(__file__).parents[3]
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


def test_depths_have_one_scale_and_errors_one_about_zero(pair, est):
    figure = plot_depth_map(pair, est)
    assert shown(figure, "True depth").get_clim() == shown(figure, "Estimated").get_clim()
    low, high = shown(figure, "Error (").get_clim()
    assert low == -high < 0


def test_pixels_without_depth_are_grey(pair, est):
    from matplotlib.colors import to_rgba

    assert 0 < est.density < 1
    for begin in ("Estimated", "Error (", "Sigma", "Error /"):
        image = shown(plot_depth_map(pair, est), begin)
        colours = image.to_rgba(image.get_array())
        (only,) = np.unique(colours[~est.valid], axis=0)
        assert only == pytest.approx(to_rgba(NO_VALUE_COLOUR))


def testfirst_flag_is_shown_and_every_flag_has_a_colour():
    pairs = Flag.BORDER | Flag.AMBIGUOUS, Flag.CARRIED | Flag.LOW_CONFIDENCE
    flags = np.array([[0, *pairs, Flag.LARGE_SIGMA, Flag.AMBIGUOUS, Flag.CARRIED]])
    assert first_flag(flags.astype(np.uint16)).tolist() == [[0, 1, 9, 10, 5, 11]]
    assert set(FLAG_COLOURS) == set(Flag)
    assert len({*FLAG_COLOURS.values(), VISIBLE_COLOUR, NO_VALUE_COLOUR}) == len(Flag) + 2


def test_legend_has_the_share_of_each_flag(pair, est):
    (axes,) = [a for a in plot_depth_map(pair, est).axes if a.get_legend()]
    words = [text.get_text() for text in axes.get_legend().get_texts()]
    assert words[0] == f"depth {est.density:.0%}"
    border = np.mean((est.flags & Flag.BORDER) != 0)
    assert f"border {border:.1%}" in words


def test_map_without_any_depth(pair, est, tmp_path):
    nothing = est.filter(max_sigma_m=0.0)
    figure = plot_depth_map(pair, nothing)
    assert "mean absolute error" not in figure.get_suptitle()
    save_figure(figure, tmp_path / "nothing.png", dpi=40)


def test_depth_map_of_another_pair_is_refused(pair, est):
    other = d3s.simulate(d3s.Plane(depth_m=1.0), RIG, shape=(100, 120))
    with pytest.raises(InputError, match=r"\(120, 220\) and pair \(100, 120\)"):
        plot_depth_map(other, est)


def test_picture_of_the_page_is_there_and_small():
    page = (ROOT / "docs" / "estimator.md").read_text()
    (name,) = re.findall(r"!\[[^\]]+\]\((.+?)\)", page)
    data = (ROOT / "docs" / name).read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) < 400_000

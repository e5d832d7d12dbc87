"""Preview of a depth map: colours and colour bar."""

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from d3s.errors import InputError, OutputError
from d3s.estimate.plot.panels import NO_VALUE_COLOUR
from d3s.estimate.plot.preview import plot_preview, write_preview

DEPTH = np.geomspace(0.3, 2.4, 1200).reshape(30, 40)
DEPTH[4, 5] = np.nan


def test_bar_has_round_depths_and_missing_depths_are_grey():
    figure = plot_preview(DEPTH, "a $trange camera")
    axes, bar = figure.axes
    (shown,) = axes.images
    np.testing.assert_array_equal(shown.get_array().mask, np.isnan(DEPTH))
    assert shown.cmap(np.ma.masked) == pytest.approx(to_rgba(NO_VALUE_COLOUR), abs=0.01)
    labels = " ".join(label.get_text() for label in bar.get_yticklabels())
    assert labels == "0.4 0.5 0.7 1 1.5 2"
    assert bar.get_ylabel() == "depth (m)"
    figure.canvas.draw()  # with a title that looks like a formula


@pytest.mark.parametrize("depth", [np.full((5, 90), np.nan), np.ones((90, 5)), np.zeros((4, 4))])
def test_images_with_few_or_no_depths(tmp_path, depth):
    write_preview(tmp_path / "a_preview.png", depth)
    assert (tmp_path / "a_preview.png").stat().st_size > 500


def test_refusals(tmp_path):
    with pytest.raises(InputError, match=r"depth has shape \(3,\)"):
        plot_preview(np.ones(3))
    (tmp_path / "a.png").write_text("of mine")
    with pytest.raises(OutputError, match="exists"):
        write_preview(tmp_path / "a.png", DEPTH)

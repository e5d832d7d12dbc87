"""Figure of the optics, and writing of figures."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from d3s.errors import InputError
from d3s.estimate.plot.save import save_figure
from d3s.lab.design.limits import Conditions, depth_limits
from d3s.lab.view.plots import plot_optics
from d3s.rig import Rig


@pytest.fixture
def figure():
    rig = Rig.paper_prototype()
    depths = np.linspace(0.3, 2.0, 18)
    limits = [
        depth_limits(rig.optics, depths, spread=spread, conditions=Conditions())
        for spread in ("disk", "diffraction")
    ]
    return plot_optics(rig, *limits)


def test_plot_shows_blur_disparity_and_bound(figure):
    blur, disparity, bound = figure.axes
    labels = [text.get_text() for text in blur.get_legend().get_texts()]
    assert labels == ["left, focus 0.809 m", "right, focus 0.881 m"]
    np.testing.assert_allclose(disparity.lines[0].get_ydata()[0], 77.44)
    total, diffracted, defocus, _ = (line.get_ydata() for line in bound.lines)
    assert (total < defocus).all()
    assert diffracted.shape == total.shape
    assert bound.get_yscale() == "log"


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_same_figure_gives_the_same_bytes(tmp_path, suffix):
    figure = Figure((1, 1))
    first, second = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    save_figure(figure, first)
    save_figure(figure, second)
    assert first.read_bytes() == second.read_bytes()


def test_suffix_chooses_the_format(tmp_path):
    figure = Figure((1, 1))
    save_figure(figure, tmp_path / "a.PNG")
    assert (tmp_path / "a.PNG").read_bytes().startswith(b"\x89PNG")
    for name in ("plot", "plot.docx"):
        with pytest.raises(InputError, match=r"must end in \.png, \.pdf, \.svg"):
            save_figure(figure, tmp_path / name)

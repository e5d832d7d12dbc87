"""The chart of a stereo data set: a row of panels for each light."""

from d3s.lab.evaluate import evaluate_stereo
from d3s.lab.view.methods import plot_stereo
from stereo_sets import write_middlebury


def test_a_row_of_panels_for_each_light(tmp_path):
    write_middlebury(tmp_path / "Bench")
    results = evaluate_stereo(tmp_path, "bm", lights=("gamma=1.3",), workers=1)
    figure = plot_stereo(results)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[0] == "error over density, as stored"
    assert titles[3] == "error over density, gamma=1.3"
    assert len(titles) == 6
    assert len(figure.axes[0].lines) == 2  # the curve, and the mark of the own filter

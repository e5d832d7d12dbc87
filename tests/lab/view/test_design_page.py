"""Page of a design: self-contained, and its changed curves are those of the library."""

import json
import re

import numpy as np
import pytest

from d3s.lab.design.camera import Camera
from d3s.lab.design.candidates import Requirements
from d3s.lab.design.predict import ErrorLimit, predict
from d3s.lab.design.report import DesignReport
from d3s.lab.design.search import Answer, Search
from d3s.lab.design.tolerances import changed_errors_m, tolerances
from d3s.lab.design.verify import MeasuredErrors
from d3s.lab.design.wall import Lighting
from d3s.lab.view.design import write_design

CAMERA = Camera.paper_prototype()
WISH = ErrorLimit(error_m=0.01)


def _answer(goal, size_m):
    return Answer(goal, CAMERA, size_m, 0.1, 0.3, 0.5, 2.5, "IMX219", "")


@pytest.fixture(scope="module")
def report():
    prediction = predict(CAMERA, depths_m=[0.3, 0.4, 0.55, 0.8, 1.1, 1.6, 2.2])
    answers = tuple(
        _answer(goal, 0.01 * k)
        for k, goal in enumerate(("smallest", "brightest", "most exact"), start=1)
    )
    search = Search(Requirements(reach_m=(0.3, 2.2), error_m=0.01), answers, answers, {}, 100)
    return DesignReport(
        prediction=prediction,
        wish=WISH,
        search=search,
        measured=(MeasuredErrors(depth_m=1.0, mae_m=4e-4, bias_m=0.0, density=1.0),),
        tolerances=tuple(tolerances(prediction, WISH)),
    )


def test_page_is_self_contained_and_tells_everything(report, tmp_path):
    path = tmp_path / "design.html"
    write_design(report, path)
    page = path.read_text()
    assert not re.search(r'(src|href)="(?!data:)', page)
    for words in ("working range", "warmth, aluminium", "smallest", "On the twin, 1 of 1 planes"):
        assert words in page
    data = json.loads(re.search(r'id="design">(.*?)</script>', page, re.DOTALL)[1])
    assert data["mae"] == pytest.approx(report.prediction.mae_m.tolist())


def test_changed_numbers_give_what_the_library_predicts(report):
    """By the table instead of by fits: 2 % of each other where both know the blur."""
    prediction = report.prediction
    found = changed_errors_m(prediction)
    assert set(found) == {"baseline", "focal length", "f-number", "focus", "noise"}
    library = predict(CAMERA, depths_m=prediction.depth_m, light=Lighting(noise=0.014))
    np.testing.assert_allclose(found["noise"][1.4], library.mae_m, rtol=0.02)
    camera = Camera.of_lenses(
        focal_length_m=CAMERA.focal_length_m,
        f_number=1.4 * CAMERA.f_number,
        baseline_m=CAMERA.optics.baseline_m,
        focus_m=CAMERA.optics.focus_distances_m,
        pixel_pitch_m=2e-6,
        sensor_px=CAMERA.sensor_px,
    )
    library = predict(camera, depths_m=prediction.depth_m)
    np.testing.assert_allclose(found["f-number"][1.4], library.mae_m, rtol=0.03)
    assert (found["baseline"][2.0] < prediction.mae_m).all()

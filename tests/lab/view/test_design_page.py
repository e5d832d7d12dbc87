"""Page of a design: self-contained, and its sliders give what the library gives."""

import json
import os
import re
import shutil
import subprocess

import pytest

from d3s.lab.design.camera import Camera
from d3s.lab.design.predict import ErrorLimit, predict
from d3s.lab.design.report import DesignReport
from d3s.lab.design.search import Answer, Requirements, Search
from d3s.lab.design.tolerances import tolerances
from d3s.lab.design.verify import MeasuredErrors
from d3s.lab.design.wall import Lighting
from d3s.lab.view.design_page import design_page, write_design

CAMERA = Camera.paper_prototype()
WISH = ErrorLimit(error_m=0.01)
# An executable, or a script that starts one; D3S_CHROMIUM names one that is not on the path.
CHROMIUM = os.environ.get("D3S_CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


def _answer(goal, size_m):
    return Answer(goal, CAMERA, size_m, 0.1, 0.3, 0.5, 2.5, "IMX219", "")


@pytest.fixture(scope="module")
def report():
    prediction = predict(CAMERA, depths_m=[0.3, 0.4, 0.55, 0.8, 1.1, 1.6, 2.2])
    answers = tuple(
        _answer(goal, 0.01 * k)
        for k, goal in enumerate(("smallest", "brightest", "most exact"), start=1)
    )
    search = Search(Requirements(reach_m=(0.3, 2.2), error_m=0.01), answers, answers, (), 100)
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
    assert set(data["nominal"]) == {"baseline", "focal", "fnumber", "focus", "noise"}


def _shown(path, hash_):
    command = [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--disable-dev-shm-usage", f"--user-data-dir={path.parent}/profile"]
    found = subprocess.run(
        [*command, f"file://{path}{hash_}"], capture_output=True, text=True, timeout=120, check=True
    )
    text = re.search(r'<div id="shown">(.*?)</div>', found.stdout, re.DOTALL)[1]
    return json.loads(text), found.stdout


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_sliders_move_and_redraw_what_the_library_predicts(report, tmp_path):
    path = tmp_path / "design.html"
    path.write_text(design_page(report))
    designed, first = _shown(path, "")
    assert designed["mae"] == pytest.approx(report.prediction.mae_m.tolist(), rel=1e-6)
    moves = {"baseline": 650, "focal": 420, "fnumber": 560, "focus": 470, "noise": 620}
    moved, second = _shown(path, "#" + "&".join(f"{k}={v}" for k, v in moves.items()))
    values = moved["values"]
    apart = 1 / CAMERA.optics.focus_distances_m[0] - 1 / CAMERA.optics.focus_distances_m[1]
    focus = [1 / (1 / values["focus"] + sign * apart / 2) for sign in (1, -1)]
    camera = Camera.of_lenses(
        focal_length_m=values["focal"],
        f_number=values["fnumber"],
        baseline_m=values["baseline"],
        focus_m=(focus[0], focus[1]),
        pixel_pitch_m=2e-6,
        sensor_px=(2160, round(2 * values["baseline"] / 2e-6)),
    )
    library = predict(camera, depths_m=designed["depth"], light=Lighting(noise=values["noise"]))
    assert moved["mae"] == pytest.approx(library.mae_m.tolist(), rel=0.02)
    charts = [
        re.search(r'<svg id="errors".*?</svg>', page, re.DOTALL)[0] for page in (first, second)
    ]
    assert charts[0] != charts[1]
    assert "<polyline" in charts[1]

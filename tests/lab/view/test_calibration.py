"""Page of a calibration: self-contained, with the results of all steps that were reached."""

import json
import re

import numpy as np
import pytest

from d3s.calibrate.calibration_report import Report
from d3s.errors import OutputError
from d3s.lab.view.calibration import report_page, write_report
from d3s.lab.view.page import html_page, html_table, json_block, photo_block, words


def report(**changes) -> Report:
    picture = np.arange(60 * 100, dtype=np.uint8).reshape(60, 100)
    values = {
        "name": "a <b> & c",
        "version": "0",
        "created": "2025-01-31T12:00:00+00:00",
        "names": ("near.png", "far.png"),
        "distances_m": np.array([0.5, 1.0]),
        "shape": (60, 100),
        "not_read": {"white.png": "is overexposed."},
        "remarks": ("1 images of the folder are not in distances.csv: x.png.",),
        "thumbnails": {0: picture, 1: picture},
        "problem": "there is no </script> texture.",
    }
    return Report(**{**values, **changes})


def test_failed_calibration_has_a_page():
    page = report_page(report())
    assert "<title>Calibration of a &lt;b&gt; &amp; c</title>" in page
    assert "there is no &lt;/script&gt; texture." in page
    assert "white.png" in page
    assert "x.png" in page
    assert page.count("data:image/jpeg;base64,") == 2
    (embedded,) = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page)
    assert json.loads(embedded)["verdict"]["grade"] == "none"


def test_page_and_numbers_are_written_together(tmp_path):
    numbers = write_report(report(), tmp_path / "cal.html")
    assert numbers == tmp_path / "cal.json"
    assert json.loads(numbers.read_text())["name"] == "a <b> & c"
    with pytest.raises(OutputError, match="exists"):
        write_report(report(name="other"), tmp_path / "cal.html")
    write_report(report(name="other"), tmp_path / "cal.html", overwrite=True)
    assert json.loads(numbers.read_text())["name"] == "other"


def test_text_is_escaped():
    told = [
        words("<i>"),
        html_table(("<i>",), [("<i>",)]),
        photo_block(np.zeros((4, 4), np.uint8), "<i>"),
        json_block({"a": "</script><i>"}, "numbers"),
    ]
    page = html_page("<i>", told)
    assert page.count("<i>") == 1  # in the JSON, where it is no markup
    assert page.count("</script>") == 1

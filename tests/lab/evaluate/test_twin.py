"""The twin against the path tracer; skipped where Mitsuba is not installed."""

import pytest

from d3s.lab.evaluate.twin import SCENES, compare_twin


@pytest.mark.slow
def test_the_twin_agrees_with_the_path_tracer():
    pytest.importorskip("mitsuba")
    seen = []
    rows = compare_twin(shape=(64, 128), samples=64, progress=lambda *step: seen.append(step))
    assert seen == [(number + 1, SCENES) for number in range(SCENES)]
    assert [row.region for row in rows] == ["all"] * 4 + ["near edges", "interior"]
    for row in rows:
        assert row.pixels > 500
        # Detail at the limit of the pixels, in focus, differs most: texels are interpolated.
        assert row.rms < 0.012
        assert abs(row.bias) < 0.005
        assert row.noise < 0.03

"""Synthetic scenes at a tiny size: figures beside each map are those of the sweep."""

import numpy as np
import pytest

from d3s.lab.evaluate import Contender, SceneSweep
from d3s.lab.reproduce import fig_s5_synthetic_scenes
from d3s.lab.reproduce.fig_s5_synthetic_scenes import make_synthetic
from d3s.lab.reproduce.item import Context
from d3s.lab.reproduce.protocol import PRINTED, TUNED
from made_results import table, tiny_twin


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fig_s5_synthetic_scenes, "twin_for", lambda context: tiny_twin())
        patch.setattr(
            fig_s5_synthetic_scenes, "OTHERS", (Contender(method="joint"), Contender(method="bm"))
        )
        tiny = SceneSweep(count=2, shape=(140, 200), nearest_m=0.7, patterns=("gravel", "brick"))
        patch.setattr(fig_s5_synthetic_scenes, "scene_sweep", lambda context: tiny)
        return make_synthetic(Context(folder=tmp_path_factory.mktemp("work"), workers=1))


def test_every_method_on_every_scene(result):
    rows = table(result, "synthetic")
    methods = {PRINTED.name, TUNED.name, "joint", "bm"}
    assert {(row["method"], row["scene"]) for row in rows} == {
        (m, s) for m in methods for s in (0, 1)
    }
    error_m = {(row["method"], row["scene"]): row["mae_m"] for row in rows}
    assert 0 < error_m["joint", 0] < 0.01
    # Another rig, and so another depth, of the same images.
    assert error_m[PRINTED.name, 0] != error_m[TUNED.name, 0]


def test_summary_is_in_centimetres(result):
    (joint,) = [row for row in table(result, "synthetic_methods") if row["method"] == "joint"]
    rows = [row for row in table(result, "synthetic") if row["method"] == "joint"]
    counts = np.array([row["retained"] for row in rows])
    pooled = np.array([row["mae_m"] for row in rows]) @ counts / counts.sum()
    assert joint["MAE"] == pytest.approx(100 * pooled)

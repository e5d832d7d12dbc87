"""The core alone: without the lab and the camera, and with few modules of its own."""

import subprocess
import sys

# Whatever is asked for of the other floors is not there.
ALONE = """
import sys
from importlib.abc import MetaPathFinder

class Closed(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in ("d3s.lab", "d3s.camera"):
            raise ModuleNotFoundError(f"{name} is another floor", name=name)

sys.meta_path.insert(0, Closed())
"""
ESTIMATE = """
import numpy as np
import d3s

rig = d3s.Rig.paper_prototype()
right = np.random.default_rng(0).random((120, 260), dtype=np.float32)
left = np.roll(right, 22, axis=1)
found = d3s.estimate(left, right, rig)
assert abs(np.nanmedian(found.disparity_px) - 22) < 0.1
assert found.explain() and found.at(60, 130).depth_m > 0
found.filter(min_confidence=0.5).save("found.npz")
assert d3s.DepthMap.load("found.npz").density > 0
found.save("points.ply")
found._repr_html_()
"""
IMPORT_ALL = """
import pkgutil
from importlib import import_module
import d3s

def import_all(path, prefix):
    for module in pkgutil.iter_modules(path, prefix):
        if module.name not in ("d3s.cli", "d3s.__main__", "d3s.lab", "d3s.camera"):
            package = import_module(module.name)
            if module.ispkg:
                import_all(package.__path__, f"{module.name}.")

import_all(d3s.__path__, "d3s.")
"""


def run(code, folder):
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


def test_an_estimate_needs_no_other_floor(tmp_path):
    run(ALONE + ESTIMATE, tmp_path)


def test_every_module_of_the_core_imports_without_the_others(tmp_path):
    run(ALONE + IMPORT_ALL, tmp_path)

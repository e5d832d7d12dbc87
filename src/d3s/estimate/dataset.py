"""Depth maps as xarray datasets, with units and flags after the CF conventions."""

import importlib.util
from typing import TYPE_CHECKING

import numpy as np

from d3s.errors import MissingPackageError
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.version import __version__

if TYPE_CHECKING:
    from xarray import Dataset

NAMES = {
    "depth_m": ("depth along the optical axis from the plane of the lenses", "m"),
    "sigma_m": ("standard deviation of depth_m", "m"),
    "confidence": ("confidence, 0 to 1", "1"),
    "flags": ("reasons why a pixel has no depth, and remarks on depths", "1"),
    "intensity": ("left view", "1"),
}


def as_dataset(depth_map: DepthMap) -> "Dataset":
    """Dataset with the dimensions row and col; attributes are texts and numbers, as files need.

    Raises
    ------
    InputError
        If xarray is not installed.
    """
    if importlib.util.find_spec("xarray") is None:
        raise MissingPackageError("to_xarray needs the package xarray", "xarray")
    from xarray import Dataset

    layers = {name: getattr(depth_map, name) for name in NAMES}
    found = {name: values for name, values in layers.items() if values is not None}
    rows, cols = depth_map.depth_m.shape
    data = Dataset(
        {
            name: (("row", "col"), values, {"long_name": NAMES[name][0], "units": NAMES[name][1]})
            for name, values in found.items()
        },
        coords={
            "row": ("row", np.arange(rows), {"long_name": "row of the left view, from the top"}),
            "col": ("col", np.arange(cols), {"long_name": "column of the left view"}),
        },
        attrs={
            "camera": depth_map.rig.name,
            "focal_length_px": depth_map.rig.optics.focal_length_px,
            "baseline_m": depth_map.rig.optics.baseline_m,
            "method": depth_map.method,
            "warnings": "\n".join(depth_map.warnings),
            "source": f"d3s {__version__}",
        },
    )
    data["flags"].attrs |= {
        "flag_masks": np.array([flag.value for flag in Flag], dtype=np.uint16),
        "flag_meanings": " ".join(str(flag.name).lower() for flag in Flag),
    }
    return data

"""A rectified pair and its camera in; depth, sigma, confidence and flags per pixel out.

`d3s.estimate` is this package and can be called: ``d3s.estimate(left, right, rig)``.

methods      `estimate`, and the table of methods by name
options      options of the methods, each with its reason
depth_map    `DepthMap`, the result
flags        reasons why a pixel has no depth
saving       depth maps in files
summary      numbers and sentences on a depth map
pixels       depth at a pixel, distances, points in space
dataset      depth maps as xarray datasets
checked_pair check of the user's arrays
intensity    passes over the intensities of a view
clipping     pixels at the limits of the sensor
candidates   depths to search by default
diagnosis    likely causes of an empty or poor depth map, in words
drift_watch  `DriftWatch`: a camera that has moved, noticed over many frames
lens_field   blur and disparity of lenses over the field
joint        our method: its stages, and its compiled loops in `joint.kernels`
consensus    the paper's algorithm as printed
"""

from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.estimate.methods import estimate
from d3s.estimate.options import ConsensusOptions, JointOptions, Options
from d3s.registry import make_callable

__all__ = ["ConsensusOptions", "DepthMap", "Flag", "JointOptions", "Options", "estimate"]

make_callable(__name__, estimate)

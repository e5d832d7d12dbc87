"""The oracle: operations of the joint method in NumPy and double precision, slow and short.

Tests hold the compiled operations of `numba_backend` to these. Nothing else imports this package.

prefilter    centring, smoothing, noise
search       matching costs and paths
refine       least squares over windows
support      texture around cells, and the probability of being wrong
confidence   depth, sigma, confidence and flags
field        blur and disparity of lenses over the field
"""

from d3s.estimate.depth_map import DepthMap
from d3s.estimate.joint.backend import Backend
from d3s.estimate.joint.method import as_depth_map, run_joint
from d3s.estimate.joint.numpy_backend.confidence import NumpyConfidence
from d3s.estimate.joint.numpy_backend.field import NumpyField
from d3s.estimate.joint.numpy_backend.prefilter import NumpyPrefilter
from d3s.estimate.joint.numpy_backend.refine import NumpyRefine
from d3s.estimate.joint.numpy_backend.search import NumpySearch
from d3s.estimate.joint.numpy_backend.support import NumpySupport
from d3s.estimate.options import JointOptions
from d3s.rig import Rig
from d3s.types import Image


def numpy_backend() -> Backend:
    """Return the operations in NumPy."""
    return Backend(
        NumpyPrefilter(),
        NumpySearch(),
        NumpyRefine(),
        NumpySupport(),
        NumpyConfidence(),
        NumpyField(),
    )


def joint_reference(left: Image, right: Image, rig: Rig, options: JointOptions) -> DepthMap:
    """Estimate depth as `estimate_joint` does, in NumPy and double precision.

    Parameters
    ----------
    left, right
        Views (rows, cols) as `checked_pair` returns them.
    rig
        The camera.
    options
        Options of the method.
    """
    return as_depth_map(run_joint(left, right, rig, options, numpy_backend()), rig, options)

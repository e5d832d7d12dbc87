"""Compiled operations of the joint method: single precision, rows shared among threads.

prefilter    centring, smoothing, noise
search       local means, median, and the operations of the search
matching     matching costs of whole shifts
paths        semi-global paths and the best shift
refine       the operations of the refinement
cells        sums over cells
windows      least squares over windows of cells
window_sums  sums over the windows of a row of cells
surfaces     windows on one surface; slopes and bends of surfaces
grids        cells of one size from cells of another
support      texture around cells, and the probability of being wrong
confidence   depth, sigma, confidence and flags
field        blur and disparity of lenses over the field
lines        copies and interpolation of image rows
"""

from d3s.estimate.joint.backend import Backend
from d3s.runtime.scratch import Scratch


def numba_backend(memory: Scratch) -> Backend:
    """Return the compiled operations, whose intermediate arrays live in scratch memory."""
    # Imported here: loading Numba and its compiled functions takes half a second.
    from d3s.estimate.joint.numba_backend.confidence import NumbaConfidence
    from d3s.estimate.joint.numba_backend.field import NumbaField
    from d3s.estimate.joint.numba_backend.prefilter import NumbaPrefilter
    from d3s.estimate.joint.numba_backend.refine import NumbaRefine
    from d3s.estimate.joint.numba_backend.search import NumbaSearch
    from d3s.estimate.joint.numba_backend.support import NumbaSupport

    return Backend(
        NumbaPrefilter(memory),
        NumbaSearch(memory),
        NumbaRefine(memory),
        NumbaSupport(memory),
        NumbaConfidence(memory),
        NumbaField(memory),
    )

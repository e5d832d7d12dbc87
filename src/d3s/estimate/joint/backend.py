"""What the joint method does to images, twice over: compiled in single precision, and plain.

The method itself (`joint`, `search`, `refine`, `judge`) is written once, over these operations. The
plain ones are what the compiled ones are held against.
"""

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from numpy.typing import NDArray

from d3s.estimate.joint.confidence_types import Judged, Judging
from d3s.estimate.joint.model import Array
from d3s.estimate.joint.types import Fit, Fitting, Refined
from d3s.runtime.scratch import Memory

if TYPE_CHECKING:
    from d3s.estimate.joint.numpy_backend.search import Pick
    from d3s.estimate.joint.search import Found

Whole = NDArray[Any]  # of whole numbers, or a mask


class PrefilterOperations(Protocol):
    """Views made ready."""

    def centred(self, left: Array, right: Array) -> tuple[Array, Array]:
        """Views about their common mean over a power of two; what is not finite becomes zero."""

    def smooth(self, image: Array, sigma_px: float, step: int = 1) -> Array:
        """Gaussian, then one pixel for `step` each way, one or two, at their middle."""

    def noise_variance(self, view: Array, half: int) -> Array:
        """Variance of white noise over windows of 2 half + 1 cells of 2x2 pixels, one a cell."""


class SearchOperations(Protocol):
    """Costs of whole shifts, and the best of them."""

    def without_mean(self, image: Array, half: int) -> Array:
        """Image less its mean over 2 half + 1 pixels each way."""

    def window_means(self, image: Array, half: int) -> Array:
        """Mean over 2 half + 1 pixels each way, of those inside the frame."""

    def median_of_nine(self, image: Array) -> Array:
        """Median over a pixel and its neighbours; the image goes on as its last pixel."""

    def matching_costs(
        self,
        left: Array,
        right: Array,
        first_shift: int,
        defocus: Array,
        *,
        half: int,
        floor: float,
        tolerance: float,
        limit: float,
    ) -> Whole:
        """Misfit of the views at whole shifts, over what noise and texture explain, as bytes."""

    def found(
        self, costs: Whole, allowed: Whole, *, small: int, large: int, limit: float
    ) -> "Pick":
        """Lowest total of the paths from four sides, and what is next best."""

    def seen(self, pick: "Pick", first_shift: int) -> Whole:
        """Step that the right view sees where each pixel points to; -1 if that is out of it."""


class RefineOperations(Protocol):
    """Least squares over windows of cells."""

    def halved(self, image: Array) -> Array:
        """Mean of the middle two of each 2 x 2 pixels."""

    def doubled(self, image: Array, shape: tuple[int, int]) -> Array:
        """Image of a shape, linear between the pixels, each of which stands for 2 x 2."""

    def scales(self, disparity_px: Array, finer: dict[int, tuple[float, float]]) -> Whole:
        """Coarsest scale at which each cell may be fitted."""

    def wanted(self, scales: Whole, least: int, most: int, *, is_coarse: bool) -> Whole:
        """Cells of these scales; of a grid of half the size, those they are interpolated from."""

    def one_surface(
        self, disparity: Array, halves: tuple[int, ...], least: float, share: float, zero: float
    ) -> Whole:
        """How many windows in a row hold disparities that may be of one surface."""

    def usable(
        self, disparity: Array, fitting: Fitting, least: float, share: float, zero: float
    ) -> Whole:
        """How many of the larger windows lie within both views and on one surface."""

    def cells(
        self, left: Array, right: Array, disparity: Array, wanted: Whole, fitting: Fitting
    ) -> Array:
        """Sums over the pixels of each cell that the windows of a wanted one reach: `Plane`."""

    def moved(
        self, sums: Array, disparity: Array, usable: Whole, wanted: Whole, fitting: Fitting
    ) -> Array:
        """Disparity by least squares, of the wanted cells; the others stay where they are."""

    def settled(self, sums: Array, before: Array, after: Array) -> Array:
        """Sums of cells as they would be at other disparities, to first order."""

    def fit(
        self,
        sums: Array,
        disparity: Array,
        usable: Whole,
        noise: Array,
        wanted: Whole,
        fitting: Fitting,
    ) -> Fit:
        """The same, with all that is known of it.

        Over the largest window that is usable and that the smaller ones within it agree with.
        """

    def finished(self, fit: Fit, fitting: Fitting, scale: int) -> Refined:
        """A fit in pixels of the frame, less what slopes add to it.

        The disparity of a window is that of the centroid of its squared gradients, not of its
        middle.
        """

    def merged(self, disparity_px: Array, coarse_px: Array, scales: Whole, most: int) -> Array:
        """Disparities of a coarser grid, but those of the cells beyond a scale."""

    def joined(self, parts: dict[int, Refined], scales: Whole) -> Refined:
        """Each cell from the part of its scale, interpolated if that is coarser."""


class JudgeOperations(Protocol):
    """What is to be believed."""

    def of_search(self, found: "Found", depth: int, least_margin: float) -> Whole:
        """Flags that come from the search, which looked at so many shifts."""

    def judged(self, fit: Refined, is_one: Whole, flags: Whole, judging: Judging) -> Judged:
        """All of a frame; `is_one` says where there is one surface, `flags` are of the search."""


class Operations(NamedTuple):
    """Those of each stage."""

    prefilter: PrefilterOperations
    search: SearchOperations
    refine: RefineOperations
    judge: JudgeOperations


def compiled_operations(memory: Memory) -> Operations:
    """Single precision, machine code, rows shared out among the cores, arrays out of a memory."""
    from d3s.estimate.joint.numba_backend.confidence import CompiledJudge
    from d3s.estimate.joint.numba_backend.prefilter import CompiledPrefilter
    from d3s.estimate.joint.numba_backend.refine import CompiledRefine
    from d3s.estimate.joint.numba_backend.search import CompiledSearch

    return Operations(
        CompiledPrefilter(memory),
        CompiledSearch(memory),
        CompiledRefine(memory),
        CompiledJudge(memory),
    )


def plain_operations() -> Operations:
    """Double precision, NumPy."""
    from d3s.estimate.joint.numpy_backend.confidence import PlainJudge
    from d3s.estimate.joint.numpy_backend.prefilter import PlainPrefilter
    from d3s.estimate.joint.numpy_backend.refine import PlainRefine
    from d3s.estimate.joint.numpy_backend.search import PlainSearch

    return Operations(PlainPrefilter(), PlainSearch(), PlainRefine(), PlainJudge())

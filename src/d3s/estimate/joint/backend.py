"""Operations of the joint method on images, which each back-end implements.

The method (`method`, `search`, `refine`, `confidence`) is written once, over these operations. The
`numba_backend` is compiled code in single precision, for production. The `numpy_backend` is plain
NumPy in double precision: the oracle that the tests hold the compiled code to.
"""

from typing import NamedTuple, Protocol

from d3s.estimate.joint.field import FieldOperations
from d3s.estimate.joint.types import (
    Array,
    Bits,
    CellFit,
    ConfidenceParameters,
    Costs,
    Counts,
    DepthPlanes,
    Evidence,
    FitParameters,
    Indices,
    PathResult,
    SearchResult,
    Steps,
    SurfaceLimits,
    Trust,
    TrustModel,
    WindowFit,
)
from d3s.types import Mask


class PrefilterOperations(Protocol):
    """Preparation of the views."""

    def centre(self, left: Array, right: Array) -> tuple[Array, Array]:
        """Subtract the common mean, divide by a power of two, set non-finite pixels to 0."""

    def smooth(self, image: Array, sigma_px: float, step: int = 1) -> Array:
        """Smooth by a Gaussian, then keep one pixel per `step` x `step` (1 or 2), at its centre.

        Parameters
        ----------
        image
            View (rows, cols).
        sigma_px
            Sigma of the Gaussian, in pixels of the image, at least 0.
        step
            Pixels of the image per pixel of the result: 1 or 2.
        """

    def noise_variance(self, view: Array, half: int) -> Array:
        """Return the variance of white noise around each cell of 2 x 2 pixels.

        Over windows of 2 half + 1 cells, by second differences in both directions, which cancel a
        smooth image and give 36 times the variance of noise (Immerkær, "Fast noise variance
        estimation", CVIU 1996).
        """


class SearchOperations(Protocol):
    """Matching costs of whole shifts, and the best shift."""

    def local_mean(self, image: Array, half: int) -> Array:
        """Return the mean over those of 2 half + 1 pixels each way that are inside the frame."""

    def median_3x3(self, image: Array) -> Array:
        """Return the median over 3 x 3 pixels; edge pixels are repeated."""

    def matching_costs(
        self, left: Array, right: Array, first_shift: int, shifts: int, scales: tuple[float, float]
    ) -> Costs:
        """Return the difference of the views at each whole shift, as bytes.

        It is the number of neighbours within 5 x 5 pixels whose order in brightness differs
        (census), plus the difference of the horizontal derivatives beyond that of half a pixel
        (Birchfield and Tomasi), mean over 3 x 3 pixels. Where a window leaves the overlap of both
        views sideways, it is `MAX_COST`.

        Parameters
        ----------
        left, right
            Views (rows, cols) at the search scale.
        first_shift
            First shift, in pixels of the search scale; the others follow one by one.
        shifts
            Number of shifts.
        scales
            Factor on the derivatives of each view, before they are limited to `MAX_SLOPE`.
        """

    def step_penalties(
        self, view: Array, penalty: float, least: float, unit: float
    ) -> tuple[Steps, Steps]:
        """Return the penalty of large steps between neighbours, lower across edges of the view.

        It is divided by 1 + the difference of the two pixels over `unit`.

        Parameters
        ----------
        view
            Left view (rows, cols).
        penalty, least
            Penalty between equal pixels, and the smallest one.
        unit
            Difference in brightness that halves the penalty.

        Returns
        -------
        Penalties (rows, cols) between each pixel and the one before it, and the one above it.
        """

    def aggregate_paths(
        self, costs: Costs, allowed: Mask, small: int, large: tuple[Steps, Steps]
    ) -> PathResult:
        """Add up the path costs from four sides and find the lowest and the next best total.

        Parameters
        ----------
        costs
            Matching costs (rows, cols, shifts), the shifts padded.
        allowed
            Shifts that may be chosen (shifts,).
        small
            Penalty of neighbours one shift apart.
        large
            Penalties of neighbours further apart, from `step_penalties`.
        """

    def aligned_costs(
        self, costs: Costs, lowest: Steps, allowed: Mask, side: int, stride: int
    ) -> tuple[Indices, Indices]:
        """Add up the costs of each block by their distance from the chosen shift, and count them.

        Costs of `MAX_COST`, out of the overlap, do not count.

        Parameters
        ----------
        costs
            Matching costs (rows, cols, shifts), the shifts padded.
        lowest
            Chosen step of each pixel (rows, cols).
        allowed
            Shifts that may be chosen (shifts,); others do not count.
        side
            Side of a block in pixels.
        stride
            Of so many pixels one is used, in both directions.

        Returns
        -------
        Sums and counts (blocks down, blocks across, 2 shifts - 1), distance 0 in the middle.
        """

    def right_view_steps(self, paths: PathResult, first_shift: int) -> Steps:
        """Return the step that the right view chooses for each pixel's match (left-right check).

        Of all pixels that match one pixel of the right view it chooses the one with the lowest
        total, of equal totals the nearest. -1 where the match is out of the frame.
        """


class RefineOperations(Protocol):
    """Least squares over windows of cells."""

    def halve(self, image: Array) -> Array:
        """Shrink by two: the mean of the middle two values of each 2 x 2 pixels."""

    def double(self, image: Array, shape: tuple[int, int]) -> Array:
        """Enlarge by two to a shape, by linear interpolation."""

    def coarsest_scales(
        self, disparity_px: Array, finer_px: dict[int, tuple[float, float]]
    ) -> Counts:
        """Return the coarsest scale at which each cell may be fitted.

        `finer_px` has, for each scale, the interval of disparities that need a finer one.

        Parameters
        ----------
        disparity_px
            Disparity of each cell (rows, cols), in pixels of the frame.
        finer_px
            For each scale above 1, the interval (low, high) of disparities it is too coarse for.
        """

    def select_cells(self, scales: Counts, least: int, most: int, *, is_coarse: bool) -> Mask:
        """Select the cells of scales least to most.

        On a coarse grid of half the size: the cells from which these are interpolated.

        Parameters
        ----------
        scales
            Coarsest scale of each cell of the frame (rows, cols): 1, 2 or 4.
        least, most
            Scales to select, from 1 to 4, both included.
        is_coarse
            Whether to select on the grid of half the size.
        """

    def count_one_surface(
        self, disparity: Array, halves: tuple[int, ...], limits: SurfaceLimits
    ) -> Counts:
        """Count the windows, from the smallest on, whose disparities may be of one surface.

        Parameters
        ----------
        disparity
            Disparity of each cell (rows, cols), in pixels of the scale.
        halves
            Half sides of the windows in cells, increasing.
        limits
            Extent of the disparities that one surface may have within a window.
        """

    def count_usable(
        self, disparity: Array, parameters: FitParameters, limits: SurfaceLimits
    ) -> Counts:
        """Count the larger windows that lie within both views and on one surface.

        Parameters
        ----------
        disparity
            Disparity of each cell (rows, cols), in pixels of the scale.
        parameters
            Parameters of the fit at this scale.
        limits
            Extent of the disparities that one surface may have within a window.
        """

    def sum_cells(
        self,
        left: Array,
        right: Array,
        disparity: Array,
        wanted: Mask,
        parameters: FitParameters,
        blur: Array | None = None,
    ) -> Array:
        """Return the sums `CellSum` over the pixels of each cell (sums, rows, cols).

        At least of the cells that the windows of a wanted cell reach.

        Parameters
        ----------
        left, right
            Views (rows, cols) of the scale.
        disparity
            Disparity of each cell (rows, cols), in pixels of the scale.
        wanted
            Cells to compute (rows, cols).
        parameters
            Parameters of the fit at this scale.
        blur
            Planes `BlurPlane` of each cell, in place of `parameters.defocus`.
        """

    def update_disparity(
        self,
        sums: Array,
        disparity: Array,
        anchor: Array,
        usable: Counts,
        wanted: Mask,
        parameters: FitParameters,
    ) -> Array:
        """Return the least-squares disparity of the wanted cells; others keep theirs.

        Parameters
        ----------
        sums
            Sums `CellSum` of each cell (sums, rows, cols).
        disparity
            Disparity of each cell (rows, cols), in pixels of the scale.
        anchor
            Disparity that the search found, which counts as a measurement of its own.
        usable
            Number of larger windows that each cell may use (rows, cols).
        wanted
            Cells to compute (rows, cols).
        parameters
            Parameters of the fit at this scale.
        """

    def shift_sums(self, sums: Array, before: Array, after: Array) -> Array:
        """Return the sums as they would be at other disparities, to first order.

        Parameters
        ----------
        sums
            Sums `CellSum` of each cell (sums, rows, cols).
        before
            Disparity at which the sums were taken (rows, cols), in pixels of the scale.
        after
            Disparity to shift the sums to.
        """

    def fit_windows(
        self,
        sums: Array,
        disparity: Array,
        anchor: Array,
        usable: Counts,
        noise: Array,
        wanted: Mask,
        parameters: FitParameters,
        blur: Array | None = None,
    ) -> WindowFit:
        """Fit each wanted cell over the largest usable window that its smaller windows agree with.

        `noise` is the variance of one view's white noise around each cell. Cells outside `wanted`
        keep their disparity; their sigma is `UNKNOWN_PX`.

        Parameters
        ----------
        sums
            Sums `CellSum` of each cell (sums, rows, cols).
        disparity
            Disparity of each cell (rows, cols), in pixels of the scale.
        anchor
            Disparity that the search found, which counts as a measurement of its own.
        usable
            Number of larger windows that each cell may use (rows, cols).
        noise
            Variance of one view's white noise around each cell (rows, cols), at least 0.
        wanted
            Cells to compute (rows, cols).
        parameters
            Parameters of the fit at this scale.
        blur
            Planes `BlurPlane` of each cell, in place of `parameters.defocus`.
        """

    def correct_slopes(self, fit: WindowFit, parameters: FitParameters, scale: int) -> CellFit:
        """Remove the effect of slopes from a fit, and convert it to pixels of the frame.

        The disparity of a window is that at the centroid of its squared gradients, not at its
        centre.

        Parameters
        ----------
        fit
            Fit of each cell at the scale.
        parameters
            Parameters of the fit at this scale.
        scale
            Frame pixels per pixel of the scale: 1, 2 or 4.
        """

    def merge_coarse(
        self, disparity_px: Array, coarse_px: Array, scales: Counts, most: int, max_move_px: float
    ) -> Array:
        """Return the disparities of a coarser grid for cells up to a scale, else the given ones.

        Also the given ones where the two are `max_move_px` or more apart: beside a step in depth
        the coarser grid mixes both sides.

        Parameters
        ----------
        disparity_px
            Disparity of each cell of the frame (rows, cols), in pixels of the frame.
        coarse_px
            Disparity of each cell of the grid of half the size, in pixels of the frame.
        scales
            Coarsest scale of each cell of the frame (rows, cols): 1, 2 or 4.
        most
            Largest scale whose cells take the coarse disparity.
        max_move_px
            Difference from which on the given disparity is kept.
        """

    def join_scales(self, parts: dict[int, CellFit], scales: Counts) -> CellFit:
        """Take each cell from the fit of its scale, interpolated if that is coarser."""


class SupportOperations(Protocol):
    """Texture around cells."""

    def find_ridges(self, view: Array, noise: Array, factor: float) -> Mask:
        """Return the pixels at which the gradient is largest along its own direction.

        Its square, by differences of the neighbours on both sides, is above `factor` times the
        noise variance. Beside a blurred edge only the middle of the edge is a ridge.

        Parameters
        ----------
        view
            View (rows, cols).
        noise
            Variance of white noise around each pixel (rows, cols).
        factor
            Squared difference of a ridge over the noise variance.
        """

    def support_gaps(
        self, is_ridge: Mask, disparity: Array, tolerance: float, reach: int
    ) -> tuple[Array, Array]:
        """Return the gap between ridges around each cell, and the distance to the nearest one.

        Both in cells, at most `reach`. In each of the four directions through a cell, the gap is
        the distance to the farther one of the two next ridges; the result is the second smallest
        of the four. Ridges count if the disparities on the way differ from theirs by at most
        the tolerance. The cell itself does not count.

        Parameters
        ----------
        is_ridge
            Cells with texture (rows, cols).
        disparity
            Disparity of each cell (rows, cols).
        tolerance
            Difference of disparity within a surface.
        reach
            Largest distance, in cells, at most 255.
        """

    def probability(self, evidence: Evidence, model: TrustModel) -> Array:
        """Return the probability of each cell that its disparity is wrong (logistic model)."""


class ConfidenceOperations(Protocol):
    """Depth, sigma, confidence and flags."""

    def search_flags(self, found: SearchResult, shifts: int, min_margin: float) -> Bits:
        """Return the flags that follow from a search over so many shifts.

        Parameters
        ----------
        found
            Result of the search.
        shifts
            Number of shifts searched.
        min_margin
            Margin below which a pixel is ambiguous, from 0 to 1.
        """

    def depth_planes(
        self,
        fit: CellFit,
        trust: Trust,
        flags: Bits,
        parameters: ConfidenceParameters,
    ) -> DepthPlanes:
        """Return depth, sigma, confidence and flags of each pixel.

        Parameters
        ----------
        fit
            Fit of each cell of the frame.
        trust
            How far the disparity of each cell can be trusted.
        flags
            Flags of the search per cell.
        parameters
            Camera, options and thresholds.
        """


class Backend(NamedTuple):
    """Operations of all stages."""

    prefilter: PrefilterOperations
    search: SearchOperations
    refine: RefineOperations
    support: SupportOperations
    confidence: ConfidenceOperations
    field: FieldOperations

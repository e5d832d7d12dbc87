"""Choices of the methods, each with its default and the reason for it."""

from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from d3s.errors import OptionsError, RecordError
from d3s.record import Converted, Record

Depth = Annotated[float, Field(ge=1e-4, le=1e4)]


def _rising(values: tuple[float, ...] | None) -> tuple[float, ...] | None:
    if values is None:
        return None
    if len(values) < 2:
        raise ValueError("must have at least 2 values: with one there is nothing to choose.")
    if any(after <= before for before, after in pairwise(values)):
        raise ValueError("must be strictly increasing.")
    return values


def _odd(window_px: int) -> int:
    if window_px % 2 == 0:
        raise ValueError(f"must be odd: a window has a pixel at its centre. Try {window_px + 1}.")
    return window_px


def _some(values: tuple[float, ...] | None) -> tuple[float, ...] | None:
    # pydantic's own min_length would count the valid values only, and call a wrong one missing.
    if values is not None and not values:
        raise ValueError("must have at least 1 value.")
    return values


def _sizes(windows_px: tuple[int, ...]) -> tuple[int, ...]:
    if not windows_px:
        raise ValueError("must have at least 1 value.")
    if any(after <= before for before, after in pairwise(windows_px)):
        raise ValueError("must be strictly increasing.")
    return windows_px


Window = Annotated[int, Field(ge=3, le=255), AfterValidator(_odd)]


class Options(Record):
    """What every method can be told: which depths to look at."""

    error: ClassVar[type[RecordError]] = OptionsError

    # The camera decides if left: from where its blur fills a window to where a tenth of a pixel
    # is a hundredth of the depth (0.25 to 2.5 m for the prototype).
    depth_range_m: Converted[tuple[Depth, Depth] | None] = Field(
        default=None,
        validate_default=True,
        description="the nearest and the farthest depth to look for",
    )
    candidates_m: Annotated[
        Converted[tuple[Depth, ...] | None], Field(max_length=4096), AfterValidator(_rising)
    ] = Field(
        default=None,
        validate_default=True,
        description="the depths to try, increasing, instead of a range",
    )

    @field_validator("depth_range_m")
    @classmethod
    def _is_range(cls, ends: tuple[float, float] | None) -> tuple[float, float] | None:
        if ends is not None and not ends[0] < ends[1]:
            raise ValueError("must be the nearest depth, then a larger one.")
        return ends

    @field_validator("candidates_m")
    @classmethod
    def _is_not_both(cls, candidates_m: Any, info: ValidationInfo) -> Any:
        if candidates_m is not None and info.data.get("depth_range_m") is not None:
            raise ValueError("must not be given beside depth_range_m. Leave one of them.")
        return candidates_m


class ConsensusOptions(Options):
    """Choices that the paper leaves open, or makes, for its consensus."""

    # A calibrated rig brings its own, the numbers that its a and b were tuned with. Of others 240:
    # steps of 0.35 px of disparity over 0.25 to 2.5 m, which the method's own error exceeds up to
    # 1.2 m. Beyond, where they are 2 to 5 cm of depth, more of them are more exact, and slower.
    candidates: int | None = Field(
        default=None, ge=2, le=4096, description="how many depths to try, even in inverse depth"
    )
    # The paper's own for its prototype (supplement); of another camera the same share of its
    # baseline. A calibrated rig brings its own.
    virtual_baselines_m: Annotated[
        Converted[tuple[Annotated[float, Field(gt=0, lt=0.1)], ...] | None],
        Field(max_length=32),
        AfterValidator(_some),
    ] = Field(default=None, validate_default=True, description="the virtual baselines to compare")
    # As tuned, or 21: 21 to 31 px are what such windows are in this field; the paper does not say.
    window_px: Window | None = Field(default=None, description="the side of the window of the sums")
    # As tuned, or 1: noise falls 3.5 times and the texture that the lens leaves hardly; the paper
    # does not say.
    prefilter_sigma_px: float | None = Field(
        default=None, ge=0, le=10, description="the Gaussian that both views are smoothed with"
    )
    # Eq. 14 of the paper, or its Eq. S5, which near candidates pass too easily.
    agreement_in: Literal["depth and vergence", "depth"] = Field(
        default="depth and vergence", description="what the confidence compares"
    )
    # The threshold of the paper's pictures; its accuracy is given at 0.8.
    min_confidence: float = Field(
        default=0.5, ge=0, le=1, description="the confidence that a depth must exceed"
    )


class JointOptions(Options):
    """Choices of our own method.

    Examples
    --------
    >>> import d3s
    >>> options = d3s.JointOptions(depth_range_m=(0.4, 2.0), windows_px=[9, 23])
    >>> options.windows_px
    (9, 23)
    >>> options.replace(rounds=0)
    Traceback (most recent call last):
        ...
    d3s.errors.OptionsError: rounds=0 must be at least 1.
    """

    # Every pixel of the search is a candidate then. Fewer are faster, more change nothing: what
    # comes after the search is continuous.
    candidates: int | None = Field(
        default=None, ge=2, le=4096, description="how many depths to try, even in inverse depth"
    )
    # The larger the window, the less noise: each pixel has the largest that lies on one surface,
    # as far as the next smaller one can tell. 57 px halve the error of the best block matching at
    # 2 m, and 9 px are about as wide as the blur of a step in depth.
    windows_px: Annotated[
        Converted[tuple[Window, ...]], Field(max_length=8), AfterValidator(_sizes)
    ] = Field(
        default=(9, 23, 57),
        validate_default=True,
        description="the sides of the windows to choose from, increasing",
    )
    # A defocused view holds nothing finer than this, and the defocus needs second derivatives;
    # a sharp pair (a rig without aperture) is hardly smoothed.
    prefilter_sigma_px: float | None = Field(
        default=None,
        gt=0,
        le=10,
        description="the Gaussian that views of full size are smoothed with",
    )
    # Half the size is a quarter of the pixels and half the shifts, and a defocused view has
    # nothing to lose by it. A sharp pair is searched at full size, for the sake of thin things. A
    # quarter of the size saves a third of the time, and loses what is narrow.
    search_scale: Literal[1, 2, 4] | None = Field(
        default=None, description="how many pixels of the frame make one of the search"
    )
    # Half the size is enough for what is out of focus, and what is in focus gets the full one. At 2
    # nothing does: two thirds of the time, with search_scale=4 less than half of it, and an error
    # in focus that is up to twice as large.
    finest_scale: Literal[1, 2] = Field(
        default=1, description="how many pixels of the frame make one of the finest fit"
    )
    # Without it the views are compared as they are, as stereo does. There to show what it adds.
    use_defocus: bool = Field(default=True, description="whether blur is compared with depth")
    # How much neighbours have to say in the search; 0 leaves each window alone.
    smoothness: float = Field(
        default=1.0, ge=0, le=100, description="the weight of the price for steps in depth"
    )
    # The second round moves a disparity by a hundredth of a pixel, a third by nothing that counts.
    rounds: int = Field(default=2, ge=1, le=10, description="how often least squares are repeated")
    # The pictures do not tell it. Of a rig with lenses it is taken to be nothing, as in the twin;
    # of a pinhole pair, which somebody else rectified, a tenth of a pixel.
    rectification_sigma_px: float | None = Field(
        default=None, ge=0, le=10, description="what the rectification leaves of disparity"
    )
    # Where this holds, error and density are those of the documentation, at any depth and noise.
    min_confidence: float = Field(
        default=0.45, ge=0, le=1, description="the confidence that a depth must reach"
    )

    @field_validator("finest_scale")
    @classmethod
    def _is_not_beside_a_full_search(cls, finest_scale: int, info: ValidationInfo) -> int:
        if finest_scale == 2 and info.data.get("search_scale") == 1:
            raise ValueError("must be 1 beside search_scale=1. Leave one of them.")
        return finest_scale

    @field_validator("candidates")
    @classmethod
    def _is_not_beside_a_list(cls, candidates: int | None, info: ValidationInfo) -> int | None:
        if candidates is not None and info.data.get("candidates_m") is not None:
            raise ValueError("must not be given beside candidates_m. Leave one of them.")
        return candidates

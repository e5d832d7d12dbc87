"""Options of the methods, each with its default and the reason for the default."""

import math
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from d3s.errors import OptionsError, RecordError
from d3s.record import Converted, Record
from d3s.rig.optics import FARTHEST_M

Depth = Annotated[float, Field(ge=1e-4, le=1e4)]


def _several(values: tuple[float, ...] | None) -> tuple[float, ...] | None:
    if values is not None and len(values) < 2:
        raise ValueError("must have at least 2 values: with one there is nothing to choose.")
    return values


def _increasing(values: tuple[float, ...] | None) -> tuple[float, ...] | None:
    if values is not None and any(after <= before for before, after in pairwise(values)):
        raise ValueError("must be strictly increasing.")
    return values


def odd(window_px: int) -> int:
    """Return the side of a window; raise ValueError if it is even."""
    if window_px % 2 == 0:
        raise ValueError(f"must be odd: a window has a pixel at its centre. Try {window_px + 1}.")
    return window_px


def _some(values: tuple[float, ...] | None) -> tuple[float, ...] | None:
    # min_length of pydantic counts valid values only, and would report a wrong value as missing.
    if values is not None and not values:
        raise ValueError("must have at least 1 value.")
    return values


Window = Annotated[int, Field(ge=3, le=255), AfterValidator(odd)]
PrefilterSigma = Annotated[
    float, Field(ge=0, le=10, description="the sigma of the Gaussian that smooths both views")
]
# Lenses that are glued and plates that warm up drift: 0.1 px in a year unless the rig knows better.
# Not from the clock: the same pair would give another sigma every day.
CalibrationAge = Annotated[
    float,
    Field(
        ge=0,
        le=36525,
        description="the days since the calibration or the last check, by which sigma grows",
    ),
]
MinConfidence = Annotated[
    float, Field(ge=0, le=1, description="the confidence that a depth must reach")
]


class Options(Record):
    """Options of every method: the depths to search."""

    error: ClassVar[type[RecordError]] = OptionsError

    # Default: from the depth whose blur fills a window to the depth at which 0.1 px of disparity is
    # 1 % of the depth (0.25 to 2.5 m for the prototype). An infinite end stands for `FARTHEST_M`.
    depth_range_m: Converted[tuple[Depth, Depth] | None] = Field(
        default=None,
        validate_default=True,
        description="the nearest and the farthest depth to look for",
    )
    candidates_m: Annotated[
        Converted[tuple[Depth, ...] | None],
        Field(max_length=4096),
        AfterValidator(_several),
        AfterValidator(_increasing),
    ] = Field(
        default=None,
        validate_default=True,
        description="the depths to try, increasing, instead of a range",
    )

    @field_validator("depth_range_m", mode="before")
    @classmethod
    def _is_open_at_the_far_end(cls, ends: Any) -> Any:
        if isinstance(ends, list | tuple) and len(ends) == 2 and ends[1] == math.inf:
            return ends[0], FARTHEST_M
        return ends

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
    """Options of the algorithm of the paper, method="consensus", at its best or as printed."""

    # Default: the method at its best. True runs the text of the paper: the depth equation as it is
    # derived (Eq. 10; Eq. 17 for a calibrated rig), views as they are, and of what the paper leaves
    # open the usual: 1 px of prefilter, a window of 21 px, 240 candidates.
    as_printed: bool = Field(default=False, description="whether to follow the paper to the letter")
    # Default: the number with which the a and b of a calibrated rig were tuned, else 960, which are
    # 1 cm apart at 1.64 m.
    candidates: int | None = Field(
        default=None,
        ge=2,
        le=4096,
        description="the number of depths to try, evenly spaced in 1/depth",
    )
    # Default: those of a calibrated rig, else those of the paper for its prototype (supplement),
    # scaled with the baseline for other cameras.
    virtual_baselines_m: Annotated[
        Converted[tuple[Annotated[float, Field(gt=0, lt=0.1)], ...] | None],
        Field(max_length=32),
        AfterValidator(_some),
    ] = Field(default=None, validate_default=True, description="the virtual baselines to compare")
    # Default: the window of a calibrated rig, else 41. The paper does not state its window.
    window_px: Window | None = Field(default=None, description="the side of the summation window")
    # Default: the prefilter of a calibrated rig, else 4 px, above which little noise passes, and
    # below which finite differences over a residual disparity of several pixels are no derivatives.
    prefilter_sigma_px: float | None = Field(
        default=None, ge=0, le=10, description="the sigma of the Gaussian that smooths both views"
    )
    # Default: 12 px. Lenses that differ by 1 % in gain differ most in the mean of a window, which
    # says nothing of depth.
    local_mean_px: float | None = Field(
        default=None,
        ge=0,
        le=100,
        description="the sigma of the Gaussian mean that is taken from both views, 0 for none",
    )
    # A candidate and its predictions meet after a known share of their distance. Default: True, but
    # as printed a depth is one of the candidates.
    refine: bool | None = Field(
        default=None, description="whether to refine between candidates, if not as printed"
    )
    # Eq. 14 of the paper, or its Eq. S5, which favours near candidates.
    agreement_in: Literal["depth and vergence", "depth"] = Field(
        default="depth and vergence", description="the quantities that the confidence compares"
    )
    calibration_age_days: CalibrationAge = 0.0
    # Threshold of the figures of the paper. The paper states its accuracy for 0.8.
    min_confidence: float = Field(
        default=0.5, ge=0, le=1, description="the confidence that a depth must exceed"
    )


class DefocusOptions(Options):
    """Options of depth from defocus alone, method="defocus", for a camera without baseline."""

    # The second derivative of a texture is weak: smaller windows hold more noise than detail.
    window_px: Window = Field(default=41, description="the side of the summation window")
    prefilter_sigma_px: PrefilterSigma = 2.0
    # Sigma over depth at which the confidence is a half.
    half_sigma: float = Field(
        default=0.1, gt=0, le=10, description="the sigma, over the depth, of a confidence of 0.5"
    )
    min_confidence: MinConfidence = 0.5


class JointOptions(Options):
    """Options of our own method, method="joint".

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

    # Default: one candidate for each pixel of disparity of the search. Fewer are faster. More have
    # no effect, because the refinement after the search is continuous.
    candidates: int | None = Field(
        default=None,
        ge=2,
        le=4096,
        description="the number of depths to try, evenly spaced in 1/depth",
    )
    # Larger windows have less noise: each pixel uses the largest window that lies on one surface,
    # judged by the next smaller window. Default: 9, 23 and 57 px for a defocused pair: 57 px halve
    # the error of the best block matching at 2 m, 9 px are about as wide as the blur of a step in
    # depth. 5, 9 and 23 px for a sharp pair, whose steps are sharp.
    windows_px: Annotated[
        Converted[tuple[Window, ...] | None],
        Field(max_length=8),
        AfterValidator(_some),
        AfterValidator(_increasing),
    ] = Field(
        default=None,
        validate_default=True,
        description="the sides of the windows to choose from, increasing",
    )
    # Default: depends on the rig. A defocused view has no finer detail than the prefilter, and
    # defocus needs second derivatives. A sharp pair (a rig without aperture) is hardly smoothed.
    prefilter_sigma_px: float | None = Field(
        default=None,
        gt=0,
        le=10,
        description="the sigma of the Gaussian that smooths full-size views",
    )
    # Default: 2 for a defocused pair, which loses no detail at half size and needs a quarter of the
    # pixels and half the shifts; 1 for a sharp pair, to keep thin objects. 4 saves a third of the
    # time and loses narrow objects.
    search_scale: Literal[1, 2, 4] | None = Field(
        default=None, description="frame pixels per pixel of the search"
    )
    # Half size is enough for regions out of focus; regions in focus are refined at full size. With
    # 2, no region is: two thirds of the time (with search_scale=4 less than half), and up to twice
    # the error in focus.
    finest_scale: Literal[1, 2] = Field(
        default=1, description="frame pixels per pixel of the finest fit"
    )
    # False compares the views as they are, as stereo does, to show what defocus adds.
    use_defocus: bool = Field(default=True, description="whether defocus is used as a cue")
    # Influence of neighbouring windows in the search; with 0, each window is searched on its own.
    smoothness: float = Field(
        default=1.0, ge=0, le=100, description="the weight of the penalty on depth steps"
    )
    # The second round changes a disparity by 0.01 px, a third has no significant effect.
    rounds: int = Field(default=2, ge=1, le=10, description="the rounds of least squares")
    # The images do not reveal it. Default: what the calibration says that its lens maps and a check
    # leave (`Rig.rectification_sigma_px`); 0 for a rig that says nothing of its errors, as in the
    # simulator; 0.1 px for a pinhole pair, which was rectified by other software.
    rectification_sigma_px: float | None = Field(
        default=None,
        ge=0,
        le=10,
        description="the standard deviation of the disparity from rectification errors",
    )
    calibration_age_days: CalibrationAge = 0.0
    # A right view that lies lower, is turned or larger, or in which the left one is seen, has wrong
    # depths all over, which agree. False takes the views as they are, to judge their camera.
    align_views: bool = Field(
        default=True,
        description="whether rows, roll, scale and crosstalk found in the pair are taken out",
    )
    # The documentation states error and density for this threshold, at any depth and noise.
    min_confidence: MinConfidence = 0.5
    # Nothing in the views tells a wall seen through a fence from paper between letters.
    enclosed: bool = Field(
        default=False, description="whether depths in plain gaps between texture are given"
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

"""Sensor model: light in, image with noise, mismatch, saturation and quantisation out.

Light and images are relative to full scale: 1 is saturation.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from numbers import Real
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from d3s.errors import InputError, RecordError, SceneError
from d3s.record import Converted, Record, short_repr
from d3s.rig.bayer import Bayer
from d3s.runtime.parallel import run_together
from d3s.types import FloatArray, Image

# Separates the fixed patterns from streams that a caller seeds with the same small numbers: NumPy
# pads entropy with zeros, so SeedSequence((0, 0)) is the stream of default_rng(0).
_PATTERN_KEY = int.from_bytes(b"FPN")
_HOT_KEY = int.from_bytes(b"HOT")


@lru_cache(maxsize=4)  # two views of two sensors
def _fixed_patterns(shape: tuple[int, int], pattern_seed: int, camera: int) -> Image:
    """Standard normal numbers (2, rows, cols): gain and offset pattern of each pixel of a view."""
    seed = np.random.SeedSequence((pattern_seed, camera), spawn_key=(_PATTERN_KEY,))
    return np.random.default_rng(seed).standard_normal((2, *shape), dtype=np.float32)


@lru_cache(maxsize=4)
def _hot_pixels(
    shape: tuple[int, int], pattern_seed: int, camera: int, share: float
) -> NDArray[np.int64]:
    """Numbers of the hot pixels, counted along rows. A larger share has those of a smaller one."""
    seed = np.random.SeedSequence((pattern_seed, camera), spawn_key=(_HOT_KEY,))
    return np.flatnonzero(np.random.default_rng(seed).random(shape, dtype=np.float32) < share)


PointPx = tuple[float, float]

_BITS = (8, 10, 12)
# Limit on the light: far above any scene, and far below the largest Poisson count.
_BRIGHTEST = 1e6


def _below_full_scale(value: float) -> float:
    if value >= 1:
        raise ValueError(
            f"must be below 1: it is of full scale. Did you pass grey levels? Of 8 bits, that is "
            f"{value / 255:.3g}."
        )
    return value


_NoiseSigma = Annotated[float, Field(ge=0), AfterValidator(_below_full_scale)]
_Gain = Annotated[float, Field(ge=0, le=100)]
_Offset = Annotated[float, Field(gt=-1, lt=1)]


class Sensor(Record):
    """Sensor behind both lenses; ideal by default.

    Light becomes an image in this order:

    1. light times `gain`, vignetting and `gain_pattern`;
    2. shot noise: a Poisson number of electrons, with `full_well_e` at full scale;
    3. electronics: read noise, `offset`, `offset_pattern`, plain Gaussian `noise`, `column_noise`
       and `row_noise` are added;
    4. `hot_pixels` are set to full scale;
    5. saturation to [0, 1], and quantisation to `bits`.

    `gain` acts on the light because views differ by the transmission of their lenses: less light
    also has less shot noise. An offset is added by the electronics, without shot noise.

    All pixels of a column share an amplifier, and pixels of a row are read at one time: column and
    row noise are offsets of a whole column or row, new in each frame. Both views of a raw frame
    lie on one sensor, so its rows have the same offset in both; the views of a pair have offsets of
    their own.

    Examples
    --------
    >>> import d3s
    >>> sensor = d3s.Sensor(full_well_e=10_000, read_noise_e=5.0, bits=12)
    >>> print(f"{float(sensor.noise_sigma(1.0)):.4f}")
    0.0100
    >>> rig = d3s.Rig.paper_prototype()
    >>> pair = d3s.simulate(d3s.Plane(depth_m=0.8), rig, noise=sensor, shape=(60, 90))
    >>> bool(pair.left.max() <= 1)
    True
    """

    error: ClassVar[type[RecordError]] = SceneError

    noise: _NoiseSigma = Field(
        default=0.0, description="the standard deviation of plain Gaussian noise, of full scale"
    )
    # Declared before the read noise, whose check needs it.
    full_well_e: float | None = Field(
        default=None,
        ge=10,
        le=1e9,
        description="the electrons of a pixel at full scale, None for no shot noise",
    )
    read_noise_e: float = Field(
        default=0.0, ge=0, description="the standard deviation of the read noise, in electrons"
    )
    gain: Converted[tuple[_Gain, _Gain]] = Field(
        default=(1.0, 1.0),
        validate_default=True,
        description="the share of light that the left and the right lens pass",
    )
    offset: Converted[tuple[_Offset, _Offset]] = Field(
        default=(0.0, 0.0),
        validate_default=True,
        description="the offset added to the left and the right view",
    )
    vignetting: float = Field(
        default=0.0, ge=0, le=1, description="the share of light lost in the corner"
    )
    # At most 0.1: a gain below zero is then a 10-sigma event.
    gain_pattern: float = Field(
        default=0.0, ge=0, le=0.1, description="the standard deviation of each pixel's own gain"
    )
    offset_pattern: _NoiseSigma = Field(
        default=0.0, description="the standard deviation of each pixel's own offset, of full scale"
    )
    column_noise: _NoiseSigma = Field(
        default=0.0,
        description="the standard deviation of an offset of each column, of full scale, new in "
        "each frame",
    )
    row_noise: _NoiseSigma = Field(
        default=0.0,
        description="the standard deviation of an offset of each row, of full scale, new in each "
        "frame",
    )
    # At most a tenth: beyond, an image is mostly holes.
    hot_pixels: float = Field(
        default=0.0, ge=0, le=0.1, description="the share of pixels that are always at full scale"
    )
    pattern_seed: int = Field(
        default=0,
        ge=0,
        le=10**9,
        description="the seed of fixed patterns and hot pixels, one per sensor",
    )
    bayer: Bayer | None = Field(
        default=None,
        description="the colours of the first 2 x 2 pixels of a colour sensor, for raw frames; "
        "none for a mono sensor",
    )
    channel_shares: Converted[tuple[_Gain, _Gain, _Gain] | None] = Field(
        default=None,
        validate_default=True,
        description="the share of light that the red, green and blue filters pass; all by default",
    )
    saturates: bool = Field(default=False, description="whether the image is clipped to [0, 1]")
    bits: int | None = Field(
        default=None, description="8, 10 or 12 bits of grey levels, clipped; None: not quantised"
    )

    @field_validator("read_noise_e")
    @classmethod
    def _electrons_need_a_scale(cls, read_noise_e: float, info: ValidationInfo) -> float:
        # An invalid full well is not in `info.data`, and is reported by its own rule.
        full_well_e = info.data.get("full_well_e", math.inf)
        if full_well_e is None and read_noise_e > 0:
            raise ValueError(
                "needs full_well_e, the electrons at full scale. Pass it too, or pass noise, which "
                "is of full scale."
            )
        if full_well_e is not None and read_noise_e >= full_well_e:
            raise ValueError(f"must be below full_well_e={full_well_e:g}: both are in electrons.")
        return read_noise_e

    @field_validator("channel_shares")
    @classmethod
    def _is_of_filters(
        cls, shares: tuple[float, float, float] | None, info: ValidationInfo
    ) -> tuple[float, float, float] | None:
        if shares is not None and "bayer" in info.data and info.data["bayer"] is None:
            raise ValueError("needs bayer beside it: a mono sensor has no filters.")
        return shares

    @field_validator("bits")
    @classmethod
    def _bits_of_a_camera(cls, bits: int | None) -> int | None:
        if bits is not None and bits not in _BITS:
            raise ValueError("must be 8, 10 or 12, or None for an image without steps.")
        return bits

    def expose(
        self,
        irradiance: NDArray[np.floating[Any]],
        *,
        camera: int,
        rng: np.random.Generator,
        centre_px: PointPx | None = None,
    ) -> Image:
        """Image of one view, as a new float32 array; see the class for the order of the steps.

        Band-limited light can dip below zero. Such a pixel has no shot noise (its Poisson mean is
        0) and keeps its negative light, so that the image has the right mean.

        Parameters
        ----------
        irradiance
            (rows, cols) floats, relative to full scale; an InputError for others.
        camera
            0 for the left view, 1 for the right view.
        rng
            Source of the noise of this frame. The fixed patterns and hot pixels depend on
            `pattern_seed`, the camera and the shape of the view instead.
        centre_px
            Centre (x, y) of the vignetting, by default the middle of the view. The loss grows with
            the squared distance from it, up to `vignetting` in the farthest corner.
        """
        light = _checked_light(irradiance)
        shape: tuple[int, int] = (light.shape[0], light.shape[1])
        key = (shape, self.pattern_seed, camera)
        signal = light
        if self.vignetting > 0:
            signal = _vignette(shape, self.vignetting, centre_px) * signal
        if self.gain[camera] != 1:
            signal = signal * np.float32(self.gain[camera])
        if self.gain_pattern > 0:
            signal = (np.float32(self.gain_pattern) * _fixed_patterns(*key)[0] + 1) * signal
        if self.full_well_e is not None:
            signal = _with_shot_noise(signal, self.full_well_e, rng)
        sigma = math.sqrt(self._electronic_variance)
        if sigma > 0:
            signal = np.float32(sigma) * rng.standard_normal(shape, dtype=np.float32) + signal
        if self.offset[camera] != 0:
            signal = signal + np.float32(self.offset[camera])
        if self.offset_pattern > 0:
            signal = np.float32(self.offset_pattern) * _fixed_patterns(*key)[1] + signal
        for sigma, line in ((self.column_noise, (1, shape[1])), (self.row_noise, (shape[0], 1))):
            if sigma > 0:
                signal = signal + np.float32(sigma) * rng.standard_normal(line, dtype=np.float32)
        signal = signal.copy() if signal is light else signal
        if self.hot_pixels > 0:
            signal.reshape(-1)[_hot_pixels(*key, self.hot_pixels)] = 1.0
        return self._digitised(signal)

    def noise_sigma(self, intensity: ArrayLike) -> FloatArray:
        """Temporal standard deviation of a pixel at an intensity I after `gain`, of full scale.

        sqrt(noise² + column_noise² + row_noise² + I / full_well + (read_noise / full_well)² +
        q² / 12), where q is one grey level. Column and row noise are equal in a whole column or
        row: the mean of a column has all of its column noise. The quantisation term holds if the
        other terms together exceed half a grey level. Saturation, fixed patterns and hot pixels are
        not included.
        """
        light = np.asarray(intensity, dtype=np.float64)
        lines = self.column_noise**2 + self.row_noise**2
        variance = np.full_like(light, self._electronic_variance + lines)
        if self.full_well_e is not None:
            variance += np.maximum(light, 0) / self.full_well_e
        if self.bits is not None:
            variance += 1 / (12 * (2**self.bits - 1) ** 2)
        return np.asarray(np.sqrt(variance))

    @property
    def _electronic_variance(self) -> float:
        """Variance of the noise that does not depend on the light, added by one Gaussian draw."""
        read = self.read_noise_e / self.full_well_e if self.full_well_e is not None else 0.0
        return self.noise**2 + read**2

    def _digitised(self, image: Image) -> Image:
        """Clip and quantise the image, in place."""
        if self.saturates or self.bits is not None:
            np.clip(image, 0, 1, out=image)
        if self.bits is not None:
            top = np.float32(2**self.bits - 1)
            image *= top
            np.rint(image, out=image)
            image /= top  # not times 1 / top, which would not be the float nearest to k / top
        return image


def as_sensor(noise: float | Sensor) -> Sensor:
    """Sensor as given, or an ideal sensor with Gaussian noise of this standard deviation."""
    if isinstance(noise, Sensor):
        return noise
    if isinstance(noise, bool) or not isinstance(noise, Real):
        raise SceneError(
            f"noise={short_repr(noise)} must be a Sensor, or a number: the standard deviation of "
            f"Gaussian noise, of full scale."
        )
    return Sensor(noise=noise)


def expose_pair(
    left: NDArray[np.floating[Any]],
    right: NDArray[np.floating[Any]],
    sensor: float | Sensor,
    seed: int | Sequence[int],
    *,
    centres_px: tuple[PointPx, PointPx] | None = None,
) -> tuple[Image, Image]:
    """Images of both views, with independent noise in each.

    The light is (rows, cols), relative to full scale. For the seed of a frame of a sequence use
    (seed, frame number); (seed, 0) equals seed. The vignetting is around `centres_px` (x, y) of
    each view, by default the middle.
    """
    sensor = as_sensor(sensor)
    streams = [generator(stream) for stream in seed_sequence(seed).spawn(2)]
    centre_left, centre_right = (None, None) if centres_px is None else centres_px
    image_left, image_right = run_together(
        lambda: sensor.expose(left, camera=0, rng=streams[0], centre_px=centre_left),
        lambda: sensor.expose(right, camera=1, rng=streams[1], centre_px=centre_right),
    )
    return image_left, image_right


def _with_shot_noise(light: Image, full_well_e: float, rng: np.random.Generator) -> Image:
    """Light with shot noise; negative light has no noise and is kept."""
    electrons = np.maximum(light, 0, dtype=np.float64)
    electrons *= full_well_e
    electrons = np.divide(rng.poisson(electrons), full_well_e, out=electrons)
    electrons += np.minimum(light, 0)
    return electrons.astype(np.float32)


def _vignette(shape: tuple[int, int], loss: float, centre_px: PointPx | None) -> Image:
    """Share of the light that reaches each pixel, 1 - loss (r / r_corner)²."""
    rows, cols = shape
    x, y = centre_px if centre_px is not None else ((cols - 1) / 2, (rows - 1) / 2)
    x2, y2 = (np.arange(cols) - x) ** 2, (np.arange(rows) - y) ** 2
    corner2 = max(x2[0], x2[-1]) + max(y2[0], y2[-1])
    scale = loss / (corner2 or 1.0)  # a single pixel has no corner
    return np.subtract.outer((1 - scale * y2).astype(np.float32), (scale * x2).astype(np.float32))


def _checked_light(irradiance: NDArray[np.floating[Any]]) -> Image:
    image = np.asarray(irradiance)
    if image.ndim != 2 or image.size == 0:
        raise InputError(
            f"irradiance has the shape {image.shape}, and must be (rows, cols) with a pixel in it."
        )
    if not np.issubdtype(image.dtype, np.floating):
        raise InputError(
            f"irradiance has the type {image.dtype}, and must be float32, of full scale. Divide "
            f"grey levels by the highest one."
        )
    darkest, brightest = float(image.min()), float(image.max())
    if not (darkest >= -_BRIGHTEST and brightest <= _BRIGHTEST):  # NaN is neither
        raise InputError(
            f"irradiance goes from {darkest:g} to {brightest:g}, and must be finite and of full "
            f"scale, which is 1."
        )
    return np.ascontiguousarray(image, dtype=np.float32)


def generator(seed: np.random.SeedSequence) -> np.random.Generator:
    """Random generator for noise: SFC64, 20 % faster than NumPy's default."""
    return np.random.Generator(np.random.SFC64(seed))


def seed_sequence(seed: int | Sequence[int]) -> np.random.SeedSequence:
    """Seed sequence of the noise of a frame, from one or several whole numbers of at least 0."""
    numbers = [seed] if isinstance(seed, int | np.integer) else seed
    # NumPy would choose a seed for None, and read text as a number.
    is_sequence = isinstance(numbers, Sequence | np.ndarray) and not isinstance(numbers, str)
    if (
        not is_sequence
        or not len(numbers)
        or not all(
            isinstance(one, int | np.integer) and not isinstance(one, bool) and one >= 0
            for one in numbers
        )
    ):
        raise InputError(
            f"seed={short_repr(seed)} must be a whole number of at least 0, or several of them."
        )
    return np.random.SeedSequence([int(number) for number in numbers])

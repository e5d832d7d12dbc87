"""Texture that a prediction assumes: natural by contrast and spectrum, a pattern, or a photo."""

from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from d3s.errors import DesignError, RecordError
from d3s.lab.twin.pair import simulate
from d3s.lab.twin.scenes import Plane
from d3s.lab.twin.textures import Photo, Texture, as_texture
from d3s.record import Record
from d3s.rig import Optics, Rig
from d3s.types import FloatArray

NATURAL = "natural"
"""Name of the texture that is made from contrast and spectrum."""

_NATURAL_PX = 1024  # side of the natural texture of the twin
_NATURAL_SEED = 2025
# Band over which the contrast of a natural texture is counted, in cycles/px: that of `limits`.
_BAND = 1 / 31, 0.5


class Wall(Record):
    """Surface in front of the camera.

    The natural texture looks alike at every distance. Patterns have the size that they have in
    nature, so that their detail is finer the farther away they are; so has a photo with a width.
    """

    error: ClassVar[type[RecordError]] = DesignError

    texture: Any = Field(
        default=NATURAL, description="natural, a pattern of the twin, a photo or an image file"
    )
    contrast: float = Field(
        default=0.15,
        gt=0,
        le=1,
        description="the standard deviation of the natural texture, of full scale",
    )
    slope: float = Field(
        default=2.0,
        ge=0,
        le=4,
        description="the exponent by which the power of the natural texture falls with frequency",
    )
    width_m: float | None = Field(
        default=None, gt=1e-4, lt=1e3, description="the width of a photo; fills the view if left"
    )

    @property
    def is_natural(self) -> bool:
        """Whether it is made from contrast and spectrum."""
        return isinstance(self.texture, str) and self.texture == NATURAL

    def surface(self, optics: Optics, depth_m: float, seed: int = 0) -> Texture | Photo:
        """Texture for the twin.

        Parameters
        ----------
        optics
            Optics of the camera.
        depth_m
            Distance of the wall.
        seed
            Seed of the texture; a photo has none.

        Raises
        ------
        DesignError
            If the name is neither a pattern nor an image file.
        """
        if self.is_natural:
            picture = natural_texture(self.contrast, self.slope, _NATURAL_PX, _NATURAL_SEED + seed)
            width_m = _NATURAL_PX * depth_m / optics.focal_length_px
            return Photo(image=(0.5 + picture).astype(np.float32), width_m=width_m)
        texture = self._named()
        if isinstance(texture, Photo):
            return texture.replace(width_m=self.width_m) if self.width_m else texture
        return texture.replace(seed=seed)

    def _named(self) -> Texture | Photo:
        try:
            return as_texture(self.texture)
        except ValueError as error:
            raise DesignError(f"texture={self.texture!r} {error}") from error

    @property
    def looks_alike(self) -> bool:
        """Whether its picture is the same at every distance."""
        if self.is_natural:
            return True
        return isinstance(self._named(), Photo) and self.width_m is None

    def picture(self, optics: Optics, depth_m: float, side_px: int, seed: int = 0) -> FloatArray:
        """Sharp picture of the wall at a depth, (side, side), one texel per pixel.

        Parameters
        ----------
        optics
            Optics of the camera.
        depth_m
            Distance of the wall.
        side_px
            Side of the picture.
        seed
            Seed of the pattern.
        """
        if self.is_natural:
            return natural_texture(self.contrast, self.slope, side_px, _NATURAL_SEED + seed)
        pinhole = Rig.of_pinhole(focal_length_px=optics.focal_length_px, baseline_m=1e-3)
        plane = Plane(depth_m=depth_m, texture=self.surface(optics, depth_m, seed))
        return simulate(plane, pinhole, shape=(side_px, side_px)).left.astype(np.float64)


@lru_cache(maxsize=16)
def natural_texture(contrast: float, slope: float, side_px: int, seed: int) -> FloatArray:
    """Random texture whose power falls with frequency, without its mean; (side, side), read-only.

    Contrast is the standard deviation from one cycle in 31 px to half a cycle per pixel, of full
    scale; the texture has coarser detail besides. A slope of 2 is scale-invariant, as natural
    images are.
    """
    radius = np.hypot(np.fft.fftfreq(side_px)[:, np.newaxis], np.fft.rfftfreq(side_px))
    white = np.fft.rfft2(np.random.default_rng(seed).standard_normal((side_px, side_px)))
    # Detail coarser than two windows would only shade the picture.
    shaped = (radius >= 0.5 * _BAND[0]) & (radius <= _BAND[1])
    amplitude = np.where(shaped, np.maximum(radius, 1e-9) ** (-0.5 * slope), 0.0)
    spectrum = white * amplitude
    band = np.where(radius >= _BAND[0], spectrum, 0.0)
    deviation = float(np.fft.irfft2(band, s=(side_px, side_px)).std())
    picture = np.fft.irfft2(spectrum, s=(side_px, side_px)) * (contrast / deviation)
    picture.flags.writeable = False
    return np.asarray(picture)

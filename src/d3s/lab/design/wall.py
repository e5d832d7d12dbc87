"""Wall that a prediction assumes: its texture, and the noise that the light on it leaves.

A texture is natural, by contrast and spectrum, or a pattern, or a photo. Noise is a level, or
follows from illuminance and exposure.
"""

from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, ValidationInfo, field_validator

from d3s.errors import DesignError, RecordError
from d3s.lab.design.camera import Camera
from d3s.lab.twin.pair import simulate
from d3s.lab.twin.scenes import Plane
from d3s.lab.twin.sensor import Sensor
from d3s.lab.twin.textures import Photo, Texture, as_texture
from d3s.record import Record
from d3s.rig import Optics, Rig
from d3s.types import FloatArray

NATURAL = "natural"
"""Name of the texture that is made from contrast and spectrum."""
NATURAL_CONTRAST = 0.15
"""Contrast of the natural texture of the table of errors: a moderate one."""

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
        default=NATURAL_CONTRAST,
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


# Photons per second and square metre of one lux of light of 555 nm: 1/683 W/m2 of 3.58e-19 J each.
_PHOTONS_PER_LUX = 1 / 683.002 / (6.62607015e-34 * 299792458 / 555e-9)
# Share of full scale of the mean of a texture.
MEAN_GREY = 0.5


class Lighting(Record):
    """Noise of a pixel, given as such or by electrons: light, exposure and sensor.

    Without `illuminance_lx`, the noise is that of `noise` alone, for every camera. With it, the
    light that reaches a pixel follows from the camera: a white wall under this illuminance is full
    scale, unless the well is full before.
    """

    error: ClassVar[type[RecordError]] = DesignError

    noise: float = Field(
        default=0.01,
        gt=0,
        lt=1,
        description="the standard deviation of the noise of a pixel, of full scale",
    )
    illuminance_lx: float | None = Field(
        default=None, gt=0, le=2e5, description="the illuminance of the scene, in lux"
    )
    exposure_s: float = Field(
        default=0.01, gt=0, le=3600, description="the exposure time, in seconds"
    )
    quantum_efficiency: float = Field(
        default=0.6, gt=0, le=1, description="the electrons per photon in green light"
    )
    transmission: float = Field(
        default=0.95, gt=0, le=1, description="the share of light that a lens passes"
    )
    full_well_e: float = Field(
        default=10_000.0, ge=10, le=1e9, description="the electrons that a pixel holds"
    )
    read_noise_e: float = Field(
        default=3.0, ge=0, le=1e4, description="the read noise, in electrons"
    )
    bits: int | None = Field(default=None, description="8, 10 or 12 bits of grey levels, or none")

    @field_validator("bits")
    @classmethod
    def _is_of_a_camera(cls, bits: int | None, info: ValidationInfo) -> int | None:
        if bits is not None and bits not in (8, 10, 12):
            raise ValueError("must be 8, 10 or 12, or left for an image without steps.")
        return bits

    def electrons(self, f_number: ArrayLike, pixel_pitch_m: ArrayLike) -> FloatArray:
        """Electrons of a pixel that sees a white wall, at most `full_well_e`."""
        number, pitch = np.broadcast_arrays(f_number, pixel_pitch_m)
        if self.illuminance_lx is None:
            return np.full(number.shape, self.full_well_e)
        on_sensor_lx = self.illuminance_lx * self.transmission / (4 * np.square(number))
        photons = on_sensor_lx * _PHOTONS_PER_LUX * np.square(pitch) * self.exposure_s
        return np.asarray(np.minimum(self.quantum_efficiency * photons, self.full_well_e))

    def noise_sigma(self, f_number: ArrayLike, pixel_pitch_m: ArrayLike) -> FloatArray:
        """Noise of a pixel at mid grey, of full scale; at most 1.

        Parameters
        ----------
        f_number, pixel_pitch_m
            As for `electrons`.
        """
        white_e = self.electrons(f_number, pixel_pitch_m)
        if self.illuminance_lx is None:
            variance = np.full(white_e.shape, self.noise**2)
        else:
            variance = MEAN_GREY / white_e + np.square(self.read_noise_e / white_e)
        if self.bits is not None:
            variance = variance + 1 / (12 * (2**self.bits - 1) ** 2)
        return np.asarray(np.minimum(np.sqrt(variance), 1.0))

    def of_camera(self, camera: Camera) -> float:
        """Noise of a pixel of a camera at mid grey, of full scale."""
        return float(self.noise_sigma(camera.f_number, camera.optics.pixel_pitch_m))

    def sensor(self, camera: Camera) -> Sensor:
        """Sensor of the twin with this noise.

        Raises a DesignError if so little light reaches a pixel that the twin cannot simulate it.
        """
        if self.illuminance_lx is None:
            return Sensor(noise=self.noise, bits=self.bits)
        white_e = float(self.electrons(camera.f_number, camera.optics.pixel_pitch_m))
        if white_e < max(10.0, 1.01 * self.read_noise_e):
            raise DesignError(
                f"illuminance_lx={self.illuminance_lx:g} gives a white pixel {white_e:.1f} "
                f"electrons in {self.exposure_s:g} s, no more than noise. Expose longer, open the "
                "lenses or take larger pixels."
            )
        return Sensor(full_well_e=white_e, read_noise_e=self.read_noise_e, bits=self.bits)

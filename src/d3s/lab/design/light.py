"""Light on the sensor: from a noise level, or from illuminance and exposure, to noise."""

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, ValidationInfo, field_validator

from d3s.errors import DesignError, RecordError
from d3s.lab.design.camera import Camera
from d3s.lab.twin.sensor import Sensor
from d3s.record import Record
from d3s.types import FloatArray

# Photons per second and square metre of one lux of light of 555 nm: 1/683 W/m2 of 3.58e-19 J each.
_PHOTONS_PER_LUX = 1 / 683.002 / (6.62607015e-34 * 299792458 / 555e-9)
# Share of full scale of the mean of a texture.
MEAN_GREY = 0.5


class Light(Record):
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

"""Images in closed form, from first principles, without code of the package.

A texture of sinusoids and Gaussian blobs on a front-parallel target, seen by a thin lens with a
Gaussian aperture. The blur comes from similar triangles between the aperture and the conjugate
plane, the derivatives from finite differences of the eighth order.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from d3s.optics.lens import ImageDerivatives, Lens, Rates

S0, PITCH, WIDTH = 0.0121, 2e-6, 0.5


@dataclass(frozen=True)
class Camera:
    """Position and settings of a camera, in SI units; the lens centre is at (x, y)."""

    x: float = 0.0
    y: float = 0.0
    depth: float = 1.0
    power: float = 83.83
    aperture: float = 1e-3
    sensor: float = 0.0121

    def moved(self, rates: "Camera", t: float) -> "Camera":
        steps = {f.name: getattr(self, f.name) + t * getattr(rates, f.name) for f in fields(self)}
        return replace(self, **steps)

    def blur_radius_m(self) -> float:
        """Radius on the sensor of the cone from the aperture to the point's sharp image."""
        sharp = 1.0 / (self.power - 1.0 / self.depth)
        return self.aperture * (self.sensor - sharp) / sharp


RESTING = Camera(0, 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Texture:
    """Sum of sinusoids and blobs on the target; positions in metres."""

    waves: np.ndarray  # rows of (amplitude, qx, qy, phase), q in rad/m
    blobs: np.ndarray  # rows of (amplitude, x, y, sigma)

    @classmethod
    def random(cls, seed: int) -> "Texture":
        rng = np.random.default_rng(seed)
        per_metre = S0 / PITCH  # so that a wave of 1 rad/px at 1 m has q = per_metre
        q = rng.uniform(0.08, 0.4, 5) * per_metre
        angle = rng.uniform(0, 2 * np.pi, 5)
        waves = np.stack(
            [
                rng.uniform(0.2, 1, 5),
                q * np.cos(angle),
                q * np.sin(angle),
                rng.uniform(0, 2 * np.pi, 5),
            ],
            axis=1,
        )
        blobs = np.stack(
            [
                rng.uniform(-1, 1, 4),
                rng.uniform(-20, 20, 4) / per_metre,
                rng.uniform(-20, 20, 4) / per_metre,
                rng.uniform(4, 10, 4) / per_metre,
            ],
            axis=1,
        )
        return cls(waves, blobs)


Image = Callable[[np.ndarray, np.ndarray], np.ndarray]


def image(
    texture: Texture,
    camera: Camera,
    *,
    raw: bool = False,
    orientation: int = 1,
    covariance: np.ndarray | None = None,
) -> Image:
    """The image as a function of pixel position (x right, y down, from the axis).

    `raw` leaves out the rescaling to S0; `orientation` -1 gives the image upside down, as it lies
    on the sensor; `covariance` is that of the aperture of unit radius.
    """
    scale = PITCH / (camera.sensor if raw else S0) * camera.depth * orientation  # m on target / px
    radius_px = camera.blur_radius_m() / PITCH * (1.0 if raw else S0 / camera.sensor)
    covariance = WIDTH**2 * np.eye(2) if covariance is None else covariance
    blur = radius_px**2 * covariance

    def value(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        total = np.zeros(np.broadcast(x, y).shape)
        for amplitude, qx, qy, phase in texture.waves:
            k = np.array([qx, qy]) * scale
            damping = np.exp(-0.5 * k @ blur @ k)
            total += (
                amplitude
                * damping
                * np.cos(k[0] * x + k[1] * y + qx * camera.x + qy * camera.y + phase)
            )
        for amplitude, bx, by, sigma in texture.blobs:
            tau2 = (sigma / scale) ** 2
            shape = tau2 * np.eye(2) + blur
            inverse = np.linalg.inv(shape)
            dx, dy = x - (bx - camera.x) / scale, y - (by - camera.y) / scale
            form = inverse[0, 0] * dx**2 + 2 * inverse[0, 1] * dx * dy + inverse[1, 1] * dy**2
            total += amplitude * tau2 / np.sqrt(np.linalg.det(shape)) * np.exp(-0.5 * form)
        return total

    return value


_FIRST = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
_SECOND = np.array([-1 / 560, 8 / 315, -1 / 5, 8 / 5, -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560])
_STEPS = np.arange(-4, 5)


def derivatives(
    texture: Texture,
    camera: Camera,
    rates: Camera,
    x: np.ndarray,
    y: np.ndarray,
    *,
    raw: bool = False,
    orientation: int = 1,
    covariance: np.ndarray | None = None,
) -> ImageDerivatives:
    """Numerical derivatives of the moving camera's image at the given pixels."""
    options = {"raw": raw, "orientation": orientation, "covariance": covariance}
    still = image(texture, camera, **options)
    dt, dx = 0.02, 0.25
    rate = sum(
        weight * image(texture, camera.moved(rates, step * dt), **options)(x, y)
        for weight, step in zip(_FIRST, _STEPS, strict=True)
    )

    def along(weights: np.ndarray, ux: float, uy: float) -> np.ndarray:
        return sum(
            weight * still(x + step * dx * ux, y + step * dx * uy)
            for weight, step in zip(weights, _STEPS, strict=True)
        )

    grad_x, grad_y = along(_FIRST, 1, 0) / dx, along(_FIRST, 0, 1) / dx
    xx, yy = along(_SECOND, 1, 0) / dx**2, along(_SECOND, 0, 1) / dx**2
    xy = (along(_SECOND, 1, 1) / dx**2 - along(_SECOND, 1, -1) / dx**2) / 4
    weights = np.eye(2) if covariance is None else covariance / WIDTH**2
    return ImageDerivatives(
        rate=rate / dt,
        grad_x=grad_x,
        grad_y=grad_y,
        laplacian=weights[0, 0] * xx + 2 * weights[0, 1] * xy + weights[1, 1] * yy,
        radial=x * grad_x + y * grad_y,
    )


def lens_of(camera: Camera, *, raw: bool = False) -> Lens:
    """The same camera as a `Lens` of the package."""
    return Lens(
        optical_power_dpt=camera.power,
        aperture_radius_m=camera.aperture,
        sensor_distance_m=camera.sensor,
        reference_distance_m=camera.sensor if raw else S0,
        pixel_pitch_m=PITCH,
        aperture_gaussian_width=WIDTH,
    )


def rates_of(rates: Camera) -> Rates:
    return Rates(
        lateral_x_m=rates.x,
        lateral_y_m=rates.y,
        axial_m=rates.depth,
        optical_power_dpt=rates.power,
        aperture_radius_m=rates.aperture,
        sensor_distance_m=rates.sensor,
    )


def pixels(seed: int, count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed + 1000)
    return rng.uniform(-30, 30, count), rng.uniform(-30, 30, count)

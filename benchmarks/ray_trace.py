"""Ray trace of a stock achromat as the lens of the prototype, by optiland.

    pip install optiland      # MIT licence; a gigabyte, most of it its viewer
    .venv/bin/python benchmarks/ray_trace.py [-o benchmarks/results/lens_trace.json]

The lens is the cemented achromat AC064-013-A of Thorlabs, scaled from 12.70 mm to the focal length
of the prototype's left lens, 11.92 mm, behind a round stop of 2 mm that touches its front. The
sensor is 12.1 mm behind the rear principal plane, so that points at 0.81 m are sharp on the axis.
The thin lens of the second table has the same radii and 2 mm of glass; lenses that are only 2 mm
across have about that much. Its own rim, 2 mm across, clips oblique light.

Light falls from -z to +z. Places in a view are upright: a point above the axis is above the axis.
Points of the stop are in units of its radius. A path W is longer than that of the middle of the
stop if positive, as it is for points that are too near: light through the point u of the stop lands
at -(s0 / A) dW/du in an upright view, where s0 is the sensor distance and A the radius of the stop.
"""

import argparse
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from d3s.atomic import write_text

RESULTS = Path(__file__).parent / "results" / "lens_trace.json"

FOCAL_MM, SENSOR_MM, STOP_MM = 1e3 / 83.88, 12.1, 1.0  # the prototype's left lens
OBJECT_MM = 1e3 / (83.88 - 1e3 / 12.1)  # sharp on the axis
PIXEL_MM, FIELD_PX, CORNER_PX = 2e-3, 902.0, math.hypot(450.5, 900.5)
WAVELENGTH_MM, COLOURS_MM = 550e-6, (486.1e-6, 656.3e-6)
SHOWN_DEG = (0.0, 2.0, 4.0, 6.0, 8.5)
START_MM = -1.0  # rays start here, in front of the lens
SMALL = 1e-3  # of the stop: parabasal rays
# Zernike polynomials by Noll's order: number, and the polynomial in x, y and r2.
ZERNIKE = {
    1: lambda x, y, r2: 1 + 0 * x,
    2: lambda x, y, r2: 2 * x,
    3: lambda x, y, r2: 2 * y,
    4: lambda x, y, r2: math.sqrt(3) * (2 * r2 - 1),
    5: lambda x, y, r2: math.sqrt(6) * 2 * x * y,
    6: lambda x, y, r2: math.sqrt(6) * (x * x - y * y),
    7: lambda x, y, r2: math.sqrt(8) * (3 * r2 - 2) * y,
    8: lambda x, y, r2: math.sqrt(8) * (3 * r2 - 2) * x,
    9: lambda x, y, r2: math.sqrt(8) * (3 * x * x - y * y) * y,
    10: lambda x, y, r2: math.sqrt(8) * (x * x - 3 * y * y) * x,
    11: lambda x, y, r2: math.sqrt(5) * (6 * r2 * r2 - 6 * r2 + 1),
    12: lambda x, y, r2: math.sqrt(10) * (4 * r2 - 3) * (x * x - y * y),
    13: lambda x, y, r2: math.sqrt(10) * (4 * r2 - 3) * 2 * x * y,
}


@dataclass(frozen=True, kw_only=True)
class Achromat:
    """Prescription of a cemented achromat, crown first, and how it sits; lengths in mm."""

    radii: tuple[float, float, float]
    thickness: tuple[float, float]
    glasses: tuple[str, str]
    tilt_rad: float = 0.0  # of the lens with its stop, about the middle of the stop
    decentre_mm: float = 0.0  # of the stop, upwards
    gap_mm: float = 0.0  # between the stop and the lens
    cement_tilt_rad: float = 0.0
    rear_tilt_rad: float = 0.0
    rim_mm: float = math.inf  # radius of the rear face

    def scaled(self, factor: float) -> "Achromat":
        """Lens with all lengths multiplied."""
        radii = tuple(factor * radius for radius in self.radii)
        return replace(self, radii=radii, thickness=tuple(factor * t for t in self.thickness))

    @property
    def glass_mm(self) -> float:
        """Thickness of both elements on the axis."""
        return sum(self.thickness)


# Radii, thicknesses and glasses of Thorlabs' own Zemax file of AC064-013-A.
STOCK = Achromat(radii=(7.08, -5.94, -40.36), thickness=(2.5, 1.5), glasses=("N-BAK4", "SF5"))
THIN_GLASS_MM = (1.2, 0.8)


def optic(lens: Achromat):
    """Lens as an `Optic`, with a plane 1 mm behind its rear vertex."""
    from optiland.optic import Optic

    system = Optic()
    surfaces = system.surfaces
    surfaces.add(index=0, thickness=np.inf)
    crown, flint = lens.glasses
    surfaces.add(
        index=1, radius=lens.radii[0], thickness=lens.thickness[0], material=crown, is_stop=True
    )
    surfaces.add(
        index=2,
        radius=lens.radii[1],
        thickness=lens.thickness[1],
        material=flint,
        rx=lens.cement_tilt_rad,
    )
    surfaces.add(index=3, radius=lens.radii[2], thickness=1.0, rx=lens.rear_tilt_rad)
    surfaces.add(index=4)
    system.set_aperture("EPD", 2 * STOP_MM)
    system.fields.set_type("angle")
    system.fields.add(y=0)
    system.wavelengths.add(value=WAVELENGTH_MM * 1e3, is_primary=True)
    return system


class Rays(NamedTuple):
    """Rays after the lens, in the frame of the sensor: places (3, n), directions, paths in mm."""

    place: np.ndarray
    direction: np.ndarray
    path: np.ndarray
    passes: np.ndarray

    def on_plane(self, z_mm: float = 0.0) -> np.ndarray:
        """Places (2, n) upright on a plane at this height above the sensor."""
        steps = (z_mm - self.place[2]) / self.direction[2]
        return -(self.place + steps * self.direction)[:2]


class Camera:
    """One lens with its sensor."""

    def __init__(self, lens: Achromat):
        for _ in range(3):
            lens = lens.scaled(FOCAL_MM / float(optic(lens).paraxial.f2()))
        self.lens, self.system = lens, optic(lens)
        straight = optic(replace(lens, cement_tilt_rad=0.0, rear_tilt_rad=0.0)).paraxial
        self.back_focus_mm = float(straight.F2()) + 1.0  # from the rear vertex
        self.sensor_z = lens.glass_mm + self.back_focus_mm - FOCAL_MM + SENSOR_MM
        cos, sin = math.cos(lens.tilt_rad), math.sin(lens.tilt_rad)
        self.turn = np.array([[1, 0, 0], [0, cos, -sin], [0, sin, cos]])

    def trace(
        self, slope: ArrayLike, points: np.ndarray, wavelength_mm: float = WAVELENGTH_MM
    ) -> Rays:
        """Rays from points of the scene at slopes (X/Z, Y/Z), one or many, through the stop."""
        from optiland.rays import RealRays

        ones = np.ones(points.shape[1])
        begin = self.turn.T @ (np.array([slope[0] * ones, slope[1] * ones, -ones]) * OBJECT_MM)
        stop = np.array([STOP_MM * points[0], STOP_MM * points[1], -self.lens.gap_mm * ones])
        stop[1] += self.lens.decentre_mm
        way = stop - begin
        direction = way / np.linalg.norm(way, axis=0)
        to_start = (START_MM - begin[2]) / direction[2]
        start = begin + to_start * direction
        rays = RealRays(*start, *direction, ones, ones * wavelength_mm * 1e3)
        self.system.surfaces.trace(rays)
        place = np.array([rays.x, rays.y, rays.z])
        out = np.array([rays.L, rays.M, rays.N])
        to_rear = (self.lens.glass_mm - place[2]) / out[2]
        radius = np.hypot(*(place + to_rear * out)[:2])
        place, out = self.turn @ place, self.turn @ out
        place[2] -= self.sensor_z
        return Rays(place, out, to_start + np.asarray(rays.opd), radius <= self.lens.rim_mm)


def focus_mm(camera: Camera, slope: tuple[float, float]) -> tuple[float, float]:
    """Height of the foci of a narrow beam above the sensor: across the meridian y, along it."""
    step = np.array([[SMALL, -SMALL, 0.0, 0.0], [0.0, 0.0, SMALL, -SMALL]])
    rays = camera.trace(slope, step)
    places, slopes = -rays.on_plane(), rays.direction[:2] / rays.direction[2]
    sagittal = -(places[0, 0] - places[0, 1]) / (slopes[0, 0] - slopes[0, 1])
    tangential = -(places[1, 2] - places[1, 3]) / (slopes[1, 2] - slopes[1, 3])
    return float(sagittal), float(tangential)


def stop_points(rings: int = 40) -> np.ndarray:
    """Points (2, n) of the stop, each for the same area."""
    points = []
    for ring in range(rings):
        count = 6 * ring + 3
        angle = 2 * np.pi * (np.arange(count) + 0.5) / count
        radius = math.sqrt((3 * ring * ring + 1.5 * (2 * ring + 1)) / (3 * rings * rings))
        points.append(radius * np.stack([np.cos(angle), np.sin(angle)]))
    return np.concatenate(points, axis=1)


def wavefront_waves(camera: Camera, slope: tuple[float, float]) -> dict[int, float]:
    """Zernike coefficients by Noll's order, rms waves, about the ray through the stop's middle."""
    points = np.concatenate([np.zeros((2, 1)), stop_points()], axis=1)
    rays = camera.trace(slope, points)
    middle = -np.append(rays.on_plane()[:, 0], 0.0)
    chief = rays.direction[:, 0]
    # The exit pupil is where the ray through the middle of the stop seems to come from.
    pupil_z = camera.trace((0.0, 1e-4), np.zeros((2, 1)))
    height, rise = -pupil_z.on_plane()[1, 0], pupil_z.direction[1, 0] / pupil_z.direction[2, 0]
    radius = abs(height / rise / chief[2])
    offset = rays.place - middle[:, np.newaxis]
    along = np.sum(offset * rays.direction, axis=0)
    back = -along - np.sqrt(along**2 - np.sum(offset**2, axis=0) + radius**2)
    waves = (rays.path + back) / WAVELENGTH_MM
    x, y = points[:, 1:]
    basis = np.stack([term(x, y, x * x + y * y) for term in ZERNIKE.values()])
    fitted, *_ = np.linalg.lstsq(basis.T, waves[1:] - waves[0], rcond=None)
    return dict(zip(ZERNIKE, fitted.tolist(), strict=True))


def illumination(camera: Camera, slope: tuple[float, float]) -> tuple[float, float]:
    """Light per area of the sensor, and the share of the stop that is not clipped.

    The scene has the same radiance everywhere: the light is the area that the rim of the opening,
    seen from one point of the sensor, encloses in direction cosines.
    """
    angle = np.linspace(0, 2 * np.pi, 721)[:-1]
    points = np.stack([np.cos(angle), np.sin(angle)])
    aim = camera.trace(slope, np.zeros((2, 1))).on_plane()
    slopes = np.repeat(np.array(slope)[:, np.newaxis], angle.size, axis=1)
    for _ in range(8):  # rays of many points of the scene that meet in one point of the sensor
        slopes += (aim - camera.trace(slopes, points).on_plane()) / SENSOR_MM
    rim = camera.trace(slopes, points).direction
    area = 0.5 * abs(np.sum(rim[0] * np.roll(rim[1], -1) - rim[1] * np.roll(rim[0], -1)))
    share = float(np.mean(camera.trace(slope, stop_points(120)).passes))
    return float(area) * share, share


def rear_circle(camera: Camera, slope: tuple[float, float]) -> tuple[float, float]:
    """Rim of a rear face of 2 mm, as seen in the stop: its radius and its shift, in stop radii."""
    narrow = np.array([[0.0, 0.0, 0.0, SMALL, -SMALL], [0.0, SMALL, -SMALL, 0.0, 0.0]])
    rays = camera.trace(slope, narrow)
    rear = camera.lens.glass_mm - camera.sensor_z
    y = -rays.on_plane(rear)[1]  # upside down: seen from the scene
    gain = (y[1] - y[2]) / (2 * SMALL * STOP_MM)
    return float(1 / gain), float(-y[0] / gain / STOP_MM)


def field_row(camera: Camera, degrees: float, light_on_axis: float) -> dict[str, float]:
    """Figures of one field angle."""
    tangent = math.tan(math.radians(degrees))
    slope = (0.0, tangent)
    sagittal, tangential = focus_mm(camera, slope)
    on_axis = focus_mm(camera, (0.0, 0.0))
    spot = camera.trace(slope, stop_points()).on_plane()
    chief = camera.trace(slope, np.zeros((2, 1))).on_plane()[1, 0]
    straight = paraxial_mm(camera) * tangent
    waves = wavefront_waves(camera, slope)
    light, share = illumination(camera, slope)
    colours = [
        camera.trace(slope, np.zeros((2, 1)), colour).on_plane()[1, 0] for colour in COLOURS_MM
    ]
    return {
        "field_deg": degrees,
        "radius_px": chief / PIXEL_MM,
        "paraxial_radius_px": straight / PIXEL_MM,
        "focus_sagittal_mm": on_axis[0] - sagittal,
        "focus_tangential_mm": on_axis[1] - tangential,
        "spot_rms_sagittal_um": 1e3 * float(np.std(spot[0])),
        "spot_rms_tangential_um": 1e3 * float(np.std(spot[1])),
        "distortion_percent": 100 * (chief / straight - 1) if straight else 0.0,
        "illumination": light / light_on_axis,
        "clipped_share": 1 - share,
        "coma_waves": 3 * math.sqrt(8) * waves[7],
        "spherical_waves": 6 * math.sqrt(5) * waves[11],
        "trefoil_waves": math.sqrt(8) * waves[9],
        "centroid_px": (float(np.mean(spot[1])) - chief) / PIXEL_MM,
        "lateral_colour_um": 1e3 * (colours[0] - colours[1]),
    }


def paraxial_mm(camera: Camera) -> float:
    """Image height per unit slope, near the axis."""
    return float(camera.trace((0.0, 1e-4), np.zeros((2, 1))).on_plane()[1, 0]) / 1e-4


def distortion_percent(camera: Camera) -> float:
    """Distortion at the field radius, the mean of both sides of the axis."""
    slope = FIELD_PX * PIXEL_MM / SENSOR_MM
    slopes = np.array([[0.0] * 4, [slope, -slope, 1e-4, -1e-4]])
    above, below, near, nearer = camera.trace(slopes, np.zeros((2, 4))).on_plane()[1].tolist()
    return 100 * ((above - below) / (near - nearer) * 1e-4 / slope - 1)


def corner_deg(camera: Camera, radius_px: float) -> float:
    """Field angle of a distance from the axis on the sensor."""
    angle = math.degrees(math.atan(radius_px * PIXEL_MM / paraxial_mm(camera)))
    for _ in range(5):
        slope = (0.0, math.tan(math.radians(angle)))
        reached = camera.trace(slope, np.zeros((2, 1))).on_plane()[1, 0] / PIXEL_MM
        angle *= radius_px / float(reached)
    return angle


def trace_fields(camera: Camera) -> list[dict[str, float]]:
    """Rows of all fields that are shown, with the corner of a view last."""
    light, _ = illumination(camera, (0.0, 0.0))
    angles = (*SHOWN_DEG, corner_deg(camera, CORNER_PX))
    return [field_row(camera, angle, light) for angle in angles]


def constants(camera: Camera, clipped: Camera) -> dict[str, float]:
    """Least-squares figures at a field radius of 902 px, from 20 fields out to the corner."""
    light, _ = illumination(camera, (0.0, 0.0))
    rows = [
        field_row(camera, angle, light)
        for angle in np.linspace(0, corner_deg(camera, CORNER_PX), 20)
    ]
    r = np.array([row["paraxial_radius_px"] for row in rows]) / FIELD_PX

    def fit(name: str, *powers: int, offset: float = 0.0) -> list[float]:
        values = np.array([row[name] for row in rows]) - offset
        return np.linalg.lstsq(np.stack([r**p for p in powers], 1), values, rcond=None)[0].tolist()

    third, fifth = fit("distortion_percent", 2, 4)
    circle, shift = rear_circle(clipped, (0.0, FIELD_PX * PIXEL_MM / paraxial_mm(clipped)))
    return {
        "field_radius_px": FIELD_PX,
        "focus_sagittal_m": 1e-3 * fit("focus_sagittal_mm", 2)[0],
        "focus_tangential_m": 1e-3 * fit("focus_tangential_mm", 2)[0],
        "distortion_3": third / 100,
        "distortion_5": fifth / 100,
        "falloff": -fit("illumination", 2, offset=1.0)[0],
        "coma_waves": fit("coma_waves", 1)[0],
        "spherical_waves": fit("spherical_waves", 0)[0],
        "cat_eye_radius": circle,
        "cat_eye_shift": shift,
    }


def errors_of_mounting() -> list[dict[str, float | str]]:
    """Effect of a lens that sits badly: focus over the field, coma on the axis, shift of a view."""
    minute = math.radians(1 / 60)
    # Tilts of one surface that turn the light by 3 minutes of arc, the tolerance of the maker.
    cases = {
        "lens with its stop tilted by 1 deg": replace(STOCK, tilt_rad=math.radians(1)),
        "stop decentred by 0.05 mm": replace(STOCK, decentre_mm=0.05),
        "stop 0.1 mm before the lens": replace(STOCK, gap_mm=0.1),
        "rear face tilted, light turned by 3 arcmin": replace(
            STOCK, rear_tilt_rad=3 * minute / 0.675
        ),
        "cement tilted, light turned by 3 arcmin": replace(
            STOCK, cement_tilt_rad=3 * minute / 0.106
        ),
    }
    rows: list[dict[str, float | str]] = []
    for name, lens in cases.items():
        camera = Camera(lens)
        places = np.linspace(-1, 1, 9)
        foci = np.array(
            [focus_mm(camera, (0.0, y * FIELD_PX * PIXEL_MM / SENSOR_MM)) for y in places]
        )
        dioptres = -foci / SENSOR_MM**2 * 1e3
        sagittal, tangential = np.polynomial.polynomial.polyfit(places, dioptres, 2)[1]
        chief = camera.trace((0.0, 0.0), np.zeros((2, 1))).on_plane()[1, 0]
        rows.append(
            {
                "case": name,
                "focus_sagittal_per_y_dpt": float(sagittal),
                "focus_tangential_per_y_dpt": float(tangential),
                "coma_on_axis_waves": 3 * math.sqrt(8) * wavefront_waves(camera, (0.0, 0.0))[7],
                "shift_px": float(chief) / PIXEL_MM,
                "distortion_percent": distortion_percent(camera),
            }
        )
    return rows


def _rounded(value):
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    if not isinstance(value, float):
        return value
    return float(f"{value:.4g}") if abs(value) > 1e-12 else 0.0  # rounding errors of a zero


def _print_rows(title: str, rows: list[dict]) -> None:
    print(f"\n{title}")
    for key in rows[0]:
        cells = (row[key] if isinstance(row[key], str) else f"{row[key]:.4g}" for row in rows)
        print(f"  {key:27s}" + "".join(f"{cell:>11s}" for cell in cells))


def main() -> None:
    """Trace both lenses, print the figures and write them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=RESULTS, help="JSON file to write")
    output = parser.parse_args().output
    try:
        import optiland  # noqa: F401
    except ImportError:
        raise SystemExit(
            "optiland is missing, which traces the rays: pip install optiland"
        ) from None
    stock = Camera(STOCK)
    factor = FOCAL_MM / float(optic(STOCK).paraxial.f2())
    thin_glass = tuple(one / factor for one in THIN_GLASS_MM)
    thin = Camera(replace(STOCK, thickness=thin_glass, rim_mm=STOP_MM))
    results = _rounded(
        {
            "lens": "AC064-013-A, scaled to 11.92 mm; stop of 2 mm at its front",
            "stock": trace_fields(stock),
            "thin_and_2_mm_across": trace_fields(thin),
            "mounting": errors_of_mounting(),
            "typical": constants(stock, thin),
        }
    )
    _print_rows("Stock lens", results["stock"])
    _print_rows("Thin lens, 2 mm across", results["thin_and_2_mm_across"])
    for row in results["mounting"]:
        print("\n" + "\n  ".join(f"{key}: {value}" for key, value in row.items()))
    print("\nTypical lens, at 902 px from the axis")
    for key, value in results["typical"].items():
        print(f"  {key:27s}{value:>12.4g}")
    write_text(output, json.dumps(results, indent=1) + "\n", overwrite=True)


if __name__ == "__main__":
    main()

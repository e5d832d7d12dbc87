"""Light and depth of a view, by Mitsuba."""

from itertools import count
from typing import Any

import numpy as np

from d3s.lab.rooms.camera import ThinLensCamera, pinhole_rays
from d3s.lab.rooms.layout import Layout
from d3s.lab.rooms.mitsuba import load_mitsuba
from d3s.lab.rooms.shapes import ShapeMaker
from d3s.lab.twin.geometry import View
from d3s.types import FloatArray, Image, Progress

# Places per pixel along each axis. Light falls on a film of so many times the pixels, which is then
# resampled as all views of the twin are: fine textures in focus would alias on plain pixels.
PER_PIXEL = 4
_PATHS_AT_ONCE = 12_000_000  # bounds the memory of a vectorised render
_LONGEST_PATH = 4  # of light that two more surfaces reflect before the one that is seen
_NEAR_M, _FAR_M = 1e-3, 100.0


def paths_per_place(samples: int) -> int:
    """Light paths for each place of the film: a square, since the sampler is stratified."""
    return int(np.ceil(np.sqrt(samples) / PER_PIXEL)) ** 2


class RenderScene:
    """Layout, loaded into Mitsuba."""

    def __init__(self, layout: Layout) -> None:
        self._mi = load_mitsuba()
        maker, number = ShapeMaker(), count()
        shapes = [shape for solid in layout.solids for shape in maker.shapes(solid)]
        shapes += [maker.lamp(lamp) for lamp in layout.lamps]
        named = {f"shape_{next(number)}": shape for shape in shapes}
        self._scene = self._mi.load_dict({"type": "scene", **named})

    def light(
        self, camera: ThinLensCamera, samples: int, seed: int, progress: Progress | None = None
    ) -> Image:
        """Light on the film, `PER_PIXEL` values along each axis of a pixel.

        `samples` are light paths per pixel, rounded up to 16 times a square. `progress` is called
        with the number of rows of the film that are done, and of all.
        """
        each = paths_per_place(samples)
        rows, cols = PER_PIXEL * camera.part.rows, PER_PIXEL * camera.part.cols
        step = max(1, _PATHS_AT_ONCE // (cols * each))
        light = np.empty((rows, cols), dtype=np.float32)
        integrator = self._mi.load_dict(
            {"type": "path", "max_depth": _LONGEST_PATH, "rr_depth": _LONGEST_PATH + 1}
        )
        for number, first in enumerate(range(0, rows, step)):
            last = min(first + step, rows)
            sensor = self._sensor(camera, (first, last), each)
            part = self._mi.render(
                self._scene, sensor=sensor, integrator=integrator, spp=each, seed=seed + number
            )
            light[first:last] = np.asarray(part, dtype=np.float32)[..., 0]
            if progress is not None:
                progress(last, rows)
        return light

    def depth_m(self, view: View, shape: tuple[int, int]) -> FloatArray:
        """Depth along the rays through the pixel centres and the centre of the lens."""
        mi = self._mi
        rays = pinhole_rays(view, shape).reshape(-1, 3)
        lengths = np.linalg.norm(rays, axis=1)
        origin, unit = (view.camera_x_m, 0.0, 0.0), rays / lengths[:, np.newaxis]
        if mi.variant().startswith("scalar"):  # one ray after the other
            reach = [self._scene.ray_intersect(mi.Ray3f(origin, one)).t for one in unit.tolist()]
        else:
            directions = mi.Vector3f(unit.T.astype(np.float32))
            reach = self._scene.ray_intersect(mi.Ray3f(mi.Point3f(*origin), directions)).t
        return np.asarray((np.asarray(reach, dtype=np.float64) / lengths).reshape(shape))

    def _sensor(self, camera: ThinLensCamera, band: tuple[int, int], each: int) -> Any:
        """Sensor of Mitsuba for a band of rows of the film."""
        lens: dict[str, Any] = {"type": "perspective"}
        if camera.aperture_radius_m > 0:
            lens = {
                "type": "thinlens",
                "aperture_radius": camera.aperture_radius_m,
                "focus_distance": camera.focus_distance_m,
            }
        film = {
            "type": "hdrfilm",
            "height": PER_PIXEL * camera.film_px[0],
            "width": PER_PIXEL * camera.film_px[1],
            "crop_offset_x": PER_PIXEL * camera.part.col,
            "crop_offset_y": band[0],
            "crop_width": PER_PIXEL * camera.part.cols,
            "crop_height": band[1] - band[0],
            "rfilter": {"type": "box"},
            "pixel_format": "luminance",
            "component_format": "float32",
        }
        x = camera.x_m
        return self._mi.load_dict(
            {
                **lens,
                "fov": float(np.rad2deg(camera.fov_x_rad)),
                "fov_axis": "x",
                "near_clip": _NEAR_M,
                "far_clip": _FAR_M,
                "to_world": self._mi.ScalarTransform4f().look_at(
                    origin=[x, 0, 0], target=[x, 0, 1], up=[0, -1, 0]
                ),
                "film": film,
                "sampler": {"type": "multijitter", "sample_count": each},
            }
        )

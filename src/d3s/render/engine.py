"""Mitsuba 3: loading it, and a layout as a Mitsuba scene; light and depth of a view."""

import importlib
import os
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from d3s.render.camera import ThinLensCamera, pinhole_rays
from d3s.render.layout import Layout
from d3s.render.solids import Cylinder, Lamp, Paint, Quad, Solid, Sphere, Stone, stone_mesh
from d3s.scene.geometry import View
from d3s.types import FloatArray, Image

_PATHS_AT_ONCE = 12_000_000  # bounds the memory of a vectorised render
_MOST_BOUNCES = 4
_FAST, _SLOW = "llvm_ad_mono", "scalar_rgb"
_OLDEST_LLVM, _NEWEST_LLVM = 16, 25
_LIBRARY_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")


def _find_llvm() -> str | None:
    """Path of a usable LLVM library; 14 and 15 are too old for Mitsuba."""
    for number in range(_NEWEST_LLVM, _OLDEST_LLVM - 1, -1):
        folders = (f"/usr/lib/llvm-{number}/lib", *_LIBRARY_FOLDERS)
        for folder in folders:
            for name in (f"libLLVM.so.{number}.1", f"libLLVM-{number}.so"):
                path = Path(folder) / name
                if path.exists():
                    return str(path)
    return None


@cache
def load_mitsuba() -> Any:
    """Return the module of Mitsuba with its fastest variant that runs here."""
    if "DRJIT_LIBLLVM_PATH" not in os.environ:
        path = _find_llvm()
        if path:
            os.environ["DRJIT_LIBLLVM_PATH"] = path
    mitsuba = importlib.import_module("mitsuba")
    mitsuba.set_variant(_FAST if "DRJIT_LIBLLVM_PATH" in os.environ else _SLOW)
    return mitsuba


class RenderScene:
    """Layout, loaded into Mitsuba."""

    def __init__(self, layout: Layout) -> None:
        self._mi = load_mitsuba()
        bitmaps: dict[Paint, Any] = {}
        numbers = count()
        scene: dict[str, Any] = {"type": "scene"}
        for solid in layout.solids:
            for shape in self._shapes(solid, bitmaps):
                scene[f"solid_{next(numbers)}"] = shape
        for lamp in layout.lamps:
            scene[f"lamp_{next(numbers)}"] = self._lamp(lamp)
        self._scene = self._mi.load_dict(scene)

    def light(
        self,
        camera: ThinLensCamera,
        samples: int,
        many: int,
        seed: int,
        progress: Callable[[float], None] | None = None,
    ) -> Image:
        """Light on the film, `many` times `many` values per pixel, in units of the lamps."""
        mi = self._mi
        rows, cols = many * camera.film.rows, many * camera.film.cols
        each = int(np.ceil(np.sqrt(samples) / many)) ** 2  # the sampler needs a square
        step = max(1, _PATHS_AT_ONCE // (cols * each))
        light = np.empty((rows, cols), dtype=np.float32)
        integrator = mi.load_dict({"type": "path", "max_depth": _MOST_BOUNCES, "rr_depth": 50})
        for number, first in enumerate(range(0, rows, step)):
            last = min(first + step, rows)
            sensor = self._sensor(camera, (rows, cols), (first, last), each)
            part = mi.render(
                self._scene, sensor=sensor, integrator=integrator, spp=each, seed=seed + number
            )
            light[first:last] = np.asarray(part, dtype=np.float32)[..., 0]
            if progress is not None:
                progress(last / rows)
        return light

    def depth_m(self, view: View, shape: tuple[int, int]) -> FloatArray:
        """Depth along the rays through the pixel centres and the centre of the lens."""
        mi = self._mi
        rays = pinhole_rays(view, shape).reshape(-1, 3)
        lengths = np.linalg.norm(rays, axis=1)
        origin = (view.camera_x_m, 0.0, 0.0)
        unit = rays / lengths[:, np.newaxis]
        if mi.variant().startswith("scalar"):
            reach = [
                self._scene.ray_intersect(mi.Ray3f(origin, direction.tolist())).t
                for direction in unit
            ]
        else:
            directions = mi.Vector3f(unit.T.astype(np.float32))
            reach = self._scene.ray_intersect(mi.Ray3f(mi.Point3f(*origin), directions)).t
        return (np.asarray(reach, dtype=np.float64) / lengths).reshape(shape)

    def _sensor(
        self, camera: ThinLensCamera, size: tuple[int, int], band: tuple[int, int], each: int
    ) -> Any:
        transform = self._mi.ScalarTransform4f
        x = camera.x_m
        lens: dict[str, Any] = {"type": "perspective"}
        if camera.aperture_radius_m > 0:
            lens = {
                "type": "thinlens",
                "aperture_radius": camera.aperture_radius_m,
                "focus_distance": camera.focus_distance_m,
            }
        film = {
            "type": "hdrfilm",
            "width": size[1],
            "height": size[0],
            "crop_offset_x": 0,
            "crop_offset_y": band[0],
            "crop_width": size[1],
            "crop_height": band[1] - band[0],
            "rfilter": {"type": "box"},
            "pixel_format": "luminance",
            "component_format": "float32",
        }
        return self._mi.load_dict(
            {
                **lens,
                "fov": float(np.rad2deg(camera.fov_x_rad)),
                "fov_axis": "x",
                "near_clip": 1e-3,
                "far_clip": 100.0,
                "to_world": transform().look_at(
                    origin=[x, 0, 0], target=[x, 0, 1], up=[0, -1, 0]
                ),
                "film": film,
                "sampler": {"type": "multijitter", "sample_count": each},
            }
        )

    def _shapes(self, solid: Solid, bitmaps: dict[Paint, Any]) -> Iterator[dict[str, Any]]:
        if isinstance(solid, Quad):
            lengths = 2 * np.linalg.norm(solid.half_b), 2 * np.linalg.norm(solid.half_a)
            bsdf = self._bsdf(solid.paint, lengths, bitmaps)
            matrix = _placed(solid.half_a, solid.half_b, solid.centre)
            yield {"type": "rectangle", "to_world": self._transform(matrix), "bsdf": bsdf}
        elif isinstance(solid, Cylinder):
            yield from self._cylinder(solid, bitmaps)
        else:
            around_m = 2 * np.pi * solid.radius_m
            bsdf = self._bsdf(solid.paint, (around_m / 2, around_m), bitmaps)
            if isinstance(solid, Sphere):
                yield {
                    "type": "sphere",
                    "center": solid.centre.tolist(),
                    "radius": solid.radius_m,
                    "bsdf": bsdf,
                }
            else:
                yield self._mesh(solid, bsdf)

    def _cylinder(self, solid: Cylinder, bitmaps: dict[Paint, Any]) -> Iterator[dict[str, Any]]:
        axis = solid.top - solid.base
        length_m, radius_m = float(np.linalg.norm(axis)), solid.radius_m
        yield {
            "type": "cylinder",
            "p0": solid.base.tolist(),
            "p1": solid.top.tolist(),
            "radius": radius_m,
            "bsdf": self._bsdf(solid.paint, (length_m, 2 * np.pi * radius_m), bitmaps),
        }
        first = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
        first *= radius_m / np.linalg.norm(first)
        second = np.cross(axis, first) / length_m
        cap = self._bsdf(solid.paint, (2 * radius_m, 2 * radius_m), bitmaps)
        matrix = _placed(first, second, solid.top)
        yield {"type": "disk", "to_world": self._transform(matrix), "bsdf": cap}

    def _mesh(self, stone: Stone, bsdf: dict[str, Any]) -> Any:
        mi = self._mi
        vertices, places, triangles = stone_mesh(stone)
        properties = mi.Properties()
        properties["mesh_bsdf"] = mi.load_dict(bsdf)
        mesh = mi.Mesh(
            "stone",
            vertex_count=len(vertices),
            face_count=len(triangles),
            has_vertex_normals=True,
            has_vertex_texcoords=True,
            props=properties,
        )
        arrays = mi.traverse(mesh)
        arrays["vertex_positions"] = vertices.astype(np.float32).ravel()
        arrays["vertex_texcoords"] = places.astype(np.float32).ravel()
        arrays["faces"] = triangles.astype(np.uint32).ravel()
        arrays.update()
        return mesh

    def _lamp(self, lamp: Lamp) -> dict[str, Any]:
        return {
            "type": "rectangle",
            "to_world": self._transform(_placed(lamp.half_a, lamp.half_b, lamp.centre)),
            "emitter": {"type": "area", "radiance": {"type": "uniform", "value": lamp.radiance}},
        }

    def _bsdf(
        self, paint: Paint, size_m: tuple[float, float], bitmaps: dict[Paint, Any]
    ) -> dict[str, Any]:
        """Surface of `size_m`, (height, width), with a paint in its natural size."""
        colour: Any = {"type": "uniform", "value": paint.albedo}
        if paint.texture is not None:
            if paint not in bitmaps:
                bitmaps[paint] = self._mi.Bitmap(paint.reflectance()[..., np.newaxis])
            tall, wide = (size / tile for size, tile in zip(size_m, paint.size_m, strict=True))
            matrix = np.diag([wide, tall, 1.0, 1.0])
            matrix[:2, 3] = 0.5 - 0.5 * wide, 0.5 - 0.5 * tall
            colour = {
                "type": "bitmap",
                "bitmap": bitmaps[paint],
                "raw": True,
                "filter_type": "bilinear",
                "wrap_mode": "mirror",
                "to_uv": self._transform(matrix),
            }
        bsdf: dict[str, Any] = {"type": "diffuse", "reflectance": colour}
        if paint.is_glossy:
            bsdf = {"type": "roughplastic", "diffuse_reflectance": colour, "alpha": 0.25}
        return {"type": "twosided", "bsdf": bsdf}

    def _transform(self, matrix: FloatArray) -> Any:
        return self._mi.ScalarTransform4f(matrix.tolist())


def _placed(half_a: FloatArray, half_b: FloatArray, centre: FloatArray) -> FloatArray:
    """4x4 matrix from the square of [-1, 1] to a rectangle in space."""
    normal = np.cross(half_a, half_b)
    matrix = np.eye(4)
    matrix[:3, 0], matrix[:3, 1] = half_a, half_b
    matrix[:3, 2], matrix[:3, 3] = normal / np.linalg.norm(normal), centre
    return matrix

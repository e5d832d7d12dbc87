"""Light and depth of a room by Mitsuba 3, the extra `d3s[render]`, through thin lenses.

A ray leaves a random point of the aperture and meets the ray through the centre of the aperture in
the plane of focus. So the image is that of a pinhole at the centre of the lens, and a point at
depth Z is blurred to a disk. Its radius in pixels is s0 A / p times the distance of 1/Z from
1/Z_focus, as `Optics.blur_radius_px` has it.

The variant `llvm_ad_mono` compiles the path tracer for this processor, and needs the library of
LLVM 16 or newer (Debian: libllvm19). Older ones are not tried: Mitsuba crashes with LLVM 15. The
variant `scalar_rgb` needs no library, and takes about three times as long.
"""

import importlib
import importlib.util
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from d3s.errors import MissingPackageError, SceneError
from d3s.lab.rooms.room import (
    Cylinder,
    Lamp,
    Layout,
    Paint,
    Quad,
    Room,
    Solid,
    Stone,
    layout_of,
    stone_mesh,
)
from d3s.lab.twin.geometry import View, Window, perfect_views
from d3s.lab.twin.pair import Pair
from d3s.lab.twin.render import find_occluded
from d3s.lab.twin.sampling import DECIMATION_MARGIN_PX, decimate
from d3s.record import short_repr
from d3s.rig import Rig
from d3s.types import FloatArray, Image, Progress


class ThinLensCamera(NamedTuple):
    """Camera of one view, on a film that is centred on the axis of the lens.

    The right view of a rig with a disparity at infinity looks past the axis. Its frame is then a
    part of the film at one side, and the rest of a pixel is left to the resampling.
    """

    x_m: float  # position of the lens; y and z are 0
    aperture_radius_m: float  # 0 for a pinhole
    focus_distance_m: float
    fov_x_rad: float  # full angle of the width of the film
    film_px: tuple[int, int]  # rows and columns of the film
    part: Window  # pixels of the film that are rendered: the frame and a margin
    shift_px: float  # from the pixels of `part` to those of the frame, to the right


def thin_lens_camera(view: View, shape: tuple[int, int], margin_px: int) -> ThinLensCamera:
    """Camera of one view of a rig without mounting errors, with a margin on each side of the frame.

    Raises a SceneError if the lens is focused at infinity or beyond.
    """
    optics = view.optics
    focus_m = optics.focus_distances_m[view.camera]
    if optics.aperture_radius_m > 0 and not 0 < focus_m < np.inf:
        name = ("optical_power_left_dpt", "optical_power_right_dpt")[view.camera]
        raise SceneError(
            f"{name}={1 / optics.sensor_distance_m + 1 / focus_m:g} must be above "
            f"{1 / optics.sensor_distance_m:g}, 1 / sensor_distance_m, to be rendered: the path "
            "tracer has no lens that is focused at infinity or beyond."
        )
    offset_px = optics.disparity_offset_px if view.camera else 0.0
    whole_px = round(offset_px)
    part = Window(0, abs(whole_px) + whole_px, shape[0] + 2 * margin_px, shape[1] + 2 * margin_px)
    film_px = part.rows, part.cols + 2 * abs(whole_px)
    return ThinLensCamera(
        x_m=view.camera_x_m,
        aperture_radius_m=optics.aperture_radius_m,
        focus_distance_m=focus_m,
        fov_x_rad=float(2 * np.arctan(film_px[1] / 2 / optics.focal_length_px)),
        film_px=film_px,
        part=part,
        shift_px=offset_px - whole_px,
    )


LLVM_PATH = "DRJIT_LIBLLVM_PATH"
"""Environment variable with the path of the LLVM library; empty for the variant without it."""
_FAST, _PLAIN = "llvm_ad_mono", "scalar_rgb"
_LLVM_NUMBERS = range(16, 30)
_LLVM_FOLDER = "/usr/lib/llvm-{}/lib"
_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")


def check_installed() -> None:
    """Raise an `InputError` with the command to install Mitsuba if it is missing."""
    if importlib.util.find_spec("mitsuba") is None:
        raise MissingPackageError(
            "Rooms are rendered by Mitsuba 3, which is not installed", "render"
        )


def mitsuba_version() -> str:
    """Version of the installed Mitsuba; an InputError if there is none."""
    check_installed()
    return version("mitsuba")


@cache
def load_mitsuba() -> Any:
    """Module of Mitsuba, with the fastest variant of this machine; an InputError without it."""
    check_installed()
    path = llvm_path()
    if path:
        os.environ[LLVM_PATH] = path
    mitsuba = importlib.import_module("mitsuba")
    mitsuba.set_variant(_FAST if path else _PLAIN)
    mitsuba.set_log_level(mitsuba.LogLevel.Error)
    return mitsuba


def llvm_path() -> str | None:
    """Path of a usable LLVM library: as the environment has it, or the newest that is found."""
    if LLVM_PATH in os.environ:
        return os.environ[LLVM_PATH] or None
    for number in reversed(_LLVM_NUMBERS):
        for folder in (_LLVM_FOLDER.format(number), *_FOLDERS):
            for name in (f"libLLVM.so.{number}.1", f"libLLVM-{number}.so"):
                path = Path(folder, name)
                if path.exists():
                    return str(path)
    return None


Shape = dict[str, Any] | Any
"""Shape as `mitsuba.load_dict` takes it: a dictionary, or a mesh."""

_GLOSS = 0.25  # roughness of glossy paint: wide, soft highlights


class ShapeMaker:
    """Makes shapes; solids with one paint share its texels."""

    def __init__(self) -> None:
        self._mi = load_mitsuba()
        self._bitmaps: dict[Paint, Any] = {}

    def shapes(self, solid: Solid | Lamp) -> Iterator[Shape]:
        """Yield the shapes of a solid or a lamp."""
        if isinstance(solid, Lamp):
            yield {
                "type": "rectangle",
                "to_world": self._placed(solid.half_a, solid.half_b, solid.centre),
                "emitter": {"type": "area", "radiance": _grey(1.0)},
            }
        elif isinstance(solid, Quad):
            halves = (solid.half_b, solid.half_a)
            height_m, width_m = (2 * float(np.linalg.norm(half)) for half in halves)
            yield {
                "type": "rectangle",
                "to_world": self._placed(solid.half_a, solid.half_b, solid.centre),
                "flip_normals": solid.paint.finish == "glowing",
                **self._surface(solid.paint, (height_m, width_m)),
            }
        elif isinstance(solid, Cylinder):
            yield from self._cylinder(solid)
        else:
            # The texture of a ball goes from pole to pole and around.
            size_m = np.pi * solid.radius_m, 2 * np.pi * solid.radius_m
            surface = self._surface(solid.paint, size_m)
            if isinstance(solid, Stone):
                yield self._mesh(solid, surface["bsdf"])
            else:
                centre, radius_m = solid.centre.tolist(), solid.radius_m
                yield {"type": "sphere", "center": centre, "radius": radius_m, **surface}

    def _cylinder(self, solid: Cylinder) -> Iterator[Shape]:
        axis = solid.top - solid.base
        length_m, radius_m = float(np.linalg.norm(axis)), solid.radius_m
        yield {
            "type": "cylinder",
            "p0": solid.base.tolist(),
            "p1": solid.top.tolist(),
            "radius": radius_m,
            **self._surface(solid.paint, (length_m, 2 * np.pi * radius_m)),
        }
        first = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
        first *= radius_m / np.linalg.norm(first)
        second = np.cross(axis, first) / length_m
        yield {
            "type": "disk",
            "to_world": self._placed(first, second, solid.top),
            **self._surface(solid.paint, (2 * radius_m, 2 * radius_m)),
        }

    def _mesh(self, stone: Stone, bsdf: dict[str, Any]) -> Shape:
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

    def _surface(self, paint: Paint, size_m: tuple[float, float]) -> dict[str, Any]:
        """Paint of a surface of `size_m`, (height, width): what it reflects, or its own light."""
        colour = self._colour(paint, size_m)
        if paint.finish == "glowing":
            return {"emitter": {"type": "area", "radiance": colour}}
        bsdf: dict[str, Any] = {"type": "diffuse", "reflectance": colour}
        if paint.finish == "glossy":
            bsdf = {"type": "roughplastic", "diffuse_reflectance": colour, "alpha": _GLOSS}
        return {"bsdf": {"type": "twosided", "bsdf": bsdf}}

    def _colour(self, paint: Paint, size_m: tuple[float, float]) -> dict[str, Any]:
        if paint.texture is None:
            return _grey(paint.albedo)
        if paint not in self._bitmaps:
            self._bitmaps[paint] = self._mi.Bitmap(paint.reflectance()[..., np.newaxis])
        (height_m, width_m), (down_m, right_m) = paint.size_m, paint.offset_m
        tall, wide = size_m[0] / height_m, size_m[1] / width_m
        matrix = np.diag([wide, tall, 1.0, 1.0])
        matrix[0, 3] = 0.5 - 0.5 * wide - right_m / width_m
        matrix[1, 3] = 0.5 - 0.5 * tall - down_m / height_m
        return {
            "type": "bitmap",
            "bitmap": self._bitmaps[paint],
            "raw": True,
            "filter_type": "bilinear",
            "wrap_mode": "mirror",
            "to_uv": self._mi.ScalarTransform4f(matrix.tolist()),
        }

    def _placed(self, half_a: FloatArray, half_b: FloatArray, centre: FloatArray) -> Any:
        """Transform from the square of [-1, 1] to a rectangle in space."""
        normal = np.cross(half_a, half_b)
        matrix = np.eye(4)
        matrix[:3, 0], matrix[:3, 1] = half_a, half_b
        matrix[:3, 2], matrix[:3, 3] = normal / np.linalg.norm(normal), centre
        return self._mi.ScalarTransform4f(matrix.tolist())


def _grey(value: float) -> dict[str, Any]:
    return {"type": "uniform", "value": value}


# Places per pixel along each axis. Light falls on a film of so many times the pixels, which is then
# resampled as all views of the twin are: fine textures in focus would alias on plain pixels.
PER_PIXEL = 4
_PATHS_AT_ONCE = 12_000_000  # bounds the memory of a vectorised render
_LONGEST_PATH = 4  # of light that two more surfaces reflect before the one that is seen
_NEAR_M, _FAR_M = 1e-3, 100.0


class RenderScene:
    """Layout, loaded into Mitsuba."""

    def __init__(self, layout: Layout) -> None:
        self._mi = load_mitsuba()
        maker = ShapeMaker()
        every = (*layout.solids, *layout.lamps)
        shapes = [shape for solid in every for shape in maker.shapes(solid)]
        named = {f"shape_{number}": shape for number, shape in enumerate(shapes)}
        self._scene = self._mi.load_dict({"type": "scene", **named})

    def light(
        self, camera: ThinLensCamera, samples: int, seed: int, progress: Progress | None = None
    ) -> Image:
        """Light on the film, `PER_PIXEL` values along each axis of a pixel.

        `samples` are light paths per pixel, rounded up to 16 times a square. `progress` is called
        with the number of rows of the film that are done, and of all.
        """
        # A square of light paths for each place: the sampler is stratified.
        each = int(np.ceil(np.sqrt(samples) / PER_PIXEL)) ** 2
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
        x, y = np.meshgrid(Window.frame(shape).col_numbers, Window.frame(shape).row_numbers)
        rays = np.asarray(np.stack((x, y, np.ones_like(x)), axis=-1) @ view.ray_matrix.T)
        rays = rays.reshape(-1, 3)
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


STEPS = 100
"""Steps of the progress of one pair."""

# Exposure: so much of full scale at this percentile of the left view.
_BRIGHT, _BRIGHT_PERCENTILE = 0.9, 99.0
_FEWER = 8  # the view without blur is for looking at: a part of the samples will do
_SEEDS_APART = 10_000  # more than the bands of a view, each with a seed of its own


def render_room(room: Room, rig: Rig, progress: Progress | None = None) -> Pair:
    """Render both views of a room through the lenses of a rig, with the truth.

    Depth is that of the point that the ray through the centre of the pixel and of the lens meets.
    The views have no sensor noise. That of the path tracer falls with the square root of the
    samples. `progress` is called with the number of steps that are done, and `STEPS`. An InputError
    if Mitsuba is not installed, a SceneError if a lens is focused at infinity or beyond.
    """
    if not isinstance(rig, Rig):
        raise SceneError(f"rig={short_repr(rig)} must be a Rig. Read a rig file with Rig.load.")
    pair = render_layout(layout_of(room, rig.optics), rig, room.shape, room.samples, progress)
    scale = np.float32(_BRIGHT / np.percentile(pair.left, _BRIGHT_PERCENTILE))
    images = {name: getattr(pair, name) * scale for name in ("left", "right", "all_in_focus")}
    return replace(pair, **images)


def render_layout(
    layout: Layout,
    rig: Rig,
    shape: tuple[int, int],
    samples: int,
    progress: Progress | None = None,
    seed: int = 0,
) -> Pair:
    """Render both views of any layout, in units of its lamps.

    `samples` are light paths per pixel; another `seed` of the paths gives other noise. `progress`
    is called as for `render_room`.
    """
    views = perfect_views(rig.optics, shape)
    cameras = [thin_lens_camera(view, shape, DECIMATION_MARGIN_PX) for view in views]
    few = max(1, samples // _FEWER)
    plan = [(camera, samples) for camera in cameras]
    plan.append((cameras[0]._replace(aperture_radius_m=0.0), few))
    scene = RenderScene(layout)
    total, done = 2 * samples + few, 0
    images = []
    for number, (camera, many) in enumerate(plan):

        def say(row: int, rows: int, done: int = done, many: int = many) -> None:
            if progress is not None:
                progress(round(STEPS * (done / total + many / total * row / rows)), STEPS)

        light = scene.light(camera, many, (seed * 3 + number) * _SEEDS_APART, say)
        images.append(decimate(light, PER_PIXEL, camera.shift_px))
        done += many
    inverse: list[Image] = [(1 / scene.depth_m(view, shape)).astype(np.float32) for view in views]
    return Pair(
        left=images[0],
        right=images[1],
        depth_m=np.float32(1.0) / inverse[0],
        all_in_focus=images[2],
        occluded=find_occluded(inverse[0], inverse[1], views),
        rig=rig,
    )

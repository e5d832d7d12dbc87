"""Solids as shapes of Mitsuba: their place, their paint in its natural size, their light."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from d3s.lab.rooms.mitsuba import load_mitsuba
from d3s.lab.rooms.solids import Cylinder, Lamp, Paint, Quad, Solid, Sphere, Stone, stone_mesh
from d3s.types import FloatArray

Shape = dict[str, Any] | Any
"""Shape as `mitsuba.load_dict` takes it: a dictionary, or a mesh."""

_GLOSS = 0.25  # roughness of glossy paint: wide, soft highlights


class ShapeMaker:
    """Makes shapes; solids with one paint share its texels."""

    def __init__(self) -> None:
        self._mi = load_mitsuba()
        self._bitmaps: dict[Paint, Any] = {}

    def lamp(self, lamp: Lamp) -> Shape:
        """Return the shape of a lamp."""
        return {
            "type": "rectangle",
            "to_world": self._transform(_placed(lamp.half_a, lamp.half_b, lamp.centre)),
            "emitter": {"type": "area", "radiance": _grey(lamp.radiance)},
        }

    def shapes(self, solid: Solid) -> Iterator[Shape]:
        """Yield the shapes of a solid."""
        if isinstance(solid, Quad):
            yield self._quad(solid)
        elif isinstance(solid, Cylinder):
            yield from self._cylinder(solid)
        elif isinstance(solid, Sphere):
            yield {
                "type": "sphere",
                "center": solid.centre.tolist(),
                "radius": solid.radius_m,
                **self._surface(solid.paint, _round_size(solid)),
            }
        else:
            yield self._mesh(solid)

    def _quad(self, quad: Quad) -> Shape:
        height_m, width_m = (2 * float(np.linalg.norm(half)) for half in (quad.half_b, quad.half_a))
        return {
            "type": "rectangle",
            "to_world": self._transform(_placed(quad.half_a, quad.half_b, quad.centre)),
            "flip_normals": quad.paint.finish == "glowing",
            **self._surface(quad.paint, (height_m, width_m)),
        }

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
            "to_world": self._transform(_placed(first, second, solid.top)),
            **self._surface(solid.paint, (2 * radius_m, 2 * radius_m)),
        }

    def _mesh(self, stone: Stone) -> Shape:
        mi = self._mi
        mesh_of = stone_mesh(stone)
        properties = mi.Properties()
        bsdf = self._surface(stone.paint, _round_size(stone))["bsdf"]
        properties["mesh_bsdf"] = mi.load_dict(bsdf)
        mesh = mi.Mesh(
            "stone",
            vertex_count=len(mesh_of.vertices),
            face_count=len(mesh_of.triangles),
            has_vertex_normals=True,
            has_vertex_texcoords=True,
            props=properties,
        )
        arrays = mi.traverse(mesh)
        arrays["vertex_positions"] = mesh_of.vertices.astype(np.float32).ravel()
        arrays["vertex_texcoords"] = mesh_of.places.astype(np.float32).ravel()
        arrays["faces"] = mesh_of.triangles.astype(np.uint32).ravel()
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
            "to_uv": self._transform(matrix),
        }

    def _transform(self, matrix: FloatArray) -> Any:
        return self._mi.ScalarTransform4f(matrix.tolist())


def _grey(value: float) -> dict[str, Any]:
    return {"type": "uniform", "value": value}


def _round_size(ball: Sphere | Stone) -> tuple[float, float]:
    """Height and width of the texture of a ball, from pole to pole and around."""
    return np.pi * ball.radius_m, 2 * np.pi * ball.radius_m


def _placed(half_a: FloatArray, half_b: FloatArray, centre: FloatArray) -> FloatArray:
    """4x4 matrix from the square of [-1, 1] to a rectangle in space."""
    normal = np.cross(half_a, half_b)
    matrix = np.eye(4)
    matrix[:3, 0], matrix[:3, 1] = half_a, half_b
    matrix[:3, 2], matrix[:3, 3] = normal / np.linalg.norm(normal), centre
    return matrix

"""Meshes of depth maps: a vertex for each depth, triangles between neighbours, no bridges.

Neighbours whose disparities differ by more than `MAX_STEP_PX` lie on different surfaces, and no
triangle joins them. The left view is the texture. Filled parts can be told from measured ones: by
a material of their own in GLB files, by a property of the vertices in PLY files.
"""

import json
import os
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.atomic import write_bytes
from d3s.errors import InputError
from d3s.estimate.depth_map import DepthMap
from d3s.estimate.flags import Flag
from d3s.files.depth_image import for_screens
from d3s.files.raw import named
from d3s.types import Image, Mask

MAX_STEP_PX = 0.5
"""Difference of disparity between neighbours on one surface, in pixels."""
MESH_ENDINGS = (".glb", "mesh.ply")
"""Ends of the names of meshes; any other PLY file has points."""

_FILLED_TINT = (1.0, 0.55, 0.45, 1.0)  # of the filled parts, on their texture
_GLTF_AXES = np.array([1, -1, -1], np.float32)  # glTF: y up, z backward


class DepthMesh(NamedTuple):
    """Vertices and triangles, in metres and the axes of points: x right, y down, z forward."""

    vertices_m: Image  # (vertices, 3)
    places: Image  # (vertices, 2): x and y in the texture, 0 to 1
    sigma_m: Image  # of z, (vertices,)
    is_filled: Mask  # (vertices,)
    triangles: NDArray[np.uint32]  # (triangles, 3), front faces towards the camera
    texture: NDArray[np.uint8]  # (rows, cols, 3)


def is_mesh(path: Path) -> bool:
    """Whether the name of a file is that of a mesh."""
    return path.name.lower().endswith(MESH_ENDINGS)


def mesh_of(depth_map: DepthMap) -> DepthMesh:
    """Mesh of a depth map; an InputError if no pixel has a depth."""
    valid = depth_map.valid
    if not valid.any():
        raise InputError("no pixel has a depth: there is nothing to make a mesh of.")
    rows, cols = np.nonzero(valid)
    height, width = valid.shape
    number = np.full(valid.shape, -1, np.int64)
    number[valid] = np.arange(rows.size)
    is_filled = (depth_map.flags & np.uint16(Flag.FILLED)) != 0
    return DepthMesh(
        vertices_m=depth_map.points().xyz_m,
        places=np.stack([(cols + 0.5) / width, (rows + 0.5) / height], axis=1).astype(np.float32),
        sigma_m=depth_map.sigma_m[valid],
        is_filled=is_filled[valid],
        triangles=_triangles(number, depth_map.disparity_px),
        texture=_texture(depth_map),
    )


def write_mesh(
    path: str | os.PathLike[str], depth_map: DepthMap, *, overwrite: bool = False
) -> DepthMesh:
    """Write the mesh of a depth map as a GLB or PLY file, by the suffix; return it.

    Parameters
    ----------
    path
        File to write: `.glb` or `.ply`.
    depth_map
        Depth map.
    overwrite
        Whether to replace a file that holds something else.

    Raises
    ------
    InputError
        If the suffix is another, or no pixel has a depth.
    OutputError
        If the file cannot be written, or would replace another without `overwrite`.
    """
    suffix = Path(os.fsdecode(path)).suffix.lower()
    with named(path):
        if suffix not in (".glb", ".ply"):
            raise InputError(f"a mesh is written as .glb or .ply, and this ends in {suffix!r}.")
        mesh = mesh_of(depth_map)
    content = encode_glb(mesh) if suffix == ".glb" else encode_ply(mesh)
    write_bytes(path, content, overwrite=overwrite)
    return mesh


def _triangles(number: NDArray[np.int64], disparity_px: Image) -> NDArray[np.uint32]:
    """Two triangles for each square of pixels, without those across a jump or a hole."""
    corners = [
        (slice(None, -1), slice(None, -1)),
        (slice(1, None), slice(None, -1)),
        (slice(1, None), slice(1, None)),
        (slice(None, -1), slice(1, None)),
    ]
    a, b, c, d = (number[corner] for corner in corners)
    p, q, r, s = (disparity_px[corner] for corner in corners)
    found = []
    for names, values in (((a, b, c), (p, q, r)), ((a, c, d), (p, r, s))):
        step = np.maximum.reduce(values) - np.minimum.reduce(values)
        # NaN where a corner has no depth. A diagonal has twice the room.
        use = step <= 2 * MAX_STEP_PX
        found.append(np.stack([one[use] for one in names], axis=1))
    return np.concatenate(found).astype(np.uint32)


def _texture(depth_map: DepthMap) -> NDArray[np.uint8]:
    if depth_map.colour is not None:
        return depth_map.colour
    if depth_map.intensity is None:
        return np.full((*depth_map.depth_m.shape, 3), 200, np.uint8)
    grey = for_screens(np.nan_to_num(depth_map.intensity), white=None)
    return np.repeat(grey[..., np.newaxis], 3, axis=2)


def encode_ply(mesh: DepthMesh) -> bytes:
    """PLY file of a mesh, little-endian: colour, sigma and `filled` for each vertex."""
    rows, cols = mesh.texture.shape[:2]
    place = (mesh.places * (cols, rows)).astype(np.int64)
    colour = mesh.texture[place[:, 1], place[:, 0]]
    kinds = [(name, "<f4") for name in ("x", "y", "z", "s", "t", "sigma")]
    kinds += [(name, "u1") for name in ("red", "green", "blue", "filled")]
    record = np.empty(len(mesh.vertices_m), kinds)
    columns = (*mesh.vertices_m.T, mesh.places[:, 0], 1 - mesh.places[:, 1], mesh.sigma_m)
    for (name, _), values in zip(kinds, (*columns, *colour.T, mesh.is_filled), strict=True):
        record[name] = values
    faces = np.empty(len(mesh.triangles), [("count", "u1"), ("corners", "<i4", 3)])
    faces["count"], faces["corners"] = 3, mesh.triangles
    lines = [
        "ply",
        "format binary_little_endian 1.0",
        "comment metres; x right, y down, z forward, origin at the left lens",
        f"element vertex {len(record)}",
        *(f"property {'float' if kind == '<f4' else 'uchar'} {name}" for name, kind in kinds),
        f"element face {len(faces)}",
        "property list uchar int vertex_indices",
        "end_header",
    ]
    return "\n".join(lines).encode("ascii") + b"\n" + record.tobytes() + faces.tobytes()


def encode_glb(mesh: DepthMesh) -> bytes:
    """GLB file (binary glTF 2.0) of a mesh, with its texture; filled parts have a tint."""
    parts = _Parts()
    position = mesh.vertices_m * _GLTF_AXES
    vertices = {
        "POSITION": parts.accessor(
            position.astype("<f4"),
            5126,
            "VEC3",
            {"min": position.min(axis=0).tolist(), "max": position.max(axis=0).tolist()},
        ),
        "TEXCOORD_0": parts.accessor(mesh.places.astype("<f4"), 5126, "VEC2"),
    }
    is_filled = mesh.is_filled[mesh.triangles].any(axis=1)
    primitives = []
    for material, use in enumerate((~is_filled, is_filled)):
        if use.any():
            corners = mesh.triangles[use].astype("<u4").ravel()
            indices = parts.accessor(corners, 5125, "SCALAR")
            primitives.append(
                {"attributes": vertices, "indices": indices, "material": material, "mode": 4}
            )
    if not primitives:  # single points: no triangle, and glTF wants a primitive
        primitives.append({"attributes": vertices, "material": 0, "mode": 0})
    image = parts.view(_png(mesh.texture))
    document = {
        "asset": {"version": "2.0", "generator": "d3s"},
        "extensionsUsed": ["KHR_materials_unlit"],
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0, "name": "depth"}],
        "meshes": [{"primitives": primitives}],
        "materials": [_material("measured", (1.0,) * 4), _material("filled", _FILLED_TINT)],
        "textures": [{"source": 0}],
        "images": [{"bufferView": image, "mimeType": "image/png"}],
        "accessors": parts.accessors,
        "bufferViews": parts.views,
        "buffers": [{"byteLength": len(parts.data)}],
    }
    return _container(json.dumps(document, separators=(",", ":")).encode(), bytes(parts.data))


def _material(name: str, tint: tuple[float, ...]) -> dict[str, Any]:
    return {
        "name": name,
        "doubleSided": True,
        "pbrMetallicRoughness": {
            "baseColorTexture": {"index": 0},
            "baseColorFactor": list(tint),
            "metallicFactor": 0.0,
        },
        "extensions": {"KHR_materials_unlit": {}},
    }


class _Parts:
    """Binary part of a GLB file, as it grows."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.views: list[dict[str, int]] = []
        self.accessors: list[dict[str, Any]] = []

    def view(self, raw: bytes) -> int:
        """Append bytes, from a multiple of four on; return the number of their view."""
        self.data += b"\0" * (-len(self.data) % 4)
        self.views.append({"buffer": 0, "byteOffset": len(self.data), "byteLength": len(raw)})
        self.data += raw
        return len(self.views) - 1

    def accessor(
        self, values: NDArray[Any], kind: int, shape: str, limits: dict[str, Any] | None = None
    ) -> int:
        """Append an array of a component type and shape of glTF; return its number."""
        view = self.view(values.tobytes())
        entry = {"bufferView": view, "componentType": kind, "count": len(values), "type": shape}
        self.accessors.append(entry | (limits or {}))
        return len(self.accessors) - 1


def _png(texture: NDArray[np.uint8]) -> bytes:
    import cv2

    _, raw = cv2.imencode(".png", np.ascontiguousarray(texture[..., ::-1]))
    return raw.tobytes()


def _container(text: bytes, data: bytes) -> bytes:
    """GLB container: a header, the chunk of JSON, the chunk of binary data."""
    text += b" " * (-len(text) % 4)
    data += b"\0" * (-len(data) % 4)
    total = 12 + 8 + len(text) + 8 + len(data)
    return b"".join(
        (
            struct.pack("<4sII", b"glTF", 2, total),
            struct.pack("<I4s", len(text), b"JSON"),
            text,
            struct.pack("<I4s", len(data), b"BIN\0"),
            data,
        )
    )

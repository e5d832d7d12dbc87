"""Meshes of depth maps: a vertex for each depth, triangles between neighbours, no bridges.

Neighbours whose disparities differ by more than `MAX_STEP_PX` lie on different surfaces, and no
triangle joins them. The left view is the texture. Filled parts can be told from measured ones: by
a material of their own in GLB files, by a property of the vertices in PLY files.
"""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d3s.atomic import write_bytes
from d3s.errors import InputError, MissingPackageError
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
    places: NDArray[np.intp]  # (vertices, 2): row and column in the texture
    sigma_m: Image  # of z, (vertices,)
    is_filled: Mask  # (vertices,)
    triangles: NDArray[np.int64]  # (triangles, 3), front faces towards the camera
    texture: NDArray[np.uint8]  # (rows, cols, 3)


def is_mesh(path: Path) -> bool:
    """Whether the name of a file is that of a mesh."""
    return path.name.lower().endswith(MESH_ENDINGS)


def mesh_of(depth_map: DepthMap) -> DepthMesh:
    """Mesh of a depth map; an InputError if no pixel has a depth."""
    valid = depth_map.valid
    if not valid.any():
        raise InputError("no pixel has a depth: there is nothing to make a mesh of.")
    number = np.full(valid.shape, -1, np.int64)
    number[valid] = np.arange(valid.sum())
    is_filled = (depth_map.flags & np.uint16(Flag.FILLED)) != 0
    return DepthMesh(
        vertices_m=depth_map.points().xyz_m,
        places=np.argwhere(valid),
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


def _triangles(number: NDArray[np.int64], disparity_px: Image) -> NDArray[np.int64]:
    """Two triangles for each square of pixels, without those across a jump or a hole."""
    corners = [
        (slice(None, -1), slice(None, -1)),
        (slice(1, None), slice(None, -1)),
        (slice(1, None), slice(1, None)),
        (slice(None, -1), slice(1, None)),
    ]
    found = []
    for some in ((0, 1, 2), (0, 2, 3)):
        numbers = np.stack([number[corners[one]] for one in some], axis=-1)
        step = np.ptp([disparity_px[corners[one]] for one in some], axis=0)
        # NaN where a corner has no depth. A diagonal has twice the room.
        found.append(numbers[step <= 2 * MAX_STEP_PX])
    return np.concatenate(found)


def _texture(depth_map: DepthMap) -> NDArray[np.uint8]:
    if depth_map.colour is not None:
        return depth_map.colour
    if depth_map.intensity is None:
        return np.full((*depth_map.depth_m.shape, 3), 200, np.uint8)
    grey = for_screens(np.nan_to_num(depth_map.intensity), white=None)
    return np.repeat(grey[..., np.newaxis], 3, axis=2)


def _trimesh() -> Any:
    try:
        import trimesh
    except ImportError as error:
        raise MissingPackageError("meshes need the package trimesh", "lab") from error
    return trimesh


def encode_ply(mesh: DepthMesh) -> bytes:
    """PLY file of a mesh, little-endian: colour, sigma and `filled` for each vertex."""
    colours = mesh.texture[tuple(mesh.places.T)]
    attributes = {"sigma": mesh.sigma_m, "filled": mesh.is_filled.astype(np.uint8)}
    found = _trimesh().Trimesh(
        mesh.vertices_m,
        mesh.triangles,
        vertex_colors=colours,
        vertex_attributes=attributes,
        process=False,
    )
    return bytes(found.export(file_type="ply", vertex_normal=False))


def encode_glb(mesh: DepthMesh) -> bytes:
    """GLB file (binary glTF 2.0) of a mesh, with its texture; filled parts have a tint."""
    from PIL.Image import fromarray

    trimesh = _trimesh()
    scene, picture = trimesh.Scene(), fromarray(mesh.texture)
    rows_cols = (mesh.places + 0.5) / mesh.texture.shape[:2]
    at = np.stack([rows_cols[:, 1], 1 - rows_cols[:, 0]], axis=1)
    is_filled = mesh.is_filled[mesh.triangles].any(axis=1)
    for name, use, tint in (("measured", ~is_filled, None), ("filled", is_filled, _FILLED_TINT)):
        material = trimesh.visual.material.PBRMaterial(
            name=name,
            baseColorTexture=picture,
            baseColorFactor=tint,
            metallicFactor=0.0,
            doubleSided=True,
        )
        part = trimesh.Trimesh(
            mesh.vertices_m * _GLTF_AXES,
            mesh.triangles[use],
            visual=trimesh.visual.TextureVisuals(uv=at, material=material),
            process=False,
        )
        part.remove_unreferenced_vertices()
        if use.any():
            scene.add_geometry(part, geom_name=name)
    if not scene.geometry:  # single points: no triangle
        scene.add_geometry(trimesh.PointCloud(mesh.vertices_m * _GLTF_AXES))
    return bytes(scene.export(file_type="glb", tree_postprocessor=_show_unlit))


def _show_unlit(tree: dict[str, Any]) -> None:
    """Have viewers show the left view as it is, without lamps of their own."""
    tree["extensionsUsed"] = ["KHR_materials_unlit"]
    for material in tree.get("materials", ()):
        material["extensions"] = {"KHR_materials_unlit": {}}

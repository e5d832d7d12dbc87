"""Meshes: no triangle across a jump, filled parts marked, files that other programs read."""

import io

import numpy as np
import pytest
from typer.testing import CliRunner

import d3s
from d3s.cli import app
from d3s.errors import InputError
from d3s.lab.dense.mesh import encode_glb, encode_ply, mesh_of, write_mesh
from depth_maps import made_depth_map

RIG = d3s.Rig.paper_prototype()


@pytest.fixture
def depth_map():
    """Wall with a near square before it, a hole, and a filled part."""
    depth_m = np.full((30, 40), 1.5, np.float32)
    depth_m[10:20, 10:20] = 0.8
    depth_m[0, 0] = np.nan
    view = np.random.default_rng(0).uniform(0, 1, depth_m.shape).astype(np.float32)
    found = made_depth_map(depth_m, view=view)
    found.flags[:, 30:] |= np.uint16(d3s.Flag.FILLED)
    return found


def test_no_triangle_joins_two_surfaces(depth_map):
    mesh = mesh_of(depth_map)
    corners_m = mesh.vertices_m[mesh.triangles][:, :, 2]
    assert np.ptp(corners_m, axis=1).max() < 0.1
    squares = 29 * 39
    ring = 11 * 11 - 9 * 9  # squares across the outline of the near part
    # At two corners of it a triangle of the wall is left; the square with the hole has none.
    assert len(mesh.triangles) == 2 * squares - 2 * ring + 2 - 2


def test_vertices_are_points_of_the_depth_map(depth_map):
    mesh = mesh_of(depth_map)
    assert np.array_equal(mesh.vertices_m, depth_map.points().xyz_m)
    assert mesh.is_filled.sum() == 30 * 10


def test_triangles_face_the_camera(depth_map):
    mesh = mesh_of(depth_map)
    a, b, c = (mesh.vertices_m[mesh.triangles[:, i]].astype(float) for i in range(3))
    # Counterclockwise as the camera sees it: y is down, so the normal points at the lens.
    assert (np.cross(b - a, c - a)[:, 2] < 0).all()


def test_glb_is_read_by_another_program(depth_map):
    trimesh = pytest.importorskip("trimesh")
    mesh = mesh_of(depth_map)
    scene = trimesh.load(io.BytesIO(encode_glb(mesh)), file_type="glb")
    parts = list(scene.geometry.values())
    assert len(parts) == 2
    assert sum(len(part.faces) for part in parts) == len(mesh.triangles)
    lowest, highest = scene.bounds
    assert highest[2] == pytest.approx(-0.8, abs=1e-4)
    assert lowest[2] == pytest.approx(-1.5, abs=1e-4)


def test_ply_has_sigma_and_filled(depth_map):
    trimesh = pytest.importorskip("trimesh")
    mesh = mesh_of(depth_map)
    raw = encode_ply(mesh)
    assert b"property uchar filled" in raw[:600]
    found = trimesh.load(io.BytesIO(raw), file_type="ply", process=False)
    columns = found.metadata["_ply_raw"]["vertex"]["data"]
    assert np.array_equal(found.vertices, mesh.vertices_m)
    assert np.array_equal(columns["sigma"], mesh.sigma_m)
    assert np.array_equal(columns["filled"], mesh.is_filled)
    assert np.array_equal(found.faces, mesh.triangles)


def test_wrong_suffix_and_empty_depth_maps_are_refused(depth_map, tmp_path):
    with pytest.raises(InputError, match=r"\.glb or \.ply"):
        write_mesh(tmp_path / "mesh.obj", depth_map)
    with pytest.raises(InputError, match="nothing to make a mesh"):
        write_mesh(tmp_path / "mesh.glb", depth_map.filter(max_sigma_m=0.0))
    assert not list(tmp_path.iterdir())


def test_convert_writes_meshes(depth_map, tmp_path):
    depth_map.save(tmp_path / "depth.npz")
    files = [str(tmp_path / name) for name in ("depth.npz", "a.glb", "a_mesh.ply", "points.ply")]
    result = CliRunner().invoke(app, ["convert", *files])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "a.glb").read_bytes() == encode_glb(mesh_of(depth_map))
    assert b"element face" in (tmp_path / "a_mesh.ply").read_bytes()[:600]
    assert b"element face" not in (tmp_path / "points.ply").read_bytes()[:600]
    depth_map.save(tmp_path / "depth.tiff")
    wrong = CliRunner().invoke(
        app, ["convert", str(tmp_path / "depth.tiff"), str(tmp_path / "b.glb")]
    )
    assert wrong.exit_code == 3
    assert ".npz" in wrong.output

"""What a file is: every kind that D3S writes or reads."""

import json
import re

import cv2
import numpy as np
import pytest
import tifffile

import d3s
from calibrations import calibration
from d3s.batch.zarr_store import DepthStore
from d3s.cli.description import info
from d3s.errors import D3SError, InputError
from d3s.files import DepthImage, write_depth, write_npz

SHAPE = (20, 30)
DEPTH = np.linspace(0.5, 2, 600, dtype=np.float32).reshape(SHAPE)
DEPTH[:2] = np.nan
RIG = d3s.Rig.paper_prototype()


def depth_image(**changes: object) -> DepthImage:
    values = {"depth_m": DEPTH, "focal_length_px": 700.0, "notes": {"camera": "mine"}}
    return DepthImage(**{**values, **changes})


def said(path) -> d3s.cli.description.Info:
    found = info(path)
    json.dumps(found.as_json(), allow_nan=False)  # whatever it is
    return found


def test_image_of_a_sensor(tmp_path):
    levels = np.arange(600, dtype=np.uint16).reshape(SHAPE)
    levels[-1, -1] = 65535
    cv2.imwrite(str(tmp_path / "a.png"), levels)
    found = said(tmp_path / "a.png")
    assert found.kind == "image"
    facts = found.facts
    assert (facts["format"], facts["rows"], facts["cols"]) == ("PNG", 20, 30)
    assert (facts["channels"], facts["type"], facts["full_scale"]) == (1, "uint16", 65535)
    assert (facts["values"]["least"], facts["values"]["largest"]) == (0, 65535)
    assert facts["values"]["percentiles"]["50"] == pytest.approx(299.5)
    assert facts["share_at_full_scale"] == pytest.approx(1 / 600)
    assert sum(found.histogram["counts"]) == 600
    assert len(found.histogram["edges"]) == len(found.histogram["counts"]) + 1


def test_colour_of_any_format_and_floats(tmp_path):
    colour = np.zeros((4, 5, 3), np.uint8)
    colour[..., 0] = 200
    for suffix in (".jpg", ".ppm", ".png", ".tiff"):
        cv2.imwrite(str(tmp_path / f"a{suffix}"), colour)
        assert said(tmp_path / f"a{suffix}").facts["channels"] == 3
    tifffile.imwrite(tmp_path / "b.tiff", DEPTH)  # with a note of its own, which is JSON too
    for path in (tmp_path / "b.tiff", tmp_path / "b.npy"):
        np.save(tmp_path / "b.npy", DEPTH)
        found = said(path)
        assert found.kind == "image of floats"
        assert found.facts["values"]["known"] == pytest.approx(0.9)


@pytest.mark.parametrize("suffix", [".png", ".tiff", ".pfm", ".npy", ".exr"])
def test_depth(tmp_path, suffix):
    write_depth(tmp_path / f"a{suffix}", depth_image(), unit_m=0.0001)
    found = said(tmp_path / f"a{suffix}")
    assert found.kind == "depth"
    assert found.facts["density"] == pytest.approx(0.9)
    assert found.facts["depth_m"]["largest"] == pytest.approx(2)
    assert found.facts["focal_length_px"] == 700
    assert found.facts.get("unit_m") == (0.0001 if suffix == ".png" else None)
    assert found.facts.get("camera") == (None if suffix in (".pfm", ".npy") else "mine")
    assert found.histogram["of"] == "depth_m"
    assert sum(found.histogram["counts"]) == 540


def test_points(tmp_path):
    write_depth(tmp_path / "a.ply", depth_image(confidence=np.ones(SHAPE, np.float32)))
    found = said(tmp_path / "a.ply")
    assert found.kind == "points"
    assert found.facts["points"] == 540
    assert found.facts["confidence"]["least"] == 1
    write_depth(tmp_path / "a.csv", depth_image())
    assert said(tmp_path / "a.csv").facts == {"columns": ["x_m", "y_m", "z_m"], "rows": 540}


def test_depth_map(tmp_path):
    known = np.isfinite(DEPTH)
    d3s.DepthMap(
        depth_m=DEPTH,
        sigma_m=np.where(known, np.float32(0.01), np.float32(np.nan)),
        confidence=known.astype(np.float32),
        flags=np.where(known, 0, d3s.Flag.BORDER).astype(np.uint16),
        rig=RIG,
        method="joint",
        options=d3s.JointOptions(depth_range_m=(0.4, 3.0)),
        warnings=("dark",),
        timings_s={"all": 0.5},
    ).save(tmp_path / "a.npz")
    found = said(tmp_path / "a.npz")
    assert found.kind == "depth map"
    facts = found.facts
    assert (facts["method"], facts["warnings"], facts["timings_s"]) == (
        "joint",
        ["dark"],
        {"all": 0.5},
    )
    assert facts["options"]["depth_range_m"] == (0.4, 3.0)
    assert facts["flags"] == {"BORDER": pytest.approx(0.1)}
    assert facts["sigma_m"]["percentiles"]["50"] == pytest.approx(0.01)
    assert facts["rig"]["baseline_m"] == 3.84e-3
    assert facts["has_intensity"] is False


def test_arrays(tmp_path):
    write_npz(
        tmp_path / "a.npz",
        depth_m=DEPTH,
        occluded=np.zeros(SHAPE, bool),
        scale=np.array(1.5),
        words=np.array("a"),
        nothing=np.zeros((0, 3)),
        holes=np.full(3, np.nan),
        huge=np.array([-1e308, 1e308]),
    )
    found = said(tmp_path / "a.npz")
    assert found.kind == "arrays"
    assert found.facts["arrays"]["scale"]["value"] == 1.5
    assert found.facts["arrays"]["nothing"] == {"shape": [0, 3], "type": "float64", "known": 0.0}
    assert found.histogram["of"] == "depth_m"


def test_rigs(tmp_path):
    RIG.replace(calibration=calibration(frame_rows_px=120, frame_cols_px=260)).save(
        tmp_path / "rig.toml"
    )
    found = said(tmp_path / "rig.toml")
    assert found.kind == "rig"
    assert found.facts["calibrated"] is True
    assert found.facts["views_px"] == [61, 81]
    assert found.facts["frame_px"] == [120, 260]
    d3s.Rig.from_pinhole(focal_length_px=500, baseline_m=0.1).save(tmp_path / "pair.toml")
    assert said(tmp_path / "pair.toml").facts["f_number"] is None
    d3s.Rig.from_pinhole(
        focal_length_px=500, baseline_m=0.1, principal_point_px=(39.5, 31.0), shape=(60, 80)
    ).save(tmp_path / "stereo.toml")
    told = said(tmp_path / "stereo.toml").facts
    assert told["principal_point_px"] == [39.5, 31.0]
    assert (told["views_px"], told["pictures"]) == ([60, 80], "rectified")


def test_recipes_and_folders(tmp_path):
    from d3s.lab.twin.folder import render_folder
    from d3s.lab.twin.recipe import Recipe

    recipe = Recipe(scene=d3s.Plane(depth_m=1.0), rig=RIG, shape=(40, 60), distances_m=(0.5, 1.0))
    render_folder(recipe, tmp_path / "sim")
    found = said(tmp_path / "sim")
    assert found.kind == "simulated folder"
    assert found.facts["files"] == {".csv": 1, ".npz": 2, ".png": 4, ".toml": 1}
    assert found.facts["distances"] == 2
    assert found.facts["recipe"]["frames"] == 2
    assert said(tmp_path / "sim" / "recipe.toml").kind == "recipe"
    assert said(tmp_path).kind == "folder"


def test_what_is_not_known_or_damaged_is_named(tmp_path):
    (tmp_path / "a.txt").write_text("words")
    with pytest.raises(InputError, match=r"a\.txt: is none of the files that D3S knows.*\.toml"):
        info(tmp_path / "a.txt")
    with pytest.raises(InputError, match="there is no such file"):
        info(tmp_path / "none")
    (tmp_path / "a.toml").write_text("[optics]\nbaseline_m = 'wide'\n")
    with pytest.raises(D3SError, match=r"a\.toml"):
        info(tmp_path / "a.toml")
    write_depth(tmp_path / "a.tiff", depth_image())
    content = (tmp_path / "a.tiff").read_bytes()
    for size in range(1, len(content), 97):
        (tmp_path / "a.tiff").write_bytes(content[:size])
        with pytest.raises(InputError, match=re.escape("a.tiff: ")):
            info(tmp_path / "a.tiff")


def test_zarr(tmp_path):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(tmp_path / "pairs.zarr", mode="w", zarr_format=3)
    for side in ("left", "right"):
        group.create_array(side, data=np.zeros((2, 4, 5), np.uint16))
    found = info(tmp_path / "pairs.zarr")
    assert found.kind == "Zarr arrays"
    assert found.facts == {"left": "uint16 2 x 4 x 5", "right": "uint16 2 x 4 x 5"}
    est = d3s.DepthMap(
        depth_m=DEPTH,
        sigma_m=DEPTH / 100,
        confidence=np.ones_like(DEPTH),
        flags=np.zeros(SHAPE, np.uint16),
        rig=RIG,
        method="joint",
        options=d3s.JointOptions(),
    )
    store = DepthStore(tmp_path / "depth.zarr")
    told = {"rig": RIG.model_dump(mode="json"), "method": "joint", "options": {}}
    store.create(["a", "b"], SHAPE, told)
    store.write(1, est)
    found = info(store.path)
    assert found.kind == "depth maps of many frames"
    assert found.facts["frames"] == 2
    assert found.facts["frames_that_are_whole"] == 1
    assert found.facts["depth_m"] == "float32 2 x 20 x 30"
    assert found.facts["rig"] == "paper prototype"
    (store.path / "zarr.json").write_text("{")
    with pytest.raises(InputError, match=r"its zarr\.json cannot be read"):
        info(store.path)

"""Files of depth: what other programs read in them, and what comes back."""

import importlib.util
import json
import struct

import cv2
import numpy as np
import pytest
from PIL import Image

from d3s.errors import InputError, OutputError
from d3s.files import write_npz
from d3s.files.depth_files import FORMATS, read_depth, write_depth
from d3s.files.depth_image import DepthImage, Points
from d3s.files.depth_png import fitting_unit_m

RNG = np.random.default_rng(3)
SHAPE = (12, 17)
DEPTH = RNG.uniform(0.3, 2.5, SHAPE).astype(np.float32)
DEPTH[2:4, 5:9] = np.nan
NOTES = {"camera": "mine, größer", "method": "joint", "d3s_version": "0.1"}
FOCAL_PX = 800.5


def made(**changes: object) -> DepthImage:
    layers = {name: RNG.random(SHAPE).astype(np.float32) for name in ("sigma_m", "confidence")}
    light = RNG.random(SHAPE).astype(np.float32)
    values = {"depth_m": DEPTH, "intensity": light, "focal_length_px": FOCAL_PX, "notes": NOTES}
    return DepthImage(**{**values, **layers, **changes})


@pytest.mark.parametrize("suffix", [".tiff", ".tif", ".pfm", ".npy", ".exr"])
def test_floats_come_back_to_the_last_bit(tmp_path, suffix):
    path, image = tmp_path / f"a{suffix}", made()
    write_depth(path, image)
    found = read_depth(path)
    np.testing.assert_array_equal(found.depth_m, DEPTH)
    assert found.depth_m.dtype == np.float32
    assert found.focal_length_px == FOCAL_PX
    np.testing.assert_array_equal(found.intrinsics, [[800.5, 0, 8], [0, 800.5, 5.5], [0, 0, 1]])
    assert found.layers == FORMATS[suffix].layers
    for name in found.layers:
        np.testing.assert_array_equal(getattr(found, name), getattr(image, name))
    if suffix in (".tiff", ".tif", ".exr"):
        assert found.notes == NOTES


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_same_depth_gives_the_same_bytes(tmp_path, suffix):
    image = made()
    for name in ("a", "b"):
        write_depth(tmp_path / f"{name}{suffix}", image)
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


@pytest.mark.parametrize("unit_m", [0.001, 0.0001, 0.00025])
def test_png_has_whole_units_and_says_which(tmp_path, unit_m):
    path = tmp_path / "a.png"
    write_depth(path, made(), unit_m=unit_m)
    levels = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    assert levels.dtype == np.uint16
    np.testing.assert_array_equal(levels == 0, np.isnan(DEPTH))
    known = np.isfinite(DEPTH)
    assert np.abs(levels[known] * unit_m - DEPTH[known]).max() <= 0.5001 * unit_m
    with Image.open(path) as opened:
        told = json.loads(opened.text["d3s"])
    assert told == {
        "d3s": 1,
        "unit": "m",
        **NOTES,
        "depth_unit_m": unit_m,
        "focal_length_px": FOCAL_PX,
        "principal_point_px": [8.0, 5.5],
    }
    found = read_depth(path)
    np.testing.assert_array_equal(found.depth_m[known], (levels[known] * unit_m).astype(np.float32))
    assert np.isnan(found.depth_m[~known]).all()
    assert (found.focal_length_px, found.notes) == (FOCAL_PX, NOTES)


def test_png_holds_its_whole_range_and_nothing_beyond(tmp_path):
    ends = np.array([[0.001, 65.535]], np.float32)
    write_depth(tmp_path / "a.png", DepthImage(depth_m=ends))
    levels = cv2.imread(str(tmp_path / "a.png"), cv2.IMREAD_UNCHANGED)
    np.testing.assert_array_equal(levels, [[1, 65535]])
    for depth_m, unit_m, words in (
        (65.6, 0.001, r"65\.6 m does not fit .* end at 65\.535 m.*larger unit.*\.tiff"),
        (7.0, 0.0001, r"7 m does not fit .* 0\.1 mm each, which end at 6\.5535 m"),
        (0.0004, 0.001, r"0\.0004 m is less than half of the unit.*smaller unit"),
    ):
        image = DepthImage(depth_m=np.array([[1.0, depth_m, np.nan]], np.float32))
        with pytest.raises(InputError, match=words):
            write_depth(tmp_path / "b.png", image, unit_m=unit_m)
    assert not (tmp_path / "b.png").exists()


def test_png_of_others_needs_its_unit(tmp_path):
    path = tmp_path / "a.png"
    cv2.imwrite(str(path), np.array([[0, 1500]], np.uint16))
    with pytest.raises(InputError, match=r"a\.png: does not say what unit.*--input-unit 1mm"):
        read_depth(path)
    np.testing.assert_array_equal(
        read_depth(path, unit_m=0.001).depth_m, np.float32([[np.nan, 1.5]])
    )
    cv2.imwrite(str(path), np.array([[0, 15]], np.uint8))
    with pytest.raises(InputError, match="not of depths: those are grey and have 16 bit"):
        read_depth(path, unit_m=0.001)


def test_openexr_reads_the_layers(tmp_path):
    openexr = pytest.importorskip("OpenEXR")
    image = made()
    write_depth(tmp_path / "a.exr", image)
    with openexr.File(str(tmp_path / "a.exr"), separate_channels=True) as file:
        channels = {name: channel.pixels for name, channel in file.channels().items()}
        told = json.loads(file.header()["d3s"])
    assert sorted(channels) == ["Y", "Z", "confidence", "sigma"]
    np.testing.assert_array_equal(channels["Z"], DEPTH)
    np.testing.assert_array_equal(channels["Y"], image.intensity)
    np.testing.assert_array_equal(channels["sigma"], image.sigma_m)
    np.testing.assert_array_equal(channels["confidence"], image.confidence)
    assert told["principal_point_px"] == [8.0, 5.5]


def test_exr_that_is_not_read_says_how_to_save_it(tmp_path):
    openexr = pytest.importorskip("OpenEXR")
    path = tmp_path / "a.exr"
    with openexr.File({}, {"RGB": np.stack([DEPTH] * 3, axis=2)}) as file:
        file.write(str(path))
    with pytest.raises(InputError, match="has the channels B, G, R, and depth is in Z"):
        read_depth(path)
    parts = [openexr.Part({}, {"Z": DEPTH}, name) for name in ("a", "b")]
    with openexr.File(parts) as file:
        file.write(str(path))
    with pytest.raises(InputError, match=r"a\.exr: is an OpenEXR file of several parts.*one part"):
        read_depth(path)


def test_missing_openexr_is_told_with_the_command(tmp_path, monkeypatch):
    write_depth(tmp_path / "a.exr", made())
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    words = r"\.exr: .*needs the package OpenEXR.*\.tiff.*pip install .*\[exr\]'"
    with pytest.raises(InputError, match="a" + words):
        read_depth(tmp_path / "a.exr")
    with pytest.raises(InputError, match="b" + words):
        write_depth(tmp_path / "b.exr", made())
    assert not (tmp_path / "b.exr").exists()


def test_ply_as_another_program_would_parse_it(tmp_path):
    image = made()
    write_depth(tmp_path / "a.ply", image)
    content = (tmp_path / "a.ply").read_bytes()
    header, body = content.split(b"end_header\n", 1)
    lines = header.decode("ascii").splitlines()
    assert lines[:2] == ["ply", "format binary_little_endian 1.0"]
    assert f"element vertex {np.isfinite(DEPTH).sum()}" in lines
    names = [line.split()[1:] for line in lines if line.startswith("property")]
    letters = "".join({"float": "f", "uchar": "B"}[kind] for kind, _ in names)
    rows = list(struct.iter_unpack("<" + letters, body))
    assert [name for _, name in names][:3] == ["x", "y", "z"]
    first = dict(zip([name for _, name in names], rows[0], strict=True))
    assert first["z"] == DEPTH[0, 0]
    assert first["x"] == pytest.approx(-8 / FOCAL_PX * DEPTH[0, 0])  # left of the axis
    assert first["y"] == pytest.approx(-5.5 / FOCAL_PX * DEPTH[0, 0])  # above it
    assert first["intensity"] == image.intensity[0, 0]
    assert first["confidence"] == image.confidence[0, 0]
    assert first["sigma"] == image.sigma_m[0, 0]
    assert first["red"] == first["green"] == first["blue"]
    white = np.percentile(image.intensity[np.isfinite(DEPTH)], 99.5)
    linear = (first["red"] / 255 + 0.055) / 1.055
    assert linear**2.4 == pytest.approx(image.intensity[0, 0] / white, abs=0.01)
    assert len(rows) == np.isfinite(DEPTH).sum()


@pytest.mark.parametrize("order", ["little", "big"])
def test_ply_of_others_in_either_byte_order(tmp_path, order):
    mark = {"little": "<", "big": ">"}[order]
    header = (
        f"ply\r\nformat binary_{order}_endian 1.0\r\ncomment by hand\r\nelement vertex 2\r\n"
        "property double z\r\nproperty uchar red\r\nproperty float32 x\r\nproperty short y\r\n"
        "end_header\r\n"
    )
    body = struct.pack(mark + "dBfh", 1.5, 7, 0.25, -3) + struct.pack(mark + "dBfh", 2.5, 8, 1, 4)
    path = tmp_path / "a.ply"
    path.write_bytes(header.encode() + body)
    points = read_depth(path)
    assert isinstance(points, Points)
    np.testing.assert_array_equal(points.z_m, [1.5, 2.5])
    np.testing.assert_array_equal(points.x_m, [0.25, 1])
    np.testing.assert_array_equal(points.y_m, [-3, 4])
    assert list(points.columns) == ["x_m", "y_m", "z_m"]


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("ply\nformat ascii 1.0\nelement vertex 0\n", "of format ascii.*Save it as binary"),
        (
            "ply\nformat binary_little_endian 1.0\nelement vertex 9999999999\n",
            "declares 9999999999",
        ),
        ("ply\nformat binary_little_endian 1.0\nelement face 3\n", "of face, and one of vertices"),
        (
            "ply\nformat binary_little_endian 1.0\nelement vertex 3\nproperty list uchar int x\n",
            "no plain numbers",
        ),
        ("ply\nformat binary_little_endian 1.0\nelement vertex 3\nproperty int x\n", "x, y and z"),
        ("ply\nelement vertex 3\n", "no proper PLY header"),
    ],
)
def test_ply_that_is_not_read_says_why(tmp_path, header, words):
    path = tmp_path / "a.ply"
    path.write_bytes(header.encode() + b"end_header\n")
    with pytest.raises(InputError, match=rf"a\.ply: .*{words}"):
        read_depth(path)


def test_points_become_points_only(tmp_path):
    write_depth(tmp_path / "a.ply", made())
    points = read_depth(tmp_path / "a.ply")
    write_depth(tmp_path / "b.ply", points)
    assert (tmp_path / "a.ply").read_bytes() == (tmp_path / "b.ply").read_bytes()
    write_depth(tmp_path / "b.csv", points)
    with pytest.raises(
        InputError, match=r"b\.png: points have lost the image.*Begin with the \.npz"
    ):
        write_depth(tmp_path / "b.png", points)
    with pytest.raises(InputError, match=r"depth is written as .*ends in \.xyz"):
        write_depth(tmp_path / "b.xyz", points)


def test_csv_has_a_line_a_point(tmp_path):
    image = made(confidence=None)
    write_depth(tmp_path / "a.csv", image)
    table = np.genfromtxt(tmp_path / "a.csv", delimiter=",", names=True)
    assert table.dtype.names == ("x_m", "y_m", "z_m", "sigma_m", "intensity")
    known = np.isfinite(DEPTH)
    np.testing.assert_allclose(table["z_m"], DEPTH[known], rtol=1e-6)
    np.testing.assert_allclose(table["intensity"], image.intensity[known], rtol=1e-6)
    y, x = np.nonzero(known)
    np.testing.assert_allclose(table["x_m"], (x - 8) / FOCAL_PX * DEPTH[known], rtol=1e-5)
    np.testing.assert_allclose(table["y_m"], (y - 5.5) / FOCAL_PX * DEPTH[known], rtol=1e-5)


def test_camera_lies_beside_formats_without_room_for_it(tmp_path):
    for suffix in (".png", ".pfm", ".npy"):
        written = write_depth(tmp_path / f"a{suffix}", made())
        assert [path.name for path in written] == [f"a{suffix}", "a.camera.json"]
    camera = json.loads((tmp_path / "a.camera.json").read_text())
    assert camera == {
        "width": 17,
        "height": 12,
        "intrinsic_matrix": [800.5, 0, 0, 0, 800.5, 0, 8, 5.5, 1],  # column by column
    }
    assert read_depth(tmp_path / "a.pfm").focal_length_px == FOCAL_PX
    (tmp_path / "a.camera.json").unlink()
    assert read_depth(tmp_path / "a.pfm").focal_length_px is None
    assert len(write_depth(tmp_path / "b.pfm", made(focal_length_px=None))) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not a camera file"),
        ("[" * 50_000, "is not a camera file"),
        ('{"width": 17, "height": 12, "intrinsic_matrix": [1, 2]}', "is not a camera file"),
        ('{"width": 9, "height": 12, "intrinsic_matrix": [1,0,0,0,1,0,4,5.5,1]}', "12 x 9 px"),
        ('{"width": 17, "height": 12, "intrinsic_matrix": [1,0,0,0,2,0,8,5.5,1]}', "none of ours"),
        ('{"width": 17, "height": 12, "intrinsic_matrix": [1,0,0,0,1,0,9,1e99,1]}', "none of ours"),
        ('{"width":17,"height":12,"intrinsic_matrix":[NaN,0,0,0,1,0,8,5.5,1]}', "none of ours"),
    ],
)
def test_wrong_camera_beside_a_file_is_named(tmp_path, text, words):
    write_depth(tmp_path / "a.pfm", made(focal_length_px=None))
    (tmp_path / "a.camera.json").write_text(text)
    with pytest.raises(InputError, match=rf"a\.camera\.json: .*{words}"):
        read_depth(tmp_path / "a.pfm")


def test_what_is_no_number_above_zero_is_no_depth(tmp_path):
    strange = np.array([[np.inf, -np.inf, np.nan, 0.0, -1.0, 2.0]], np.float32)
    np.save(tmp_path / "a.npy", strange)
    found = read_depth(tmp_path / "a.npy").depth_m
    np.testing.assert_array_equal(found, np.float32([[np.nan] * 5 + [2]]))
    np.save(tmp_path / "a.npy", strange.astype(np.float64) * 1e30)
    assert np.isnan(read_depth(tmp_path / "a.npy").depth_m[:, :5]).all()


def test_pictures_are_no_depth(tmp_path):
    Image.fromarray(np.zeros((4, 5), np.uint8)).save(tmp_path / "a.tiff")
    with pytest.raises(InputError, match=r"a\.tiff: has values of type uint8.*Is it a picture"):
        read_depth(tmp_path / "a.tiff")
    cv2.imwrite(str(tmp_path / "a.pfm"), np.zeros((4, 5, 3), np.float32))
    with pytest.raises(InputError, match="has colours, and depths have none"):
        read_depth(tmp_path / "a.pfm")
    Image.fromarray(np.zeros((4, 5), np.uint8)).save(tmp_path / "a.jpg")
    with pytest.raises(InputError, match="does not begin like a file of depth"):
        read_depth(tmp_path / "a.jpg")


def test_npz_of_the_truth_is_depth_too(tmp_path):
    write_npz(tmp_path / "a.npz", depth_m=DEPTH, occluded=np.zeros(SHAPE, bool))
    found = read_depth(tmp_path / "a.npz")
    np.testing.assert_array_equal(found.depth_m, DEPTH)
    assert found.layers == ()
    write_npz(tmp_path / "b.npz", depth=DEPTH)
    with pytest.raises(InputError, match=r"b\.npz: has the arrays depth, and no depth_m"):
        read_depth(tmp_path / "b.npz")
    write_npz(tmp_path / "c.npz", depth_m=DEPTH, sigma_m=DEPTH[1:])
    with pytest.raises(InputError, match=r"sigma_m has shape \(11, 17\) and depth \(12, 17\)"):
        read_depth(tmp_path / "c.npz")


@pytest.mark.parametrize("suffix", FORMATS)
def test_nothing_of_the_user_is_replaced(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_text("of mine")
    with pytest.raises(OutputError, match="exists and holds something else"):
        write_depth(path, made())
    assert path.read_text() == "of mine"
    write_depth(path, made(), overwrite=True)
    assert path.stat().st_size > 100
    camera = tmp_path / "b.camera.json"
    camera.write_text("of mine")
    if not FORMATS[suffix].has_camera_inside:
        with pytest.raises(OutputError, match=r"b\.camera\.json exists"):
            write_depth(tmp_path / f"b{suffix}", made())
        assert not (tmp_path / f"b{suffix}").exists()


@pytest.mark.parametrize(
    ("ends_m", "unit_m"),
    [
        ((0.5, 65.535), 0.001),
        ((0.5, 65.54), 0.002),
        ((0.5, 200.0), 0.005),
        ((2.0, 5000.0), 0.1),
        ((1e-4, 2.0), 1e-4),
        ((1e-4, 50.0), None),
    ],
)
def test_unit_that_fits(ends_m, unit_m):
    assert fitting_unit_m(np.float32([[*ends_m, np.nan]])) == unit_m
    assert fitting_unit_m(np.full((2, 2), np.nan, np.float32)) == 0.001


@pytest.mark.parametrize("suffix", [".png", ".tiff", ".pfm", ".npy", ".exr"])
def test_principal_point_comes_back(tmp_path, suffix):
    if suffix == ".exr":
        pytest.importorskip("OpenEXR")
    image = made(principal_point_px=(3.25, 4.5))
    write_depth(tmp_path / f"a{suffix}", image)
    again = read_depth(tmp_path / f"a{suffix}")
    assert again.principal_point_px == (3.25, 4.5)
    assert again.intrinsics == pytest.approx(image.intrinsics)

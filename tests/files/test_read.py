"""Images of every format as other programs write them."""

import cv2
import numpy as np
import pytest
import tifffile
from PIL import Image, ImageOps

from d3s.errors import InputError
from d3s.files import IMAGE_SUFFIXES, list_images, read_image
from pngs import png_file

RNG = np.random.default_rng(0)
GREY8 = RNG.integers(0, 256, (30, 41), dtype=np.uint8)
GREY16 = RNG.integers(0, 65536, (30, 41), dtype=np.uint16)
SOFT16 = cv2.GaussianBlur(GREY16, (0, 0), 3)  # compresses
COLOUR8 = RNG.integers(0, 256, (30, 41, 3), dtype=np.uint8)
FLOAT = RNG.normal(size=(30, 41)).astype(np.float32)


def grey(colour: np.ndarray) -> np.ndarray:
    """Rec. 709 luminance, written out."""
    red, green, blue = (colour[..., i].astype(float) for i in range(3))
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue).astype(np.float32)


def expected(array: np.ndarray) -> np.ndarray:
    scaled = array if array.dtype.kind == "f" else array / np.iinfo(array.dtype).max
    return scaled.astype(np.float32) if array.ndim == 2 else grey(scaled)


def check(path, array: np.ndarray) -> None:
    image = read_image(path)
    assert image.dtype == np.float32
    assert image.flags.writeable
    np.testing.assert_allclose(image, expected(array), rtol=0, atol=6e-8)


@pytest.mark.parametrize("array", [GREY8, GREY16, SOFT16], ids=["8", "16", "soft"])
@pytest.mark.parametrize("suffix", [".png", ".tif", ".pgm"])
def test_grey_integers_of_opencv(tmp_path, suffix, array):
    cv2.imwrite(str(tmp_path / f"a{suffix}"), array)
    check(tmp_path / f"a{suffix}", array)


@pytest.mark.parametrize("suffix", [".png", ".tif", ".ppm"])
def test_colour_becomes_grey_by_rec709(tmp_path, suffix):
    primaries = np.eye(3, dtype=np.uint8)[np.newaxis] * 255
    Image.fromarray(primaries).save(tmp_path / f"a{suffix}")
    np.testing.assert_allclose(
        read_image(tmp_path / f"a{suffix}"), [[0.2126, 0.7152, 0.0722]], rtol=1e-7
    )
    Image.fromarray(COLOUR8).save(tmp_path / f"b{suffix}")
    check(tmp_path / f"b{suffix}", COLOUR8)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_every_mode_of_png_and_transparency_is_ignored(tmp_path, mode):
    picture = Image.fromarray(COLOUR8).convert(mode)
    if "A" in mode:
        picture.putalpha(Image.fromarray(GREY8))
    picture.save(tmp_path / "a.png")
    opaque = picture.convert({"LA": "L", "RGBA": "RGB"}.get(mode, mode)).convert("RGB")
    check(tmp_path / "a.png", np.asarray(opaque))


@pytest.mark.parametrize("array", [GREY8, GREY16, SOFT16, FLOAT], ids=["8", "16", "soft", "float"])
@pytest.mark.parametrize(
    "options",
    [
        {"byteorder": ">"},
        {"bigtiff": True},
        {"rowsperstrip": 7},
        {"tile": (16, 32)},
        {"compression": "zlib"},
        {"compression": "zlib", "tile": (16, 32), "byteorder": ">"},
    ],
    ids=str,
)
def test_tiff_of_tifffile(tmp_path, array, options):
    tifffile.imwrite(tmp_path / "a.tif", array, **options)
    check(tmp_path / "a.tif", array)


@pytest.mark.parametrize("array", [GREY8, GREY16, SOFT16, COLOUR8], ids=["8", "16", "soft", "rgb"])
@pytest.mark.parametrize("compression", ["raw", "tiff_lzw", "tiff_adobe_deflate", "packbits"])
def test_tiff_of_pillow(tmp_path, array, compression):
    Image.fromarray(array).save(tmp_path / "a.tif", compression=compression)
    check(tmp_path / "a.tif", array)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"progressive": True, "quality": 97, "restart_marker_rows": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("array", [GREY8, COLOUR8, cv2.GaussianBlur(COLOUR8, (0, 0), 2)], ids=len)
def test_jpeg_of_every_common_kind(tmp_path, options, array):
    Image.fromarray(array).save(tmp_path / "a.jpg", **options)
    decoded = cv2.imread(str(tmp_path / "a.jpg"), cv2.IMREAD_UNCHANGED)  # another program
    decoded = decoded if array.ndim == 2 else decoded[..., ::-1]
    np.testing.assert_allclose(read_image(tmp_path / "a.jpg"), expected(decoded), atol=1.1 / 255)


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".tif", ".webp"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_turned_upright_as_pillow_turns_them(tmp_path, suffix, orientation):
    path = tmp_path / f"a{suffix}"
    picture = Image.fromarray(cv2.GaussianBlur(COLOUR8, (0, 0), 2))
    notes = picture.getexif()
    notes[0x0112] = orientation
    picture.save(path, exif=notes)
    with Image.open(path) as opened:
        turned = np.asarray(ImageOps.exif_transpose(opened).convert("RGB"))
    np.testing.assert_allclose(read_image(path), expected(turned), atol=1.1 / 255)


@pytest.mark.parametrize("kind", ["BMP", "WEBP"])
@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "RGBA"])
def test_bmp_and_webp_of_every_mode(tmp_path, kind, mode):
    if kind == "WEBP" and mode in "1P":
        pytest.skip("WebP has no such mode")
    picture = Image.fromarray(COLOUR8).convert(mode)
    picture.save(tmp_path / "a", kind, **({"lossless": True} if kind == "WEBP" else {}))
    check(tmp_path / "a", np.asarray(picture.convert("RGB")))


@pytest.mark.parametrize("channels", [2, 3, 4])
def test_16_bit_colour_of_png_keeps_all_bits(tmp_path, channels):
    """Pillow gives 8 bits of it without a word."""
    colour = RNG.integers(0, 65536, (30, 41, channels), dtype=np.uint16)
    kind = {2: 4, 3: 2, 4: 6}[channels]
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in colour)
    (tmp_path / "a.png").write_bytes(png_file(41, 30, 16, kind, rows))
    check(tmp_path / "a.png", colour[..., 0] if channels == 2 else colour[..., :3])


def test_maxval_of_a_pgm_is_full_scale(tmp_path):
    path = tmp_path / "a.pgm"
    path.write_bytes(b"P5\n# 12 bit\n3 1\n4095\n" + np.array([0, 2048, 4095], ">u2").tobytes())
    assert read_image(path).tolist() == [[0, np.float32(2048 / 4095), 1]]
    path.write_bytes(b"P5 2 1 100 " + bytes([100, 50]))
    assert read_image(path).tolist() == [[1, 0.5]]


def test_curve_of_srgb_is_undone_on_demand(tmp_path):
    path = tmp_path / "a.png"
    cv2.imwrite(str(path), np.array([[0, 10, 128, 255]], np.uint8))
    # 10/255/12.92, and ((128/255 + 0.055)/1.055)^2.4, worked by hand.
    np.testing.assert_allclose(
        read_image(path, linear=False), [[0, 0.00303527, 0.21586050, 1]], rtol=1e-6
    )
    assert read_image(path)[0, 2] == np.float32(128 / 255)
    # Before the mixing to grey: full red is 0.2126 either way, half red is not.
    Image.fromarray(np.array([[[255, 0, 0], [128, 0, 0]]], np.uint8)).save(path)
    np.testing.assert_allclose(
        read_image(path, linear=False), [[0.2126, 0.2126 * 0.21586050]], rtol=1e-6
    )
    np.save(tmp_path / "a.npy", FLOAT)
    assert np.array_equal(read_image(tmp_path / "a.npy", linear=False), FLOAT)


@pytest.mark.parametrize("dtype", ["u1", "<u2", ">u2", "<f4", ">f4", "<f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_of_every_kind(tmp_path, dtype, order):
    array = np.asarray(RNG.integers(0, 200, (5, 7)), dtype, order=order)
    np.save(tmp_path / "a.npy", array)
    check(tmp_path / "a.npy", array)


def test_pfm_is_upright_in_either_byte_order(tmp_path):
    path = tmp_path / "a.pfm"
    top_down = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    for scale, order in (("-1", "<f4"), ("1.0", ">f4"), ("-0.003922", "<f4")):
        path.write_bytes(f"Pf\n2 3\n{scale}\n".encode() + top_down[::-1].astype(order).tobytes())
        assert np.array_equal(read_image(path), top_down)
    path.write_bytes(b"PF\n1 1\n-1\n" + np.array([1, 0, 0], "<f4").tobytes())
    np.testing.assert_allclose(read_image(path), [[0.2126]], rtol=1e-6)


def test_holes_are_counted_or_allowed(tmp_path):
    holes = FLOAT.copy()
    holes[0, :3] = np.nan, np.inf, -np.inf
    np.save(tmp_path / "a.npy", holes)
    with pytest.raises(InputError, match=r"a\.npy: 3 of 1230 values are NaN or .*allow_nan=True"):
        read_image(tmp_path / "a.npy")
    assert np.array_equal(read_image(tmp_path / "a.npy", allow_nan=True), holes, equal_nan=True)


def test_list_is_sorted_and_has_images_only(tmp_path):
    for name in ("b.png", "a.TIF", "c.txt", ".hidden.png", "10.npy", "9.npy"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "folder.png").mkdir()
    (tmp_path / "folder.png" / "below.png").write_bytes(b"x")
    names = [path.name for path in list_images(tmp_path)]
    assert names == ["10.npy", "9.npy", "a.TIF", "b.png"]
    assert {".png", ".tif", ".tiff", ".pgm", ".jpg", ".npy", ".pfm"} <= set(IMAGE_SUFFIXES)

"""Cut, damaged and boastful files of depth: only a refusal in words or a whole result comes out."""

import importlib.util
import struct
import tracemalloc
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import d3s
from d3s.errors import InputError
from d3s.files.depth_files import read_depth, write_depth
from d3s.files.depth_image import DepthImage, Points

SHAPE = (21, 35)
SUFFIXES = (".png", ".tiff", ".pfm", ".npy", ".exr", ".ply", ".npz")
MUTATIONS = 500
SIDE = 60_000  # 3.6 gigapixels


@pytest.fixture(params=SUFFIXES)
def suffix(request) -> str:
    return request.param


def _content(suffix: str, tmp_path) -> bytes:
    rng = np.random.default_rng(4)
    smooth = (1 + 0.01 * np.cumsum(rng.normal(size=SHAPE), axis=1)).astype(np.float32)
    light = rng.integers(0, 50, SHAPE).astype(np.float32) / 50
    path = tmp_path / f"good{suffix}"
    if suffix == ".npz":
        d3s.DepthMap(
            depth_m=smooth,
            sigma_m=light,
            confidence=light,
            flags=np.zeros(SHAPE, np.uint16),
            rig=d3s.Rig.paper_prototype(),
            method="joint",
            options=d3s.JointOptions(),
            intensity=light,
        ).save(path)
    else:
        image = DepthImage(
            depth_m=smooth, sigma_m=light, confidence=light, intensity=light, focal_length_px=800.0
        )
        write_depth(path, image)
    content = path.read_bytes()
    path.with_suffix(".camera.json").unlink(missing_ok=True)
    return content


@pytest.fixture
def good(suffix, tmp_path) -> bytes:
    return _content(suffix, tmp_path)


def _installed(*suffixes: str) -> list[str]:
    """Suffixes without that of OpenEXR, where only the core is installed."""
    return [one for one in suffixes if one != ".exr" or importlib.util.find_spec("OpenEXR")]


def _readers(suffix: str):
    return (read_depth, d3s.DepthMap.load) if suffix == ".npz" else (read_depth,)


def test_no_cut_file_is_taken_for_whole(tmp_path, good, suffix):
    path = tmp_path / "cut"
    size = len(good)
    for cut in sorted({*np.linspace(0, size - 1, 64).astype(int), *range(size - 8, size)}):
        path.write_bytes(good[:cut])
        for reader in _readers(suffix):
            with pytest.raises(InputError, match="cut: "):
                reader(path)


def test_damage_is_refused_or_leaves_a_whole_result(tmp_path, good, suffix):
    path = tmp_path / "damaged"
    rng = np.random.default_rng(len(good))
    for _ in range(MUTATIONS):
        changed = bytearray(good)
        # Half of the damage in the header, where it matters most.
        for reach in rng.choice([len(good), min(600, len(good))], rng.integers(1, 5)):
            changed[rng.integers(reach)] = rng.integers(256)
        path.write_bytes(changed)
        for reader in _readers(suffix):
            try:
                found = reader(path)
            except InputError:
                continue
            if isinstance(found, Points):
                assert {len(values) for values in found.columns.values()} == {21 * 35}
            else:
                # EXR and PFM have no checksum on their size, but it must fit their content.
                assert found.depth_m.size == 21 * 35
                assert found.depth_m.dtype == np.float32


def exr_bomb(side: int) -> bytes:
    """A header like that of a good file, and a table of chunks that are not there."""

    def attribute(name: str, kind: str, value: bytes) -> bytes:
        return f"{name}\0{kind}\0".encode() + struct.pack("<i", len(value)) + value

    channels = b"Z\0" + struct.pack("<i4xii", 2, 1, 1) + b"\0"
    window = struct.pack("<4i", 0, 0, side - 1, side - 1)
    header = (
        b"\x76\x2f\x31\x01"
        + struct.pack("<I", 2)
        + attribute("channels", "chlist", channels)
        + attribute("compression", "compression", b"\3")
        + attribute("dataWindow", "box2i", window)
        + b"\0"
    )
    count = -(-side // 16)
    start = len(header) + 8 * count
    chunks = b"".join(struct.pack("<iI", 16 * i, 8) + bytes(8) for i in range(count))
    return header + struct.pack(f"<{count}Q", *range(start, start + 16 * count, 16)) + chunks


def ply(side: int) -> bytes:
    return (
        f"ply\nformat binary_little_endian 1.0\nelement vertex {side * side}\nproperty float x\n"
        "property float y\nproperty float z\nend_header\n"
    ).encode() + bytes(100)


@pytest.mark.parametrize("bomb", [exr_bomb, ply])
@pytest.mark.parametrize("side", [SIDE, 7_000])
def test_declared_size_is_not_believed(tmp_path, bomb, side):
    path = tmp_path / "bomb"
    path.write_bytes(bomb(side))
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"declares|says|does not hold"):
            read_depth(path)
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()


def test_cap_on_pixels_can_be_moved(tmp_path):
    for suffix in _installed(".png", ".tiff", ".pfm", ".npy", ".exr", ".npz"):
        path = tmp_path / "a"
        path.write_bytes(_content(suffix, tmp_path))
        assert read_depth(path, max_pixels=21 * 35).depth_m.shape == SHAPE
        with pytest.raises(InputError, match="declares 35 x 21 pixels, more than max_pixels=734"):
            read_depth(path, max_pixels=21 * 35 - 1)


@pytest.mark.parametrize(
    "note",
    [
        "",
        "[]",
        "{",
        "[" * 100_000,
        '{"d3s": 2}',
        '{"d3s": 1, "focal_length_px": "long"}',
        '{"d3s": 1, "focal_length_px": -1}',
        '{"d3s": 1, "focal_length_px": NaN}',
        '{"d3s": 1, "focal_length_px": 1' + "0" * 400 + "}",
        '{"d3s": 1, "depth_unit_m": true}',
        '{"d3s": 1, "depth_unit_m": 1e300}',
    ],
    ids=lambda note: note[:30],
)
def test_wrong_note_is_refused(tmp_path, note):
    good = _content(".png", tmp_path)
    at = good.index(b"tEXt")
    size = int.from_bytes(good[at - 4 : at], "big")
    text = b"tEXtd3s\0" + note.encode()
    chunk = struct.pack(">I", len(text) - 4) + text + struct.pack(">I", zlib.crc32(text))
    path = tmp_path / "a.png"
    path.write_bytes(good[: at - 4] + chunk + good[at + 8 + size :])
    with pytest.raises(InputError, match=r"a\.png: .*(note|unit)"):
        read_depth(path)


def test_eight_threads_read_at_once(tmp_path):
    expected = {}
    for suffix in _installed(*SUFFIXES):
        path = tmp_path / f"a{suffix}"
        path.write_bytes(_content(suffix, tmp_path))
        found = read_depth(path)
        expected[path] = found.z_m if isinstance(found, Points) else found.depth_m
    kind = _installed(".png", ".exr")[-1]
    damaged = tmp_path / f"damaged{kind}"
    damaged.write_bytes((tmp_path / f"a{kind}").read_bytes()[:-9])

    def read(path):
        with pytest.raises(InputError):
            read_depth(damaged)
        found = read_depth(path)
        return path, found.z_m if isinstance(found, Points) else found.depth_m

    with ThreadPoolExecutor(8) as pool:
        for path, values in pool.map(read, [*expected] * 6):
            np.testing.assert_array_equal(values, expected[path])

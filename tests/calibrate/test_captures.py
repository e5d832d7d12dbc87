"""Captures: folders as users make them, and errors for those that cannot be used."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from d3s.calibrate.captures import captures_of, read_captures
from d3s.errors import CapturesError
from d3s.files import write_image

SHAPE = (64, 96)
DISTANCES_M = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8]


def frame(number: int, shape: tuple[int, int] = SHAPE) -> np.ndarray:
    """Random blotches of ink, different in each frame."""
    rng = np.random.default_rng(number)
    ink = rng.uniform(0.1, 0.8, (-(-shape[0] // 8), -(-shape[1] // 8)))
    return np.kron(ink, np.ones((8, 8)))[: shape[0], : shape[1]].astype(np.float32)


def noisy(image: np.ndarray) -> np.ndarray:
    return image + np.random.default_rng(9).normal(0, 0.01, image.shape).astype(np.float32)


def fill(folder: Path, table: str | bytes | None = None, **frames: np.ndarray | bytes) -> Path:
    """Write a valid folder, with changes."""
    files: dict[str, Any] = {f"b{number}": frame(number) for number in range(6)} | frames
    for name, content in files.items():
        path = folder / f"{name}.png"
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            write_image(path, content)
    if table is None:
        table = "".join(f"b{number}.png,{z}\n" for number, z in enumerate(DISTANCES_M))
    (folder / "distances.csv").write_bytes(table if isinstance(table, bytes) else table.encode())
    return folder


def problems(folder: Path) -> tuple[str, ...]:
    with pytest.raises(CapturesError) as caught:
        read_captures(folder)
    assert str(folder) in str(caught.value)
    return caught.value.problems


def rows(*distances: Any) -> str:
    return "".join(f"b{number}.png,{z}\n" for number, z in enumerate(distances))


def test_valid_folder(tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    captures = read_captures(fill(tmp_path), progress=lambda done, of: steps.append((done, of)))
    assert len(captures) == 6
    assert captures.names == tuple(f"b{number}.png" for number in range(6))
    assert captures.distances_m == tuple(DISTANCES_M)
    assert captures.shape == SHAPE
    assert captures.left_out == {}
    assert captures.remarks == ()
    assert steps[-1] == (6, 6)
    for number in (5, 0, 0, 3):
        image = captures.image(number)
        assert image.dtype == np.float32
        np.testing.assert_allclose(image, frame(number), atol=1e-5)
    for name in ("b3.png", "distances.csv"):
        expected = hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
        assert captures.digests[name] == expected
    assert len(captures.digests) == 7


@pytest.mark.parametrize(
    "text",
    [
        "file,distance_m\nb0.png,0.3\nb1.png,0.4\nb2.png,0.5\nb3.png,0.6\nb4.png,0.7\n",
        "\ufeffName;Abstand;Bemerkung\r\nb0.png;0,3;x\r\nb1.png;0,4;\r\nb2.png;0,5\r\n"
        "b3.png;0,6\r\nb4.png;0,7\r\n",
        '# taken, with care\n"b0.png" , 0.3 , 17\n\n b1.png,0.40\nb2.png,5e-1,"a,b"\nb3.png,.6\n'
        "b4.png,0.7",
        "b0.png\t0.3\nb1.png\t0.4\nb2.png\t0.5\nb3.png\t0.6\nb4.png\t0.7",
    ],
)
def test_tables_as_users_write_them(tmp_path: Path, text: str) -> None:
    captures = read_captures(fill(tmp_path, text))
    assert captures.distances_m == (0.3, 0.4, 0.5, 0.6, 0.7)
    assert captures.remarks == (
        "Images of the folder that distances.csv does not name (1): b5.png.",
    )


FAR_TO_NEAR = "The frames are listed from far to near; they were sorted by distance."


def test_frames_from_far_to_near_are_sorted(tmp_path: Path) -> None:
    captures = read_captures(fill(tmp_path, rows(0.9, 0.8, 0.7, 0.6, 0.5, 0.4)))
    assert captures.distances_m == (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    assert captures.names == ("b5.png", "b4.png", "b3.png", "b2.png", "b1.png", "b0.png")
    np.testing.assert_allclose(captures.image(0), frame(5), atol=1e-5)
    assert captures.remarks == (FAR_TO_NEAR,)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (rows(0.3, 0.4, 0.5, 0.6), ["names 4 frames: a calibration needs at least 5"]),
        (
            rows(0.3, 0.4, "", "far", 0.7, 0.8),
            [
                "line 3: the distance of b2.png is missing.",
                "line 4: the distance of b3.png is 'far', which is no number. Write metres",
            ],
        ),
        (rows(0.3, 0.4, "nan", 0.6, 0.7), ["b2.png (line 3): the distance nan must be a finite"]),
        (
            rows(0.3, 0.4, 0.35, 0.6, 0.7),
            ["increase, and b2.png (line 3) with 0.35 m comes after b1.png (line 2) with 0.4"],
        ),
        (
            rows(0.8, 0.7, 0.06, 0.5, 0.4, 0.3),
            ["distances decrease, and b3.png (line 4) with 0.5 m comes after b2.png (line 3) with"],
        ),
        (
            rows(0.3, 0.4, 0.4, 0.5, 0.6),
            ["b1.png (line 2) and b2.png (line 3) have the same distance, 0.4 m."],
        ),
        (
            rows(300, 400, 500, 600, 700),
            ["5 of 5 distances are above 20, up to 700: they are in metres. Did you write milli"],
        ),
        (rows(30, 40, 50, 60, 70), ["Did you write centimetres?"]),
        (
            rows(0.3, 0.4, 0.5, 0.6, 0.7) + "b1.png,0.8\nb9.png,0.9\n",
            [
                "line 6 names b1.png, and so does line 2.",
                "line 7 names b9.png, and there is no such file.",
            ],
        ),
        (
            rows(0.3, 0.4, 0.5, 0.6) + "../b4.png,0.7\n/tmp/b5.png,0.8\nC:\\b.png,0.9\n,1.0\n",
            [
                "line 5: '../b4.png' leads out of the folder: files lie beside distances.csv.",
                "line 6: '/tmp/b5.png' leads out of the folder",
                "line 7: 'C:\\\\b.png' leads out of the folder",
                "line 8: '' is no file name.",
            ],
        ),
        (rows(0.3, 0.4, 0.5, 0.6, 0.7).encode("utf-16"), ["is not UTF-8 text. Save it as CSV"]),
        (b"x" * 1_000_001, ["is larger than 1000000 bytes: it is no table."]),
    ],
)
def test_invalid_tables(tmp_path: Path, table: str | bytes, words: list[str]) -> None:
    found = problems(fill(tmp_path, table))
    assert len(found) == len(words)
    assert all(word in problem for word, problem in zip(words, found, strict=True))


def test_a_file_that_is_no_image_is_named(tmp_path: Path) -> None:
    (found,) = problems(fill(tmp_path, b2=b"not an image at all"))
    assert found.startswith(str(tmp_path / "b2.png"))
    assert "does not begin like an image" in found


def test_frames_of_another_size_are_named(tmp_path: Path) -> None:
    (found,) = problems(fill(tmp_path, b4=frame(4, (64, 80))))
    assert found.startswith("b4.png has 80 x 64 pixels, and 5 of 6 frames have 96 x 64.")


def test_too_few_frames_of_use(tmp_path: Path) -> None:
    blank = noisy(np.full(SHAPE, 0.5, np.float32))
    bright = np.minimum(3 * frame(4), 1)
    black = noisy(np.full(SHAPE, 0.02, np.float32))
    found = problems(fill(tmp_path, b2=blank, b4=bright, b5=black))
    assert found[0].startswith("b2.png shows no texture")
    assert found[1].startswith("b4.png is overexposed: ")
    assert found[2].startswith("b5.png shows no texture")
    assert found[3].startswith("3 of 6 frames are of use, and a calibration needs at least 5")


def test_a_folder_without_a_table(tmp_path: Path) -> None:
    (found,) = problems(tmp_path)
    assert found.startswith("there is no distances.csv in it. Write one")
    (tmp_path / "file").write_text("")
    (found,) = problems(tmp_path / "file")
    assert found == "is a file. Name the folder that it is in."
    (found,) = problems(tmp_path / "nothing")
    assert found == "there is no such folder. Check the name."
    with pytest.raises(CapturesError, match="folder=7 must be the name of a folder"):
        read_captures(7)  # type: ignore[arg-type]


def arrays(dtype: Any = np.float32, scale: float = 1.0) -> list[np.ndarray]:
    return [(frame(number) * scale).astype(dtype) for number in range(6)]


@pytest.mark.parametrize(("dtype", "scale"), [("f4", 1), ("f8", 1), ("u1", 255), ("u2", 65535)])
def test_arrays_and_distances(dtype: str, scale: float) -> None:
    captures = captures_of(np.stack(arrays(dtype, scale)), np.array(DISTANCES_M))
    assert captures.names[1] == "frame 1"
    assert captures.distances_m == tuple(DISTANCES_M)
    np.testing.assert_allclose(captures.image(4), frame(4), atol=1 / 255)
    assert captures.image(4).dtype == np.float32
    assert len(set(captures.digests.values())) == 6
    named = captures_of(arrays(), DISTANCES_M, names=list("abcdef"))
    assert named.names == tuple("abcdef")


@pytest.mark.parametrize(
    ("images", "distances_m", "words"),
    [
        (arrays(), DISTANCES_M[:5], "distances_m has 5 values, and there are 6 images."),
        (arrays()[:4], DISTANCES_M[:4], "there are 4 images: a calibration needs 5 to 400."),
        (arrays(), "far", "distances_m must be numbers"),
        (arrays("i4", 255), DISTANCES_M, "frame 0 has dtype int32"),
        ([*arrays()[:5], frame(5, (8, 9))], DISTANCES_M, "frame 5 has 9 x 8 pixels"),
        (7, DISTANCES_M, "images must be a sequence"),
    ],
)
def test_invalid_arrays(images: Any, distances_m: Any, words: str) -> None:
    with pytest.raises(CapturesError) as caught:
        captures_of(images, distances_m)
    assert words in str(caught.value)


def test_floats_of_another_full_scale() -> None:
    images = [255 * frame(number) for number in range(5)]
    with pytest.raises(CapturesError, match="floats have full scale 1") as caught:
        captures_of(images, DISTANCES_M[:5])
    assert len(caught.value.problems) == 5
    assert caught.value.problems[0].startswith("frame 0 has values up to ")

"""Fields of light: found whatever the board shows, and not invented where there are none."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from d3s.calibrate.captures import Captures
from d3s.calibrate.fields import Box, Fields, find_fields
from d3s.errors import CalibrationError, InputError

SHAPE = (300, 520)
RADIUS_PX = 140.0


def step(place: np.ndarray) -> np.ndarray:
    return np.clip(place + 0.5, 0.0, 1.0)


def light(
    *,
    partition_px: float = 259.5,
    shadow_px: float = 8.0,
    gains: tuple[float, float] = (1.0, 1.0),
    vignetting: float = 0.0,
) -> np.ndarray:
    """Share of light at each pixel: two disks that fade over 4 px, a shadow between them."""
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    total = np.zeros(SHAPE)
    for side, gain in zip((-1, 1), gains, strict=True):
        distance = np.hypot(x - partition_px - side * 130, y - 147.0)
        share = step((RADIUS_PX - distance) / 4)
        share *= step((side * (x - partition_px) - shadow_px / 2) / 4)
        share *= 1 - vignetting * np.minimum(distance / RADIUS_PX, 1) ** 2
        total += gain * share
    return total


@cache
def boards(cell_px: int, frames: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Random ink from nearly black to white, and noise."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(frames):
        ink = rng.choice([0.06, 0.3, 0.8], (-(-SHAPE[0] // cell_px), -(-SHAPE[1] // cell_px)))
        board = np.kron(ink, np.ones((cell_px, cell_px)))[: SHAPE[0], : SHAPE[1]]
        found.append((board, rng.normal(0.0, 0.01, SHAPE)))
    return found


def captures(
    share: np.ndarray, *, cell_px: int = 6, frames: int = 6, floor: float = 0.0
) -> Captures:
    """Boards seen through the light."""
    frozen = [
        (share * board + noise + floor).astype(np.float32)
        for board, noise in boards(cell_px, frames)
    ]
    return Captures(
        names=tuple(str(number) for number in range(frames)),
        distances_m=tuple(0.3 + 0.1 * number for number in range(frames)),
        shape=SHAPE,
        digests={},
        left_out={},
        remarks=(),
        source=frozen.__getitem__,
    )


def whole_mask(fields: Fields, camera: int) -> np.ndarray:
    mask = np.zeros(SHAPE, dtype=bool)
    box = (fields.left, fields.right)[camera]
    box.of(mask)[:] = fields.mask(camera)
    return mask


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"partition_px": 215.0},
        {"gains": (1.0, 0.45)},
        {"vignetting": 0.4},
        {"shadow_px": 40.0},
        {"gains": (0.6, 1.0), "vignetting": 0.3, "partition_px": 280.0},
    ],
)
@pytest.mark.parametrize("floor", [0.0, 0.05])
def test_fields_are_what_gets_light(changes: dict[str, Any], floor: float) -> None:
    fields = find_fields(captures(light(**changes), floor=floor))
    assert fields.partition_px == pytest.approx(changes.get("partition_px", 259.5), abs=3)
    x = np.arange(SHAPE[1])[np.newaxis, :]
    flat = light(**{**changes, "gains": (1.0, 1.0), "vignetting": 0.0})
    for camera, is_half in enumerate((x > fields.partition_px, x < fields.partition_px)):
        mask = whole_mask(fields, camera)
        is_lit = (flat > 0.5) & is_half
        assert not mask[flat < 0.1].any()  # nothing from the dark
        assert not (mask & ~is_half).any()
        assert mask[is_lit].mean() > 0.95
        box = (fields.left, fields.right)[camera]
        assert box.of(mask).shape == (box.rows, box.cols)
        assert box.of(mask)[:, [0, -1]].any(axis=0).all()
        assert box.of(mask)[[0, -1]].any(axis=1).all()


def test_coarse_ink_is_filled_in() -> None:
    """Ink that stays black where the board does not seem to move is no hole in the light."""
    share = light()
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    share *= np.where(np.hypot(x - 390, y - 147) < 9, 0.05, 1.0)
    fields = find_fields(captures(share, cell_px=12))
    assert whole_mask(fields, 0)[140:155, 380:400].all()


def test_left_lens_may_be_on_either_side() -> None:
    frames = captures(light())
    usual, other = find_fields(frames), find_fields(frames, left_lens="left")
    assert usual.left.col > usual.right.col
    assert (usual.left, usual.right) == (other.right, other.left)
    assert usual.light == other.light[::-1]
    with pytest.raises(InputError, match="left_lens='top' must be 'left' or 'right'"):
        find_fields(frames, left_lens="top")  # type: ignore[arg-type]


def test_light_of_each_field() -> None:
    fields = find_fields(captures(light(gains=(1.0, 0.5))))
    assert fields.light[1] == pytest.approx(0.8, rel=0.1)  # the right lens is on the left
    assert fields.light[0] == pytest.approx(0.4, rel=0.1)


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (light(gains=(1.0, 0.0)), "only one field of light was found"),
        (light(gains=(0.0, 1.0)), "only one field of light was found"),
        (np.ones(SHAPE), "no shadow of a partition was found"),
        (light(shadow_px=-12.0), r"the darkest column still has \d+% of the light"),
    ],
)
def test_no_two_fields(share: np.ndarray, words: str) -> None:
    with pytest.raises(CalibrationError, match=words):
        find_fields(captures(share))


def test_one_view_alone_has_one_field() -> None:
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    with pytest.raises(CalibrationError, match="only one field"):
        find_fields(captures(step(100 - np.hypot(x - 260, y - 150))))


def test_boxes_that_are_given_are_taken() -> None:
    boxes = Box(40, 300, 200, 180), Box(45, 30, 210, 190)
    fields = find_fields(captures(np.ones(SHAPE)), boxes=boxes)
    assert (fields.left, fields.right) == boxes
    assert fields.partition_px is None
    assert fields.mask(0).all()
    assert fields.mask(1).shape == (210, 190)
    assert fields.light == pytest.approx((0.8, 0.8), rel=0.1)


@pytest.mark.parametrize(
    ("box", "words"),
    [
        ((0, 0, 301, 100), r"box of the right lens, \(0, 0, 301, 100\), must lie within the frame"),
        ((-1, 0, 100, 100), "must lie within"),
        ((0, 500, 100, 100), "must lie within"),
        ((0, 0, 100, 8), "at least 32 rows and columns"),
        ((0, 0, 100), "four whole numbers"),
        ((0.5, 0, 100, 100), "four whole numbers"),
        ((float("inf"), 0, 100, 100), r"box of the right lens is \(inf, .* four whole numbers"),
        ((float("nan"), 0, 100, 100), "four whole numbers"),
        (5, "box of the right lens is 5: it must be four whole numbers"),
        ("left", "four whole numbers"),
    ],
)
def test_boxes_that_cannot_be(box: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        find_fields(captures(light()), boxes=(Box(40, 300, 200, 180), box))


@pytest.mark.parametrize("boxes", [5, float("inf"), Box(40, 300, 200, 180), (), "left"])
def test_boxes_that_are_not_two(boxes: Any) -> None:
    with pytest.raises(
        InputError, match=r"boxes of the lenses \(regions=\) are .*: they must be two"
    ):
        find_fields(captures(light()), boxes=boxes)


def test_boxes_say_themselves_which_is_the_left_one() -> None:
    boxes = Box(40, 300, 200, 180), Box(45, 30, 210, 190)
    frames = captures(light())
    first, second = (find_fields(frames, left_lens=left, boxes=boxes) for left in ("left", "right"))
    assert (first.left, first.right) == (second.left, second.right) == boxes

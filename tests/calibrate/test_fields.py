"""Fields of the lenses, and the views cut from these: numbers worked by hand."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from calibrations import calibration
from d3s.calibrate.fields import Box, Fields, find_fields, largest_crop
from d3s.calibrate.frames import Captures
from d3s.errors import CalibrationError, InputError
from d3s.rig import Calibration, LensMaps
from d3s.rig.calibration import view_to_raw_places

# Fields -------------------------------------------------------------------------------------------


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
    """Share of light at each pixel: two disks that fade over 4 px, with a shadow between."""
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
    """Frames: boards times light."""
    frozen = [
        (share * board + noise + floor).astype(np.float32)
        for board, noise in boards(cell_px, frames)
    ]
    return Captures(
        names=tuple(str(number) for number in range(frames)),
        distances_m=tuple(0.3 + 0.1 * number for number in range(frames)),
        shape=SHAPE,
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
        {"gains": (1.0, 0.45)},
        {"shadow_px": 40.0},
        {"gains": (0.6, 1.0), "vignetting": 0.3, "partition_px": 280.0},
    ],
)
def test_fields_are_the_lit_parts(changes: dict[str, Any]) -> None:
    fields = find_fields(captures(light(**changes), floor=0.05))
    assert fields.partition_px == pytest.approx(changes.get("partition_px", 259.5), abs=3)
    x = np.arange(SHAPE[1])[np.newaxis, :]
    flat = light(**{**changes, "gains": (1.0, 1.0), "vignetting": 0.0})
    for camera, is_half in enumerate((x > fields.partition_px, x < fields.partition_px)):
        mask = whole_mask(fields, camera)
        is_lit = (flat > 0.5) & is_half
        assert not mask[flat < 0.1].any()  # no dark pixels
        assert not (mask & ~is_half).any()
        assert mask[is_lit].mean() > 0.95
        box = (fields.left, fields.right)[camera]
        assert box.of(mask).shape == (box.rows, box.cols)
        assert box.of(mask)[:, [0, -1]].any(axis=0).all()
        assert box.of(mask)[[0, -1]].any(axis=1).all()


def test_left_lens_may_be_on_either_side() -> None:
    frames = captures(light())
    usual, other = find_fields(frames), find_fields(frames, left_lens="left")
    assert usual.left.col > usual.right.col
    assert (usual.left, usual.right) == (other.right, other.left)
    assert usual.light == other.light[::-1]
    with pytest.raises(InputError, match="left_lens='top' must be 'left' or 'right'"):
        find_fields(frames, left_lens="top")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (light(gains=(1.0, 0.0)), "only one field of light was found"),
        (light(gains=(0.0, 1.0)), "only one field of light was found"),
        (np.ones(SHAPE), "no shadow of a partition was found"),
        (light(shadow_px=-12.0), r"the darkest column still has \d+% of the light"),
    ],
)
def test_light_without_two_fields_is_refused(share: np.ndarray, words: str) -> None:
    with pytest.raises(CalibrationError, match=words):
        find_fields(captures(share))


def test_given_boxes_are_used() -> None:
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
        ((0, 0, 100, 8), "at least 32 rows and columns"),
        ((0, 0, 100), "four whole numbers"),
        ((float("inf"), 0, 100, 100), r"box of the right lens is \(inf, .* four whole numbers"),
        (5, "box of the right lens is 5: it must be four whole numbers"),
    ],
)
def test_invalid_boxes(box: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        find_fields(captures(light()), boxes=(Box(40, 300, 200, 180), box))


@pytest.mark.parametrize("boxes", [5, Box(40, 300, 200, 180)])
def test_boxes_that_are_not_two(boxes: Any) -> None:
    with pytest.raises(
        InputError, match=r"boxes of the lenses \(regions=\) are .*: they must be two"
    ):
        find_fields(captures(light()), boxes=boxes)


# Crop ---------------------------------------------------------------------------------------------


FRAME = (1000, 2000)


def centred(**changes) -> Calibration:
    """Anchors in the middle of both halves."""
    return calibration(anchor_left_px=(1500.0, 500.0), anchor_right_px=(500.0, 500.0), **changes)


def outlined(left: np.ndarray, right: np.ndarray) -> Fields:
    nowhere = Box(0, 0, 1, 1)
    return Fields(nowhere, nowhere, left, right, (1.0, 1.0), None)


def rectangle(first_x, first_y, last_x, last_y) -> np.ndarray:
    return np.array(
        [[first_x, first_y], [last_x, first_y], [last_x, last_y], [first_x, last_y]], dtype=float
    )


def circle(x, y, radius) -> np.ndarray:
    angle = np.linspace(0, 2 * np.pi, 180, endpoint=False)
    return np.stack([x + radius * np.cos(angle), y + radius * np.sin(angle)], axis=1)


def test_views_are_centred_on_the_anchors():
    left = rectangle(1100, 200, 1850, 760)  # 350 to the right, 260 below
    right = rectangle(100, 100, 900, 900)
    assert largest_crop(outlined(left, right), centred(), FRAME, 0.0) == (521, 701)


@pytest.mark.parametrize("third", [-0.03, 0.02])
def test_borders_of_distorted_views_lie_within_the_fields(third):
    lenses = LensMaps(field_radius_px=400.0, distortion_left=(third, 0.0, 0.0, 0.0))
    warped = centred(lenses=lenses, baseline_angle_rad=-0.01)
    both = circle(1500, 500, 400), circle(500, 500, 400)
    rows, cols = largest_crop(outlined(*both), warped, FRAME, 50.0)
    cut = warped.replace(crop_rows_px=rows, crop_cols_px=cols)
    y, x = np.mgrid[:rows, :cols]
    away = [
        np.hypot(*(view_to_raw_places(cut, camera, x, y).T - (middle, 500)).T).max() - 400
        for camera, middle in enumerate((1500, 500))
    ]
    assert -1.5 < max(away) <= 0.1
    # The corners of the left view are 3 % nearer, or 2 % farther, and limit the views or do not.
    assert (away[0] > away[1]) == (third > 0)


def test_anchor_beside_its_field():
    both = rectangle(1600, 200, 1900, 700), rectangle(100, 100, 900, 900)
    with pytest.raises(CalibrationError, match=r"around the anchors \(1500, 500\) and"):
        largest_crop(outlined(*both), centred(), FRAME, 0.0)

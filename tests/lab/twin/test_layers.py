"""Layers: order in depth, occlusion, and objects that reach beyond the frame."""

from itertools import permutations

import numpy as np
import pytest

import d3s
from d3s.errors import SceneError
from twin_tools import PROTOTYPE, thin_rig

SHAPE = (120, 160)
PINHOLE = thin_rig(aperture_radius_m=0.0)
# 12.1 mm x 3.84 mm / 2 um = 23.232 px m.
FAR_M, MIDDLE_M, NEAR_M = 23.232 / 24, 23.232 / 40, 23.232 / 50  # 24, 40 and 50 px of disparity


def rectangle(rows, cols, shape=SHAPE):
    mask = np.zeros(shape, dtype=np.float32)
    mask[slice(*rows), slice(*cols)] = 1
    return mask


FAR = d3s.Layer(depth_m=FAR_M, texture="noise")
MIDDLE = d3s.Layer(depth_m=MIDDLE_M, texture="leaves", mask=rectangle((40, 80), (60, 100)))
NEAR = d3s.Layer(depth_m=NEAR_M, texture="text", mask=rectangle((50, 70), (120, 140)))


def pair_of(*layers, rig=PROTOTYPE, **options):
    return d3s.simulate(d3s.Layered(layers=layers), rig, **{"shape": SHAPE, **options})


def same(a, b):
    arrays = ("left", "right", "depth_m", "all_in_focus", "occluded")
    return all(getattr(a, name).tobytes() == getattr(b, name).tobytes() for name in arrays)


def test_order_given_does_not_matter():
    orders = list(permutations((FAR, MIDDLE, NEAR)))[::2]
    first, *others = (pair_of(*layers) for layers in orders)
    assert all(same(first, other) for other in others)


def test_tilted_layers_are_sorted_where_they_overlap():
    # On the axis the board is farther than the wall; within its mask it is nearer.
    wall = d3s.Layer(depth_m=0.9, texture="noise")
    board = d3s.Layer(depth_m=1.0, tilt_x_rad=1.49, mask=rectangle((30, 90), (5, 25)))
    for layers in ((wall, board), (board, wall)):
        depth = pair_of(*layers).depth_m
        assert (depth[30:90, 5:25] < 0.9).all()
        assert np.delete(depth, np.s_[5:25], axis=1) == pytest.approx(0.9)


def test_truth_of_three_layers():
    pair = pair_of(FAR, MIDDLE, NEAR)
    depth = np.full(SHAPE, FAR_M)
    depth[40:80, 60:100] = MIDDLE_M
    depth[50:70, 120:140] = NEAR_M
    np.testing.assert_allclose(pair.depth_m, depth, rtol=1e-6)

    # In the right view the wall is 24 px further left, the middle object 40 px, the near one 50.
    # There the objects cover columns 20 to 59 and 70 to 89: 44 to 83 and 94 to 113 of the wall.
    hidden = np.zeros(SHAPE, dtype=bool)
    hidden[:, :24] = True  # outside the right frame
    hidden[40:80, 44:60] = True  # left of the object, as wide as the difference in disparity
    hidden[50:70, 100:114] = True  # by the near object; 94 to 99 show the middle object
    np.testing.assert_array_equal(pair.occluded, hidden)


def test_thin_mask_lets_part_of_the_light_through():
    level = 0.25
    pair = pair_of(FAR, MIDDLE.replace(mask=np.full(SHAPE, level)), rig=PINHOLE)
    for name in ("left", "right"):
        wall, veil = (
            getattr(
                d3s.simulate(
                    d3s.Plane(depth_m=one.depth_m, texture=one.texture), PINHOLE, shape=SHAPE
                ),
                name,
            )
            for one in (FAR, MIDDLE)
        )
        expected = level * veil + (1 - level) * wall
        np.testing.assert_allclose(getattr(pair, name), expected, atol=1e-4)


@pytest.mark.parametrize("rig", [PINHOLE, PROTOTYPE], ids=["pinhole", "prototype"])
def test_object_at_the_border_goes_on_beyond_it(rig):
    # From column 120 to the end of the left view; in the right view, from column 80 to its end.
    near = MIDDLE.replace(mask=rectangle((0, 120), (120, 160)))
    pair = pair_of(FAR, near, rig=rig)
    plane = d3s.simulate(d3s.Plane(depth_m=MIDDLE_M, texture="leaves"), rig, shape=SHAPE)
    wall = d3s.simulate(d3s.Plane(depth_m=FAR_M, texture="noise"), rig, shape=SHAPE)
    reach = 0 if rig is PINHOLE else 8
    for name, first in (("left", 120), ("right", 80)):
        seen, near_alone, far_alone = (getattr(one, name) for one in (pair, plane, wall))
        # The edge of a mask is band-limited like the pixels: at this distance it rings by 2e-4.
        there, before = np.s_[:, first + reach :], np.s_[:, first - 20 : first - reach]
        np.testing.assert_allclose(seen[there], near_alone[there], atol=4e-4)
        np.testing.assert_allclose(seen[before], far_alone[before], atol=4e-4)


def test_of_boards_that_cut_through_each_other_the_nearer_is_seen():
    cover = rectangle((20, 100), (40, 120))
    boards = [
        d3s.Layer(depth_m=0.5, tilt_x_rad=tilt, mask=cover, texture=texture)
        for tilt, texture in ((1.2, "noise"), (-1.2, "text"))
    ]
    # 1/Z = 2 (1 -+ tan(1.2) (x - 79.5) / 6050): the planes intersect in the middle, between two
    # columns. The first, whose right side is further away, is the nearer one on the left.
    x = np.arange(160) - 79.5
    depth = np.full(SHAPE, FAR_M)
    depth[20:100, 40:120] = (0.5 / (1 + 2.572152 * np.abs(x) / 6050))[40:120]
    alone = [pair_of(board.replace(mask=None)).all_in_focus for board in boards]
    for layers in ((*boards, FAR), (FAR, *boards[::-1])):
        pair = pair_of(*layers)
        np.testing.assert_allclose(pair.depth_m, depth, rtol=1e-6)
        for cols, image in ((np.s_[42:78], alone[0]), (np.s_[82:118], alone[1])):
            part = (slice(22, 98), cols)
            np.testing.assert_allclose(pair.all_in_focus[part], image[part], atol=1e-5)


def test_boards_that_lie_on_each_other_in_a_circle_are_refused():
    # Like the flaps of a box: each lies over the next.
    boards = [
        d3s.Layer(depth_m=0.5, tilt_x_rad=1.0, mask=rectangle((40, 60), (20, 140))),
        d3s.Layer(depth_m=0.5, tilt_y_rad=1.45, mask=rectangle((10, 110), (100, 120))),
        d3s.Layer(
            depth_m=0.5, mask=rectangle((40, 110), (40, 60)) + rectangle((90, 110), (60, 120))
        ),
    ]
    # First and second meet at (110, 50): 1/Z is 2 (1 - 1.5574 x 30.5 / 6050) = 1.9843 and
    # 2 (1 - 8.2381 x -9.5 / 6050) = 2.0259: the second is nearer. Second and third at (110, 100):
    # 1.8897 and 2: the third is nearer. Third and first at (50, 50): 2 and 2.0152: the first is.
    with pytest.raises(SceneError) as caught:
        pair_of(*boards, FAR)
    assert str(caught.value) == "layers overlap in a circle: no one of them is in front."


def test_scene_without_a_background_is_refused():
    words = r"^layers must have one without a mask, behind the others\.$"
    for layers in ((), (MIDDLE,), (MIDDLE, NEAR), (MIDDLE.replace(mask=np.ones(SHAPE)), NEAR)):
        with pytest.raises(SceneError, match=words):
            pair_of(*layers)


def test_mask_of_another_shape_is_refused():
    with pytest.raises(SceneError) as caught:
        pair_of(FAR, MIDDLE, shape=(120, 161))
    assert str(caught.value) == (
        "layers[1].mask has shape (120, 160) and must have the frame's, (120, 161)."
    )


def test_what_is_apart_on_the_left_may_overlap_on_the_right():
    # Side by side in the left view: disparities 46.5 and, at the common border, 42.2 px. So the
    # nearer object begins at column 373.5 of the right view, and hides the end of the other.
    shape = (200, 1000)
    near, steep = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    near[40:160, 420:700], steep[40:160, 320:420] = True, True
    scene = d3s.Layered(
        layers=[
            d3s.Layer(depth_m=0.46, tilt_x_rad=-1.49, mask=steep),
            d3s.Layer(depth_m=0.5, mask=near),
            d3s.Layer(depth_m=1.5),
        ]
    )
    pair = d3s.simulate(scene, PROTOTYPE, shape=shape)
    assert pair.occluded[100, 417:420].all()
    assert not pair.occluded[100, 420:430].any()

"""What people pass to the joint method, and scenes that hold no depth."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import d3s
from d3s.errors import D3SError, InputError
from d3s.estimate.flags import Flag, share_of_each
from d3s.estimate.joint.plan import make_plan

RIG = d3s.Rig.paper_prototype()
SHAPE = (120, 260)
WINDOWS_PX = make_plan(RIG.optics, d3s.JointOptions(), SHAPE).windows_px


def _flat(value: float, noise: float = 0.0, seed: int = 0, shape=SHAPE) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (value + noise * rng.standard_normal(shape)).astype(np.float32)


# Scenes without information -----------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, -3.0, 1e30])
def test_constant_views_have_no_depth(assert_explained, value):
    found = d3s.estimate(_flat(value), _flat(value), RIG)
    assert_explained(found)
    assert not found.valid.any()
    assert ((found.flags & int(Flag.LOW_TEXTURE | Flag.SATURATED)) != 0).all()
    assert (found.confidence < 1e-4).all()


def test_a_blank_wall_has_no_depth():
    found = d3s.estimate(_flat(0.4, 0.01, 1), _flat(0.4, 0.01, 2), RIG)
    assert found.density == 0
    assert share_of_each(found.flags)["LOW_TEXTURE"] > 0.95


def test_views_of_nothing_but_nan(assert_explained):
    found = d3s.estimate(_flat(np.nan), _flat(np.nan), RIG)
    assert_explained(found)
    assert ((found.flags & Flag.INVALID_INPUT) != 0).all()
    assert not found.valid.any()


def test_a_ramp_tells_no_depth():
    # Brightness may differ between lenses, so a slope alone is no texture.
    ramp = np.tile(np.linspace(0, 1, SHAPE[1], dtype=np.float32), (SHAPE[0], 1))
    assert d3s.estimate(ramp, ramp, RIG).density == 0


def test_stripes_along_the_rows_have_no_depth_to_trust():
    # Only blur tells it, and a disk is no Gaussian: depths would be wrong by 5 % and more.
    lines = np.repeat(np.random.default_rng(1).uniform(size=(300, 1)), 3, axis=0)
    texture = np.tile(lines, (1, 900)).astype(np.float32)
    for depth_m in (0.7, 1.0):
        scene = d3s.Plane(depth_m=depth_m, texture=texture)
        pair = d3s.simulate(scene, RIG, noise=0.01, shape=(160, 340))
        assert d3s.estimate(pair.left, pair.right, RIG).density < 0.03


@pytest.mark.parametrize(("period_px", "disparity_px"), [(8.4, 24.2), (12.0, 20.3), (30.0, 33.3)])
def test_waves_that_fit_at_every_period_are_ambiguous(period_px, disparity_px):
    rig = d3s.Rig.from_pinhole(focal_length_px=1000, baseline_m=0.05)
    cols = np.arange(340)

    def view(shift_px, seed):
        wave = 0.5 + 0.3 * np.sin(2 * np.pi * (cols + shift_px) / period_px)
        return np.tile(wave, (160, 1)) + _flat(0, 0.01, seed, (160, 340))

    found = d3s.estimate(view(0.0, 1), view(disparity_px, 2), rig)
    wrong = np.abs(rig.optics.disparity_px(found.depth_m) - disparity_px) > 1
    assert wrong.mean() < 0.02
    assert ((found.flags & Flag.AMBIGUOUS) != 0).mean() > 0.5


def test_noise_of_either_view_counts(plane):
    pair = plane(1.0, "bark", noise=0.0)
    for sigmas in ((0.005, 0.02), (0.02, 0.005)):
        views = (pair.left, pair.right)
        noisy = [
            v + _flat(0, s, i, v.shape) for i, (v, s) in enumerate(zip(views, sigmas, strict=True))
        ]
        found = d3s.estimate(*noisy, RIG)
        error = np.abs(found.depth_m - 1.0)[found.valid]
        assert 0.58 < (error < found.sigma_m[found.valid]).mean() < 0.8


def test_pedestals_faults_and_masks(plane):
    pair = plane(1.0, "bark")
    plain = d3s.estimate(pair.left, pair.right, RIG)
    high = [view.astype(np.float64) + 1e6 for view in (pair.left, pair.right)]
    raised = d3s.estimate(*high, RIG)
    both = plain.valid & raised.valid
    assert both.sum() > 0.99 * plain.valid.sum()
    assert np.abs(raised.depth_m - plain.depth_m)[both].max() < 1e-4
    hot = pair.left.copy()
    hot[60, 150] = 1e6
    assert d3s.estimate(hot, pair.right, RIG).density > 0.95 * plain.density
    masked = np.ma.masked_array(pair.left, mask=np.zeros(pair.left.shape, dtype=bool))
    masked[:, :200] = np.ma.masked
    assert ((d3s.estimate(masked, pair.right, RIG).flags[:, :200] & Flag.INVALID_INPUT) != 0).all()


# Holes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("side", ["left", "right"])
def test_one_hole_touches_only_its_window(plane, assert_explained, side, value):
    pair = plane(1.0, "bark")
    disparity = round(float(RIG.optics.disparity_px(1.0)))
    left, right = pair.left.copy(), pair.right.copy()
    if side == "left":
        left[60, 150] = value
    else:
        right[60, 150 - disparity] = value
    clean = d3s.estimate(pair.left, pair.right, RIG)
    found = d3s.estimate(left, right, RIG)
    assert_explained(found)
    row, col = np.indices(SHAPE)
    far = np.maximum(abs(row - 60), abs(col - 150))
    holed = (found.flags & Flag.INVALID_INPUT) != 0
    # In cells of two pixels: half the smallest window, and three sigma of the Gaussian. The hole
    # lies anywhere in its cell.
    assert far[holed].max() <= 2 * (2 + 2) + 1
    assert holed[far <= WINDOWS_PX[0] // 2].all()
    # Half the largest window, the Gaussian, and as far again to where slopes are taken from, in
    # cells; the hole in its cell, and a pixel between two cells.
    beyond = far > 2 * (14 + 2 + 14) + 2
    np.testing.assert_array_equal(found.flags[beyond], clean.flags[beyond])
    both = clean.valid & found.valid
    assert both.sum() > 0.97 * clean.valid.sum()
    gap = np.abs(found.depth_m - clean.depth_m)
    # Around it the windows are smaller, and sigma says so; what fills the hole and the mean of
    # the whole views have changed by almost nothing.
    assert (gap[both] / found.sigma_m[both]).max() < 4
    assert (gap[both & beyond] / clean.sigma_m[both & beyond]).max() < 0.02


# Chance -------------------------------------------------------------------------------------------


def _noise_views(kind: str, seed: int, shape: tuple[int, int]) -> list[np.ndarray]:
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(seed)
    views = [rng.standard_normal(shape) for _ in range(2)]
    if kind != "white":
        views = [gaussian_filter(view, float(kind)) for view in views]
    return views


@pytest.mark.parametrize("candidates", [None, 50, 400])
@pytest.mark.parametrize("kind", ["white", "1", "3", "8"])
def test_chance_does_not_pass(kind, candidates):
    views = _noise_views(kind, 7, (200, 420))
    found = d3s.estimate(*views, RIG, options={"candidates": candidates})
    assert found.density < 0.001


@pytest.mark.parametrize("kind", ["white", "2", "8"])
def test_chance_does_not_pass_without_lenses(kind):
    rig = d3s.Rig.from_pinhole(focal_length_px=1000, baseline_m=0.05)
    found = [d3s.estimate(*_noise_views(kind, seed, (240, 460)), rig) for seed in (7, 8)]
    assert max(one.density for one in found) < 0.001


# Arrays -------------------------------------------------------------------------------------------

_DTYPES = [
    *("?", "i1", "u1", "<i2", ">u2", "<i4", ">i8", "<u8", "<f2", ">f4", "<f4", ">f8", "g"),
    *("c8", "O", "U3", "S2", "M8[s]", "m8[s]", "V4"),
]


def _filled_array(dtype: np.dtype, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Values that the dtype can hold, with what a sensor would never give."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=np.dtype(dtype.type), endpoint=True)
    values = rng.uniform(-1, 1, shape)
    if dtype.kind in "fc":
        odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-300, 6e4, 1e300])
        few = rng.uniform(size=shape) < 0.02
        values = np.where(few, rng.choice(odd, shape), values)
    if dtype.kind == "V":
        return np.zeros(shape, dtype)
    if dtype.kind in "mM":
        values = values * 1e6
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype("i8").astype(dtype) if dtype.kind in "mM" else values.astype(dtype)


def _unaligned(array: np.ndarray) -> np.ndarray:
    shifted = np.frombuffer(b"\0" + array.tobytes(), array.dtype, offset=1)
    return shifted.reshape(array.shape)


# Of arrays with at least one axis and one value.
_LAYOUTS = {
    "plain": lambda array: array,
    "turned": lambda array: array.T.copy().T,
    "upside down": lambda array: array[::-1].copy()[::-1],
    "mirrored": lambda array: array[..., ::-1].copy()[..., ::-1],
    "every other": lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
    "unaligned": lambda array: array if array.dtype.kind == "O" else _unaligned(array),
}

_sizes = st.integers(0, 40)
_shapes = st.one_of(
    st.tuples(st.integers(1, 40), st.integers(1, 90)),
    st.tuples(_sizes, _sizes),
    st.tuples(),
    st.tuples(_sizes),
    st.tuples(st.integers(1, 8), st.integers(1, 8), st.integers(1, 3)),
)


@st.composite
def _views(draw):
    shape = draw(_shapes)
    other = draw(_shapes) if draw(st.integers(0, 9)) == 0 else shape
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    views = []
    for one in (shape, other):
        dtype = np.dtype(draw(st.sampled_from(_DTYPES)))
        array = np.asarray(_filled_array(dtype, one, rng), dtype=dtype)
        layout = draw(st.sampled_from(sorted(_LAYOUTS)))
        array = _LAYOUTS[layout](array) if array.ndim and array.size else array
        if draw(st.booleans()):
            array.flags.writeable = False
        views.append(array)
    return views


def _bytes(view: np.ndarray) -> bytes | list[object]:
    return view.tolist() if view.dtype.kind == "O" else view.tobytes()


def _result(views: list[np.ndarray]) -> d3s.DepthMap | D3SError:
    try:
        return d3s.estimate(*views, RIG)
    except D3SError as error:
        return error


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(views=_views())
def test_arrays_of_any_kind(assert_explained, views):
    before = [_bytes(view) for view in views]
    found = _result(views)
    if isinstance(found, D3SError):
        assert str(found).startswith(("left ", "right "))
    else:
        assert_explained(found)
        assert found.depth_m.shape == views[0].shape[:2]
    assert repr([_bytes(view) for view in views]) == repr(before)


@pytest.mark.parametrize("layout", sorted(_LAYOUTS))
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", ">f8", "g"])
def test_layout_and_precision_do_not_matter(plane, assert_same_bytes, layout, dtype):
    pair = plane(0.9)
    expected = d3s.estimate(pair.left, pair.right, RIG)
    views = [_LAYOUTS[layout](view.astype(dtype)) for view in (pair.left, pair.right)]
    kept = [view.copy() for view in views]
    for view in views:
        view.flags.writeable = False
    assert_same_bytes(d3s.estimate(*views, RIG), expected)
    for view, copy in zip(views, kept, strict=True):
        np.testing.assert_array_equal(view, copy)


def test_maps_outlive_the_next_call(plane):
    pair, other = plane(0.9), plane(0.6)
    found = d3s.estimate(pair.left, pair.right, RIG)
    kept = found.depth_m.copy(), found.flags.copy()
    d3s.estimate(other.left, other.right, RIG)
    np.testing.assert_array_equal(found.depth_m, kept[0])
    np.testing.assert_array_equal(found.flags, kept[1])


@pytest.mark.parametrize(("dtype", "full"), [("u1", 255), (">u2", 65535), ("<i4", 2**20)])
def test_grey_levels(plane, dtype, full):
    pair = plane(0.9)
    levels = [np.clip(view * full, 0, full).astype(dtype) for view in (pair.left, pair.right)]
    found = d3s.estimate(*levels, RIG)
    assert found.density > 0.5
    assert np.nanmean(np.abs(found.depth_m - 0.9)) < 0.003


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        (
            np.zeros((4, 5)),
            np.zeros((4, 6)),
            r"left has shape \(4, 5\) and right \(4, 6\): .*alike",
        ),
        (
            np.zeros((4, 5, 7)),
            np.zeros((4, 5, 7)),
            r"left has shape .* or \(rows, cols, 3\) in colour",
        ),
        (np.zeros((4, 5)), np.zeros(5), r"right has shape \(5,\): it must be \(rows, cols\)"),
        (np.zeros((0, 5)), np.zeros((0, 5)), "left has 0 pixels"),
        (np.zeros((4, 5), complex), np.zeros((4, 5)), "left has dtype complex128: .*real numbers"),
        (np.zeros((4, 5)), [["a", "b"]], "right has dtype <U1"),
        (np.zeros((4, 5)), None, "right has dtype object"),
        (np.zeros((4, 5)), [[1, 2], [3]], "right must be an image"),
    ],
)
def test_what_is_no_pair_of_images(left, right, words):
    with pytest.raises(InputError, match=words):
        d3s.estimate(left, right, RIG)

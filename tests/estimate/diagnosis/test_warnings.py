"""Warnings of `d3s.estimate`: each fault is named, good pairs have none, nothing crashes."""

import numpy as np
import pytest

import d3s
from d3s.estimate.diagnosis import Cause

RIG = d3s.Rig.paper_prototype()
SHAPE = (170, 320)
RNG = np.random.default_rng(0)


def _causes(left, right, rig=RIG, **options) -> set[Cause]:
    found = d3s.estimate(left, right, rig, options=options)
    causes = {one for one in Cause if any(words.startswith(one) for words in found.warnings)}
    assert len(causes) == len(found.warnings), found.warnings
    assert all(words.endswith(".") and ": " in words for words in found.warnings)
    return causes


@pytest.fixture(scope="module")
def pair() -> d3s.Pair:
    return d3s.simulate(d3s.Plane(depth_m=1.2, texture="bark"), RIG, noise=0.01, shape=SHAPE)


def _blurred(view):
    """Smooth by 1/4, 1/2, 1/4 along rows and columns, as denoising does."""
    for axis in (0, 1):
        view = 0.25 * np.roll(view, 1, axis) + 0.5 * view + 0.25 * np.roll(view, -1, axis)
    return view.astype(np.float32)


FAULTS = {
    "swapped": (Cause.SWAPPED, lambda left, right: (right, left)),
    "rows, 1 px": (Cause.ROWS, lambda left, right: (left, np.roll(right, 1, 0))),
    "rows, 5 px": (Cause.ROWS, lambda left, right: (left, np.roll(right, -5, 0))),
    "gain": (Cause.CONTRAST, lambda left, right: (left, 0.94 * right)),
    "large gain": (Cause.CONTRAST, lambda left, right: (left, 0.5 * right)),
    "shading": (Cause.SHADING, lambda left, right: (left, right * np.linspace(0.75, 1.25, 320))),
    "white": (Cause.CLIPPED, lambda left, right: (left.clip(0, 0.6), right.clip(0, 0.6))),
    "black": (Cause.CLIPPED, lambda left, right: (left.clip(0.4), right.clip(0.4))),
    "covered": (Cause.COVERED, lambda left, right: (left, 0.01 * RNG.standard_normal(SHAPE))),
    "black lens": (Cause.CONSTANT, lambda left, right: (left, 0 * right)),
    "no texture": (Cause.PLAIN, lambda left, right: 0.5 + 0.01 * RNG.standard_normal((2, *SHAPE))),
    "other scene": (Cause.UNLIKE, lambda left, right: (left, right[::-1, ::-1])),
    "missing": (Cause.MISSING, lambda left, right: (left, np.where(right < 0.5, np.nan, right))),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_named(pair, fault):
    cause, spoil = FAULTS[fault]
    named = _causes(*spoil(pair.left, pair.right))
    assert cause in named


def test_smoothed_noise_is_named(plane):
    blurry = plane(0.4, "bark", shape=SHAPE)
    assert _causes(_blurred(blurry.left), _blurred(blurry.right)) == {Cause.GRAIN}


def test_gamma_is_named(plane):
    contrasty = plane(0.8, "text", shape=SHAPE)
    named = _causes(contrasty.left, np.maximum(contrasty.right, 0) ** 2.2)
    assert named & {Cause.GAMMA, Cause.CONTRAST}


@pytest.mark.parametrize("range_m", [(0.25, 0.8), (1.9, 5.0)])
def test_range_that_cuts_is_named_with_a_wider_one(pair, range_m):
    found = d3s.estimate(pair.left, pair.right, RIG, options={"depth_range_m": range_m})
    (words,) = found.warnings
    assert words.startswith(Cause.RANGE)
    wider = eval(words.rpartition("depth_range_m=")[2].removesuffix("."))  # a pair of numbers
    assert wider[0] < 1.2 < wider[1]
    better = d3s.estimate(pair.left, pair.right, RIG, options={"depth_range_m": wider})
    assert better.density > 0.5


def test_wrong_offset_is_named(pair):
    optics = RIG.optics.replace(disparity_offset_px=40.0)
    assert Cause.OFFSET in _causes(pair.left, pair.right, d3s.Rig(optics=optics))


def test_empty_for_lack_of_precision_is_said(pair):
    assert _causes(pair.left, pair.right, min_confidence=1.0) == {Cause.UNCERTAIN}


@pytest.mark.parametrize("shape", [(1, 1), (1, 300), (300, 1), (5, 7), (40, 100), (30, 81)])
@pytest.mark.parametrize("value", [0.0, np.nan, 1e30, "noise"])
def test_nothing_crashes(shape, value):
    views = [
        RNG.standard_normal(shape) if value == "noise" else np.full(shape, value) for _ in range(2)
    ]
    for words in d3s.estimate(*views, RIG).warnings:
        assert any(words.startswith(cause) for cause in Cause)


def test_gain_and_offset_of_both_views_change_no_warning(pair):
    for gain, offset in ((1000.0, 0.0), (1.0, -0.5), (1e-3, 7.0)):
        left, right = (gain * view.astype(np.float64) + offset for view in (pair.left, pair.right))
        assert _causes(left, right) == set()
        assert _causes(left, right * 0.94 + (0.06 * offset)) == {Cause.CONTRAST}


@pytest.mark.parametrize("less", [0.0, 0.005, 0.01, 0.02, 0.05])
def test_gain_is_named_before_its_bias_passes_a_centimetre(plane, less):
    far = plane(2.0, "grass", noise=0.01, shape=SHAPE)  # where a gain moves depth the most
    found = d3s.estimate(far.left, (1 - less) * far.right, RIG)
    assert abs(np.nanmedian(found.depth_m) - 2.0) < 0.01
    is_named = any(words.startswith(Cause.CONTRAST) for words in found.warnings)
    assert is_named == (less == 0.05)


def test_same_warnings_for_any_number_of_threads(pair, monkeypatch):
    def run(threads: int) -> tuple[str, ...]:
        monkeypatch.setenv("D3S_THREADS", str(threads))
        return d3s.estimate(pair.left, 0.94 * pair.right, RIG).warnings

    assert run(1) == run(2) != ()

"""Geometry: metres from disparity, and distances that were typed wrong."""

import numpy as np
import pytest

import d3s
from d3s.calibrate.anchors import find_anchors
from d3s.calibrate.geometry import find_geometry
from d3s.calibrate.rectification import find_rectification
from d3s.errors import CalibrationError

DESIGN = d3s.Rig.paper_prototype().optics


def found_of(camera, distances_m=None, **options):
    distances_m = camera.distances_m if distances_m is None else distances_m
    return find_geometry(*camera.steps(), distances_m, DESIGN, **options)


def difference_px(camera, found) -> np.ndarray:
    """Error of the horizontal distance of the anchors."""
    errors = np.subtract([found.anchor_left_px, found.anchor_right_px], camera.anchors_px)
    return errors[0] - errors[1]


def test_disparity_in_metres(camera):
    found = found_of(camera)
    # The limits asked for are 1e-3 and 0.1 px.
    assert found.focal_baseline_px_m == pytest.approx(camera.focal_baseline_px_m, rel=1e-4)
    assert np.abs(difference_px(camera, found)).max() < 0.01
    np.testing.assert_allclose(found.depths_m, camera.distances_m, rtol=1e-4)
    assert np.abs(found.residuals_px).max() < 0.02
    assert found.disparity_offset_sigma_px == found.anchor_difference_sigma_px[0]
    assert not found.ruler_is_applied
    assert abs(found.ruler_offset_m) < 4 * found.ruler_offset_sigma_m < 1e-3
    assert found.left_out == {}


def test_infinity_has_no_disparity_after_the_correction_of_the_anchors(camera):
    """Disparity corrects wrong anchors, each in proportion to its variance."""
    matches, anchors, _ = camera.steps()
    moved = anchors.right._replace(
        place_px=(anchors.right.place_px[0] + 0.7, anchors.right.place_px[1] - 0.5),
        covariance_px2=np.diag([1.0, 1.0]),
    )
    anchors = anchors._replace(right=moved)
    rectification = find_rectification(matches, anchors)
    found = find_geometry(matches, anchors, rectification, camera.distances_m, DESIGN)
    assert found.disparity_offset_px == pytest.approx(0.7, abs=0.05)
    assert np.abs(difference_px(camera, found)).max() < 0.01
    # The left anchor was certain, so the right one moved.
    assert found.anchor_left_px == pytest.approx(anchors.left_px, abs=0.01)
    assert found.focal_baseline_px_m == pytest.approx(camera.focal_baseline_px_m, rel=1e-4)


def test_ruler_that_begins_two_centimetres_before_the_lenses(camera):
    typed = np.array(camera.distances_m) - 0.02
    found = found_of(camera, typed)
    assert found.ruler_is_applied
    assert found.ruler_offset_m == pytest.approx(0.02, abs=1e-4)
    assert found.focal_baseline_px_m == pytest.approx(camera.focal_baseline_px_m, rel=1e-4)
    np.testing.assert_allclose(found.depths_m, camera.distances_m, rtol=1e-4)
    held = found_of(camera, typed, fit_ruler=False)
    assert not held.ruler_is_applied
    assert held.ruler_offset_m == found.ruler_offset_m
    assert abs(held.focal_baseline_px_m / camera.focal_baseline_px_m - 1) > 0.01


@pytest.mark.parametrize(("frames", "limit"), [(16, 4e-4)])
def test_distances_typed_to_a_millimetre(camera, frames, limit):
    """Errors of depth as a share, RMS over typists: 0.03 % of 16 frames."""
    series = camera.but(distances_m=tuple(np.geomspace(0.25, 1.9, frames).tolist()))
    shares = []
    for seed in range(12):
        errors_m = np.random.default_rng(seed).normal(0, 1e-3, frames)
        found = found_of(series, np.array(series.distances_m) + errors_m)
        shares.append(found.focal_baseline_px_m / series.focal_baseline_px_m - 1)
    assert 0.5 * limit < np.sqrt(np.mean(np.square(shares))) < limit


@pytest.mark.parametrize("frame", [0, 7, 15])
def test_distance_typed_wrong_is_named(camera, frame):
    typed = list(camera.distances_m)
    typed[frame] += 0.1
    found = found_of(camera, typed)
    assert list(found.left_out) == [frame]
    assert f"its distance is {typed[frame]:g} m" in found.left_out[frame]
    assert f"say {camera.distances_m[frame]:.4g} m" in found.left_out[frame]
    assert found.focal_baseline_px_m == pytest.approx(camera.focal_baseline_px_m, rel=1e-4)
    assert np.isnan(found.depths_m[frame])


def test_many_wrong_distances_are_named(camera):
    typed = np.array(camera.distances_m)
    typed[3:10] += np.array([0.1, -0.1, 0.15, 0.2, -0.15, 0.12, -0.2])
    words = (
        r"the distances do not fit .*: [6-8] of 16 are beside the line, and at most a third may be"
        r"\. 3\.png: its distance is .* m; .* Are the frames in the order of the table\?$"
    )
    with pytest.raises(CalibrationError, match=words):
        found_of(camera, typed)


@pytest.mark.parametrize(
    ("offset_m", "words"),
    [
        (0.5, r"the ruler begins 0\.5 m behind the lenses, and at most 0\.3 m are believed"),
        (-0.15, r"the ruler begins 0\.15 m before the lenses, and at most 0\.0833 m are believed"),
    ],
)
def test_distances_with_an_impossible_offset(camera, offset_m, words):
    """All distances are on a line, but with an impossible offset."""
    with pytest.raises(CalibrationError, match=words + r".* Measure from the lenses to the board"):
        found_of(camera, np.array(camera.distances_m) + offset_m)


@pytest.mark.slow
def test_errors_of_the_disparity_are_those_of_typed_distances(camera):
    # The same board, with distances typed with an error of 1 mm: what changes from series to series
    # is what the errors say, and more near by than far away.
    rng = np.random.default_rng(11)
    truth = np.asarray(camera.distances_m)
    steps = camera.steps()
    errors_px, variances = [], []
    for _ in range(30):
        typed = truth + rng.normal(0, 1e-3, truth.size)
        found = find_geometry(*steps, typed.tolist(), DESIGN, fit_ruler=True)
        vergence = 1 / found.depths_m
        errors_px.append(camera.focal_baseline_px_m * (vergence - 1 / truth))
        terms = np.vander(vergence, 3, increasing=True)
        variances.append(((found.disparity_errors_px @ terms.T) ** 2).sum(axis=0))
    scatter, expected = (
        np.sqrt(np.mean(some, axis=0)) for some in (np.square(errors_px), variances)
    )
    np.testing.assert_allclose(expected, scatter, rtol=0.35)
    nearest, farthest = truth.argmin(), truth.argmax()
    assert expected[nearest] > 3 * expected[farthest]


def with_pupil(camera, pupil_m: float):
    """Matches whose magnification changes with 1/Z from frame to frame, not from view to view."""

    def scaled(places_px, view, frame):
        anchor = np.array(camera.anchors_px[view])
        return anchor + (places_px - anchor) * np.exp(-pupil_m / camera.distances_m[frame])

    def changed(pair, cameras):
        if cameras == (0, 1):
            return pair
        return pair._replace(
            first_px=scaled(pair.first_px, cameras[0], pair.first),
            second_px=scaled(pair.second_px, cameras[1], pair.second),
        )

    return camera.matches().changed(changed)


@pytest.mark.parametrize("distorts", [False, True])
def test_magnification_that_changes_with_the_distance_is_no_distance(camera, distorts):
    matches = with_pupil(camera, 2e-3)
    anchors = find_anchors(matches)
    rectification = find_rectification(matches, anchors)
    typed_m = np.array(camera.distances_m) + np.random.default_rng(4).normal(0, 1e-4, 16)
    found = find_geometry(
        matches, anchors, rectification, typed_m, DESIGN, fit_ruler=False, distorts=distorts
    )
    # Expansion alone has the boards 2 mm farther apart than they are.
    assert np.abs(found.depths_m - camera.distances_m).max() < 4e-4
    assert found.focal_baseline_px_m == pytest.approx(camera.focal_baseline_px_m, rel=1e-3)

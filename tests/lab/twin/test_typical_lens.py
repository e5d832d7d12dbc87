"""The constants of a typical lens are those of the ray trace."""

import json

import numpy as np
import pytest

import d3s
from d3s.lab.twin.geometry import Affine, perfect_views
from d3s.lab.twin.lens_errors import TYPICAL_LENS
from d3s.lab.twin.lens_view import FieldLens
from d3s.lab.twin.point_spread import disk
from d3s.optics.wavefront import pupil_points, ray_shift_px
from pages import ROOT

TRACE = json.loads((ROOT / "benchmarks" / "results" / "lens_trace.json").read_text())


SENSOR_M = 0.0121


def test_constants_are_those_of_the_trace():
    traced, lens = TRACE["typical"], TYPICAL_LENS
    assert lens.field_radius_px == traced["field_radius_px"]
    assert lens.focus_sagittal_dpt == traced["focus_sagittal_m"] / SENSOR_M**2
    assert lens.focus_tangential_dpt == traced["focus_tangential_m"] / SENSOR_M**2
    assert lens.distortion_third == traced["distortion_3"]
    assert lens.distortion_fifth == traced["distortion_5"]
    assert lens.falloff == traced["falloff"]
    assert lens.coma_field_waves == traced["coma_waves"]
    assert lens.spherical_waves == traced["spherical_waves"]
    assert lens.clipping_radius == traced["cat_eye_radius"]
    assert lens.clip_offset == pytest.approx(traced["cat_eye_shift"], abs=1e-4)


@pytest.mark.parametrize("row", TRACE["stock"], ids=lambda row: f"{row['field_deg']:g} deg")
def test_constants_describe_each_traced_field(row):
    r = row["paraxial_radius_px"] / TYPICAL_LENS.field_radius_px
    focus = (TYPICAL_LENS.focus_sagittal_dpt, TYPICAL_LENS.focus_tangential_dpt)
    traced_mm = (row["focus_sagittal_mm"], row["focus_tangential_mm"])
    focus_mm = np.multiply(focus, 1e3 * SENSOR_M**2 * r**2)
    np.testing.assert_allclose(focus_mm, traced_mm, rtol=0.03, atol=1e-4)
    distortion = TYPICAL_LENS.distortion_third * r**2 + TYPICAL_LENS.distortion_fifth * r**4
    assert 100 * distortion == pytest.approx(row["distortion_percent"], abs=2e-4)
    assert 1 - TYPICAL_LENS.falloff * r**2 == pytest.approx(row["illumination"], abs=1e-3)
    # Coma grows a little faster than the field, and spherical aberration grows with it.
    assert TYPICAL_LENS.coma_field_waves * r == pytest.approx(row["coma_waves"], abs=0.04)
    assert pytest.approx(row["spherical_waves"], abs=0.02) == TYPICAL_LENS.spherical_waves


def test_second_opening_clips_as_much_as_rays_do():
    row = TRACE["thin_and_2_mm_across"][4]
    assert row["field_deg"] == 8.5
    r = row["paraxial_radius_px"] / TYPICAL_LENS.field_radius_px
    x, y = np.meshgrid(*[np.linspace(-1, 1, 801)] * 2)
    is_open = x**2 + y**2 < 1
    shifted = (x - TYPICAL_LENS.clip_offset * r) ** 2 + y**2 < TYPICAL_LENS.clipping_radius**2
    clipped = 1 - np.sum(is_open & shifted) / np.sum(is_open)
    # The rays also bend a little more towards the rim, by spherical aberration.
    assert clipped == pytest.approx(row["clipped_share"], abs=0.006)


@pytest.mark.parametrize("row", TRACE["stock"], ids=lambda row: f"{row['field_deg']:g} deg")
def test_spots_of_the_twin_are_those_of_the_trace(row):
    optics = d3s.Rig.paper_prototype().optics
    view, _ = perfect_views(optics, (1, 1))
    lens = TYPICAL_LENS.replace(clipping=0.0)
    field = FieldLens(errors=lens, lens=optics.lens(0), psf=disk, view=view)
    aberrations = field.aberrations(Affine(0.0, 0.0, 0.0), row["paraxial_radius_px"], 0.0)
    x, y = ray_shift_px(pupil_points(2000), aberrations, optics.lens(0))
    # Pixels of 2 um. Coma and spherical aberration of higher order are left out.
    assert 2 * np.std(x) == pytest.approx(row["spot_rms_tangential_um"], rel=0.05, abs=0.2)
    assert 2 * np.std(y) == pytest.approx(row["spot_rms_sagittal_um"], rel=0.05, abs=0.2)
    assert np.mean(x) == pytest.approx(row["centroid_px"], abs=0.25)

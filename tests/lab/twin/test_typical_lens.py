"""The constants of a typical lens are those of the ray trace."""

import json
import math

import numpy as np
import pytest

import d3s
from d3s.lab.twin import typical_lenses
from d3s.lab.twin.blur import BlurModel
from d3s.lab.twin.geometry import Affine, perfect_views
from d3s.lab.twin.lens_view import FieldLens
from d3s.lab.twin.typical_lenses import TYPICAL_LENS
from d3s.optics.wavefront import pupil_points, ray_shift_px
from pages import ROOT

TRACE = json.loads((ROOT / "benchmarks" / "results" / "lens_trace.json").read_text())


def test_constants_are_those_of_the_trace():
    for key, value in TRACE["typical"].items():
        assert getattr(typical_lenses, key.upper()) == value, key


@pytest.mark.parametrize("row", TRACE["stock"], ids=lambda row: f"{row['field_deg']:g} deg")
def test_constants_describe_each_traced_field(row):
    r = row["paraxial_radius_px"] / typical_lenses.FIELD_RADIUS_PX
    focus_m = (typical_lenses.FOCUS_SAGITTAL_M * r**2, typical_lenses.FOCUS_TANGENTIAL_M * r**2)
    traced_mm = (row["focus_sagittal_mm"], row["focus_tangential_mm"])
    np.testing.assert_allclose(np.multiply(focus_m, 1e3), traced_mm, rtol=0.03, atol=1e-4)
    distortion = typical_lenses.DISTORTION_3 * r**2 + typical_lenses.DISTORTION_5 * r**4
    assert 100 * distortion == pytest.approx(row["distortion_percent"], abs=2e-4)
    assert 1 - typical_lenses.FALLOFF * r**2 == pytest.approx(row["illumination"], abs=1e-3)
    # Coma grows a little faster than the field, and spherical aberration grows with it.
    assert typical_lenses.COMA_WAVES * r == pytest.approx(row["coma_waves"], abs=0.04)
    assert pytest.approx(row["spherical_waves"], abs=0.02) == typical_lenses.SPHERICAL_WAVES


def test_second_opening_clips_as_much_as_rays_do():
    row = TRACE["thin_and_2_mm_across"][4]
    assert row["field_deg"] == 8.5
    r = row["paraxial_radius_px"] / typical_lenses.FIELD_RADIUS_PX
    x, y = np.meshgrid(*[np.linspace(-1, 1, 801)] * 2)
    is_open = x**2 + y**2 < 1
    shifted = (x - typical_lenses.CAT_EYE_SHIFT * r) ** 2 + y**2 < typical_lenses.CAT_EYE_RADIUS**2
    clipped = 1 - np.sum(is_open & shifted) / np.sum(is_open)
    # The rays also bend a little more towards the rim, by spherical aberration.
    assert clipped == pytest.approx(row["clipped_share"], abs=0.006)


def test_focus_of_a_thin_lens_with_its_stop_in_contact():
    """By Seidel, image surfaces of an achromat curve by about 1.7 / f and 3.7 / f."""
    focal_m = 1 / d3s.Rig.paper_prototype().optics.optical_power_left_dpt
    height_m = typical_lenses.FIELD_RADIUS_PX * 2e-6
    sag_m = height_m**2 / (2 * focal_m)
    assert pytest.approx(1.7 * sag_m, rel=0.15) == typical_lenses.FOCUS_SAGITTAL_M
    assert pytest.approx(3.7 * sag_m, rel=0.15) == typical_lenses.FOCUS_TANGENTIAL_M


def test_light_falls_about_as_the_fourth_power_of_the_cosine():
    angle = math.atan(typical_lenses.FIELD_RADIUS_PX * 2e-6 / 12.1e-3)
    assert pytest.approx(math.cos(angle) ** 4, abs=0.01) == 1 - typical_lenses.FALLOFF


@pytest.mark.parametrize("row", TRACE["stock"], ids=lambda row: f"{row['field_deg']:g} deg")
def test_spots_of_the_twin_are_those_of_the_trace(row):
    optics = d3s.Rig.paper_prototype().optics
    view, _ = perfect_views(optics, (1, 1))
    lens = TYPICAL_LENS.replace(clipping=0.0)
    field = FieldLens(errors=lens, lens=optics.lens(0), blur_model=BlurModel(), view=view)
    aberrations = field.aberrations(Affine(0.0, 0.0, 0.0), row["paraxial_radius_px"], 0.0)
    x, y = ray_shift_px(pupil_points(2000), aberrations, optics.lens(0))
    # Pixels of 2 um. Coma and spherical aberration of higher order are left out.
    assert 2 * np.std(x) == pytest.approx(row["spot_rms_tangential_um"], rel=0.05, abs=0.2)
    assert 2 * np.std(y) == pytest.approx(row["spot_rms_sagittal_um"], rel=0.05, abs=0.2)
    assert np.mean(x) == pytest.approx(row["centroid_px"], abs=0.25)

"""Correction of fits of shrunk views: kept by the rig, owned by the method."""

import pytest

import d3s
from d3s.errors import DepthWarning, InputError, RigError
from d3s.estimate.joint.correction import METHOD, VERSION, SizeCorrection
from d3s.rig import Correction
from lens_pairs import lens_rig

SOME = SizeCorrection(half_size_px=((0.05, 0.01, -0.02), (0.03,)), quarter_size_px=((-0.07,),))


def test_a_rig_file_keeps_it(tmp_path):
    rig = SOME.applied_to(lens_rig())
    rig.save(tmp_path / "rig.toml")
    again = d3s.Rig.load(tmp_path / "rig.toml")
    assert again == rig
    assert SizeCorrection.of(again.calibration) == SOME
    assert SizeCorrection().applied_to(again) == lens_rig()
    assert [SOME.maps_px(scale) for scale in (1, 2, 4)] == [(), *SOME]


def test_a_file_that_has_it_among_the_maps_of_the_lenses_is_read():
    text = lens_rig().to_text()
    maps = "half_size_disparity_px = [[0.05, 0.01, -0.02], [0.03]]\n{} = [[-0.07]]\n"
    marked = text.replace("disparity_sigma_px", maps + "disparity_sigma_px", 1)
    older = marked.format("quarter_size_disparity_px")
    assert d3s.Rig.from_text(older) == SOME.applied_to(lens_rig())
    with pytest.raises(RigError, match="third_size_disparity_px is unknown"):
        d3s.Rig.from_text(marked.format("third_size_disparity_px"))
    none = text.replace("disparity_sigma_px", "half_size_disparity_px = []\ndisparity_sigma_px", 1)
    assert d3s.Rig.from_text(none) == lens_rig()


def test_that_of_another_version_or_method_is_not_used():
    def known(method, version):
        one = Correction(method=method, version=version, disparity_px={"half_size": ((1.0,),)})
        return lens_rig(corrections=(one,)).calibration

    with pytest.warns(DepthWarning, match=r"version=2 of joint must be 1 to be used.*again"):
        assert SizeCorrection.of(known(METHOD, VERSION + 1)) == SizeCorrection()
    assert SizeCorrection.of(known("other", VERSION)) == SizeCorrection()
    assert SizeCorrection.of(None) == SizeCorrection()


def test_it_needs_a_calibration():
    with pytest.raises(InputError, match="has no calibration"):
        SOME.applied_to(d3s.Rig.paper_prototype())

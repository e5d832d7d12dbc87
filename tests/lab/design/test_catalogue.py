"""Catalogue of sensors and lenses, and files that add to it."""

import pytest

from d3s.errors import D3SError
from d3s.lab.design.candidates import load_catalogue


def test_file_of_a_user_adds_and_replaces(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(
        '[[sensor]]\nname = "mine"\npixel_pitch_m = 5e-6\nrows_px = 480\ncols_px = 640\n'
        '[[lens]]\nname = "AC050-010-A"\nfocal_length_m = 11e-3\ndiameter_m = 5e-3\n'
    )
    catalogue = load_catalogue(path)
    assert catalogue.sensor("mine").cols_px == 640
    assert catalogue.lens("AC050-010-A").focal_length_m == 11e-3
    assert len(catalogue.sensors) == len(load_catalogue().sensors) + 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[sensor]]\nname = 'a'\npixel_pitch_m = 2", r"sensor\[0\].pixel_pitch_m=2 must be below"),
        ("[[camera]]\nname = 'a'", "camera is unknown. Known are"),
        ("[sensor]\nname = 'a'", "sensor=.* must be a list"),
        ("[[sensor", "is not valid TOML"),
    ],
)
def test_wrong_file_is_named(tmp_path, text, words):
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(D3SError, match=words) as caught:
        load_catalogue(path)
    assert str(path) in str(caught.value)


def test_unknown_name_has_a_hint():
    with pytest.raises(D3SError, match="sensor='IMX217' is not in the catalogue"):
        load_catalogue().sensor("IMX217")
    with pytest.raises(D3SError, match="cannot be read"):
        load_catalogue("/nowhere/own.toml")

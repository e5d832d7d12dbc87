"""Files of colour sensors and in colour: luminance, colours, warnings."""

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import gaussian_filter

from calibrations import calibration
from d3s import Rig, load_pair
from d3s.errors import InputError
from d3s.files import write_image
from d3s.files.images import read_image
from d3s.rig.bayer import luminance, on_sites

SHAPE = (120, 260)
RNG = np.random.default_rng(0)
GREY = 0.4 + 0.5 * gaussian_filter(RNG.normal(size=SHAPE), 2)
RAW = GREY * on_sites((0.5, 1.0, 0.7), "RGGB", SHAPE) + 0.005 * RNG.normal(size=SHAPE)
GAINS = (2.0, 1.0, 1 / 0.7)
MONO = Rig.paper_prototype().replace(calibration=calibration())
COLOUR = MONO.replace(calibration=calibration(bayer="RGGB", channel_gains=GAINS))


@pytest.fixture
def raw(tmp_path):
    path = tmp_path / "raw.png"
    write_image(path, np.clip(RAW, 0, 1).astype(np.float32))
    return path


def test_rig_that_knows_its_colours_splits_without_a_word(raw):
    pair = load_pair(raw, rig=COLOUR)
    assert pair.warnings == pair.remarks == ()
    expected = MONO.split(luminance(read_image(raw), "RGGB", GAINS))
    np.testing.assert_allclose(pair.left, expected[0], atol=1e-6)


def test_unsaid_frame_of_a_colour_sensor_is_noticed(raw):
    (warning,) = load_pair(raw, rig=MONO).warnings
    assert "raw.png looks like the raw frame of a colour sensor" in warning
    assert "--bayer none" in warning
    assert load_pair(raw, rig=MONO, bayer="none").warnings == ()
    assert load_pair(raw, raw).warnings  # views of a pair, too
    write_image(raw.with_name("mono.png"), GREY.astype(np.float32))
    assert load_pair(raw.with_name("mono.png"), rig=MONO).warnings == ()


def test_said_order_serves_a_rig_without_one(raw):
    pair = load_pair(raw, rig=MONO, bayer="RGGB")
    assert pair.warnings == ()
    np.testing.assert_allclose(pair.left, load_pair(raw, rig=COLOUR).left, atol=0.01)


def test_contradictions_are_refused_in_words(raw, tmp_path):
    with pytest.raises(InputError, match="bayer='GRBG', and the rig was calibrated with RGGB"):
        load_pair(raw, rig=COLOUR, bayer="GRBG")
    with pytest.raises(InputError, match="'RGB' must be RGGB"):
        load_pair(raw, rig=MONO, bayer="RGB")
    Image.fromarray(RNG.integers(0, 255, (*SHAPE, 3), dtype=np.uint8)).save(tmp_path / "c.png")
    with pytest.raises(InputError, match=r"c\.png is in colour already.*raw RGGB"):
        load_pair(tmp_path / "c.png", rig=COLOUR)


def test_colours_of_a_photograph_are_kept_exactly(tmp_path):
    picture = RNG.integers(0, 256, (20, 30, 3), dtype=np.uint8)
    Image.fromarray(picture).save(tmp_path / "a.png")
    pair = load_pair(tmp_path / "a.png", tmp_path / "a.png", keep_colour=True)
    np.testing.assert_array_equal(pair.colour, picture)
    halves = load_pair(tmp_path / "a.png", side_by_side=True, keep_colour=True)
    np.testing.assert_array_equal(halves.colour, picture[:, :15])
    assert load_pair(tmp_path / "a.png", tmp_path / "a.png").colour is None


def test_colours_of_a_raw_frame_are_those_of_the_scene(tmp_path):
    sites = on_sites((0, 1, 2), "RGGB", SHAPE).astype(int)
    seen = np.choose(sites, [0.45 * GREY, 0.5 * GREY, 0.1 * GREY])
    write_image(tmp_path / "r.png", seen.astype(np.float32))
    plain = COLOUR.replace(calibration=calibration(bayer="RGGB", channel_gains=(1.0, 1.0, 1.0)))
    colour = load_pair(tmp_path / "r.png", rig=plain, keep_colour=True).colour
    assert colour.shape == (61, 81, 3)
    red, green, blue = colour[10:-10, 10:-10].mean(axis=(0, 1))
    assert green > red > 0.9 * green
    assert blue < 0.6 * green  # by the curve of screens, a fifth of the light is half as bright

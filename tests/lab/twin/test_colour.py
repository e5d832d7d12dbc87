"""Coloured textures, and raw frames of colour sensors."""

import numpy as np
import pytest
from PIL import Image

import d3s
from d3s.errors import SceneError
from d3s.rig.bayer import site_channels
from small_camera import SMALL_LAYOUT, small_rig

WALL = d3s.Plane(depth_m=0.4, texture=d3s.Texture(pattern="stone", seed=3, colour=0.6))


def raw(**options):
    return d3s.simulate_raw(WALL, small_rig(), layout=SMALL_LAYOUT, **options).image


def test_each_pixel_has_the_channel_of_its_filter():
    shares = (0.5, 1.0, 0.25)
    plain = d3s.Plane(depth_m=0.4, texture=d3s.Texture(pattern="stone", seed=3))
    grey = d3s.simulate_raw(plain, small_rig(), layout=SMALL_LAYOUT).image
    sensor = d3s.Sensor(bayer="GRBG", channel_shares=shares)
    found = d3s.simulate_raw(plain, small_rig(), layout=SMALL_LAYOUT, noise=sensor).image
    for i, j in np.ndindex(2, 2):
        share = shares[site_channels("GRBG")[i, j]]
        np.testing.assert_allclose(found[i::2, j::2], share * grey[i::2, j::2], atol=1e-6)


def test_channels_of_a_coloured_texture_differ_and_their_mean_is_what_a_mono_sensor_sees():
    mono = raw()
    orders = ("RGGB", "GRBG", "BGGR")
    # Pixel (0, 0) of each block is red, green and blue in turn.
    channels = [raw(bayer=order)[::2, ::2] for order in orders]
    np.testing.assert_allclose(np.mean(channels, axis=0), mono[::2, ::2], atol=2e-5)
    lit = mono[::2, ::2] > 0.1
    red, green, _ = (one[lit] for one in channels)
    assert 0.1 < np.corrcoef(red, green)[0, 1] < 0.9


def test_photo_in_colour_has_its_channels(tmp_path):
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)
    picture[:, :, 2] = 0  # no blue at all
    Image.fromarray(picture).save(tmp_path / "poster.png")
    scene = d3s.Plane(depth_m=0.4, texture=d3s.Photo(image=tmp_path / "poster.png"))
    frame = d3s.simulate_raw(scene, small_rig(), layout=SMALL_LAYOUT, bayer="RGGB").image
    middle = frame[200:230, 150:250]
    assert np.abs(middle[1::2, 1::2]).max() < 1e-6
    assert middle[::2, ::2].std() > 0.02


def test_filters_need_an_order_and_pairs_have_no_colours():
    with pytest.raises(SceneError, match=r"channel_shares.*needs bayer"):
        d3s.Sensor(channel_shares=(0.5, 1.0, 0.5))
    with pytest.raises(SceneError, match="is for raw frames"):
        d3s.simulate(WALL, small_rig(), noise=d3s.Sensor(bayer="RGGB"), shape=(20, 30))

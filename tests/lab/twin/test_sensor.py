"""The sensor: images have the noise, gain, offset and levels of its fields."""

import numpy as np
import pytest

from d3s.errors import InputError, SceneError
from d3s.lab.twin.sensor import Sensor, as_sensor, expose_pair

SHAPE = (400, 500)  # 200 000 pixels: the standard deviation of noise is measured to 0.16 %
EVERYTHING = {
    "noise": 0.01,
    "full_well_e": 8000.0,
    "read_noise_e": 5.0,
    "gain": (0.9, 1.1),
    "offset": (0.01, 0.02),
    "vignetting": 0.3,
    "gain_pattern": 0.01,
    "offset_pattern": 0.005,
    "column_noise": 0.002,
    "row_noise": 0.001,
    "hot_pixels": 0.001,
    "pattern_seed": 3,
    "bits": 12,
}


def flat(level, shape=SHAPE):
    return np.full(shape, level, dtype=np.float32)


def exposed(sensor, level=0.5, *, camera=0, seed=1, shape=SHAPE, **options):
    rng = np.random.default_rng(seed)
    return sensor.expose(flat(level, shape), camera=camera, rng=rng, **options)


def sd(image):
    return float(np.std(image, dtype=np.float64))


def mean(image):
    return float(np.mean(image, dtype=np.float64))


def test_the_ideal_sensor_gives_back_what_falls_on_it():
    light = np.random.default_rng(0).normal(0.5, 1, (31, 17)).astype(np.float32)
    image = Sensor().expose(light, camera=1, rng=np.random.default_rng(0))
    assert image.dtype == np.float32
    np.testing.assert_array_equal(image, light)
    assert not np.shares_memory(image, light)


@pytest.mark.parametrize(
    ("values", "level", "sigma"),
    [
        ({"noise": 0.01}, 0.9, 0.01),
        ({"full_well_e": 1e4}, 0.25, 0.005),
        ({"full_well_e": 10.0}, 0.4, 0.2),
        ({"full_well_e": 1e4, "read_noise_e": 120.0}, 0.25, 0.013),
        ({"noise": 0.012, "full_well_e": 1e4, "read_noise_e": 90.0}, 0.64, 0.017),
    ],
)
def test_noise_is_as_its_numbers_say(values, level, sigma):
    sensor = Sensor(**values)
    image = exposed(sensor, level)
    assert sd(image) == pytest.approx(sigma, rel=0.01)
    assert mean(image) == pytest.approx(level, abs=5 * sigma / image.size**0.5)
    assert float(sensor.noise_sigma(level)) == pytest.approx(sigma, rel=1e-3)


def test_light_below_zero_stays_and_has_no_shot_noise():
    np.testing.assert_array_equal(exposed(Sensor(full_well_e=100.0), -0.03), flat(-0.03))
    image = exposed(Sensor(full_well_e=100.0, read_noise_e=2.0), -0.03)
    assert mean(image) == pytest.approx(-0.03, abs=2e-4)
    assert sd(image) == pytest.approx(0.02, rel=0.01)
    assert float(Sensor(full_well_e=100.0).noise_sigma(-0.03)) == 0


def test_gain_and_offset_are_of_each_view():
    sensor = Sensor(gain=(0.5, 1.25), offset=(0.125, -0.25))
    np.testing.assert_array_equal(exposed(sensor, 0.5, camera=0), flat(0.375))
    np.testing.assert_array_equal(exposed(sensor, 0.5, camera=1), flat(0.375))
    np.testing.assert_array_equal(exposed(sensor, 1.0, camera=1), flat(1.0))


def test_vignetting_takes_its_share_in_the_corners():
    image = exposed(Sensor(vignetting=0.4), 0.5, shape=(61, 81))
    assert image[30, 40] == 0.5
    np.testing.assert_allclose(image[[0, 0, -1, -1], [0, -1, 0, -1]], 0.3, rtol=1e-6)
    # Half-sides 30 and 40, half-diagonal 50: losses of 0.4 (3/5)² and 0.4 (4/5)².
    np.testing.assert_allclose(image[[0, -1], 40], 0.5 * (1 - 0.144), rtol=1e-6)
    np.testing.assert_allclose(image[30, [0, -1]], 0.5 * (1 - 0.256), rtol=1e-6)


def test_the_pattern_is_the_same_in_every_frame():
    sensor = Sensor(gain_pattern=0.02, offset_pattern=0.03)
    first = exposed(sensor, seed=1)
    np.testing.assert_array_equal(first, exposed(sensor, seed=2))
    np.testing.assert_array_equal(first, exposed(Sensor(**dict(sensor)), seed=3))
    for other in (
        exposed(sensor, camera=1),
        exposed(sensor.replace(pattern_seed=1)),
        exposed(sensor.replace(pattern_seed=1), camera=1),
    ):
        assert abs(np.corrcoef(first.ravel(), other.ravel())[0, 1]) < 0.015  # 6 sigma


@pytest.mark.parametrize(("name", "axis"), [("column_noise", 0), ("row_noise", 1)])
def test_lines_have_one_offset_each_new_in_each_frame(name, axis):
    sensor = Sensor(**{name: 0.02})
    shape = (3, 20_000) if axis == 0 else (20_000, 3)
    first, second = (exposed(sensor, 0.5, shape=shape, seed=seed) for seed in (1, 2))
    assert np.ptp(first, axis=axis).max() == 0
    lines, others = first.mean(axis=axis), second.mean(axis=axis)
    assert float(sensor.noise_sigma(0.5)) == pytest.approx(0.02)
    assert sd(lines) == pytest.approx(0.02, rel=0.03)
    assert mean(lines) == pytest.approx(0.5, abs=7e-4)  # five sigma
    assert abs(np.corrcoef(lines, others)[0, 1]) < 0.04
    assert abs(np.corrcoef(lines[1:], lines[:-1])[0, 1]) < 0.04


def test_hot_pixels_stay_where_they_are():
    sensor = Sensor(noise=0.01, hot_pixels=0.002, offset=(0.3, 0.0))
    hot = exposed(sensor, 0.1, seed=1) == 1
    np.testing.assert_array_equal(hot, exposed(sensor, 0.2, seed=2) == 1)
    assert float(np.mean(hot)) == pytest.approx(0.002, abs=5e-4)  # five sigma
    more = exposed(sensor.replace(hot_pixels=0.004), 0.1) == 1
    assert np.all(more[hot])
    for other in (
        exposed(sensor, 0.1, camera=1) == 1,
        exposed(sensor.replace(pattern_seed=1), 0.1) == 1,
    ):
        assert np.sum(hot & other) < 8
    assert float(sensor.noise_sigma(0.1)) == pytest.approx(0.01)


def test_saturation_clips_and_nothing_else_does():
    light = np.array([[-0.5, 0.0, 0.3, 1.0, 7.0]], dtype=np.float32)
    rng = np.random.default_rng(0)
    image = Sensor(saturates=True).expose(light, camera=0, rng=rng)
    np.testing.assert_array_equal(image, np.array([[0, 0, 0.3, 1, 1]], dtype=np.float32))
    noisy = exposed(Sensor(noise=0.1, saturates=True), 1.0)
    assert noisy.max() == 1
    assert float(np.mean(noisy == 1)) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("bits", [8, 10, 12])
def test_grey_levels_are_exact(bits):
    top = 2**bits - 1
    light = np.linspace(-0.2, 1.2, 60000, dtype=np.float32).reshape(200, 300)
    image = Sensor(bits=bits).expose(light, camera=0, rng=np.random.default_rng(0))
    levels = (np.arange(top + 1) / top).astype(np.float32)
    np.testing.assert_array_equal(np.unique(image), levels)
    assert np.abs(image - np.clip(light, 0, 1)).max() <= 0.5 / top * (1 + 1e-3)
    again = Sensor(bits=bits).expose(image, camera=0, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(again, image)


def pair(seed, sensor=None):
    light = np.random.default_rng(5).random((60, 70), dtype=np.float32)
    return expose_pair(light, light, Sensor(**EVERYTHING) if sensor is None else sensor, seed)


def test_a_seed_is_a_pair_whatever_the_number_of_threads(monkeypatch):
    images = []
    for threads in ("1", "2", "7"):
        monkeypatch.setenv("D3S_THREADS", threads)
        images.append(pair((4, 2)))
    for left, right in images:
        assert left.tobytes() == images[0][0].tobytes()
        assert right.tobytes() == images[0][1].tobytes()


def test_seeds_and_frames_differ():
    frames = [pair(seed)[0].tobytes() for seed in (1, 2, (1, 1), (1, 2), (2, 1))]
    assert len(set(frames)) == len(frames)
    assert pair(1)[0].tobytes() == pair((1, 0))[0].tobytes() == pair(np.int64(1))[0].tobytes()
    assert pair((1, 2))[0].tobytes() == pair(np.array([1, 2]))[0].tobytes()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"noise": float("nan")}, "noise=nan must be a finite number."),
        (
            {"noise": 2.55},
            "noise=2.55 must be below 1: it is of full scale. Did you pass grey levels? Of 8 bits, "
            "that is 0.01.",
        ),
        (
            {"read_noise_e": 3.0},
            "read_noise_e=3.0 needs full_well_e, the electrons at full scale. Pass it too, or pass "
            "noise, which is of full scale.",
        ),
        (
            {"read_noise_e": 30.0, "full_well_e": 20.0},
            "read_noise_e=30.0 must be below full_well_e=20: both are in electrons.",
        ),
        ({"gain": (1.0, -0.5)}, "gain[1]=-0.5 must be at least 0."),
        (
            {"gain": (1.0,)},
            "gain[1] is missing: the share of light that the left and the right lens pass.",
        ),
        ({"bits": 9}, "bits=9 must be 8, 10 or 12, or None for an image without steps."),
        ({"vigneting": 0.1}, "vigneting is unknown. Did you mean vignetting?"),
    ],
)
def test_a_wrong_sensor_says_what_is_wrong(values, words):
    with pytest.raises(SceneError) as caught:
        Sensor(**values)
    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        (-0.1, r"^noise=-0\.1 must be at least 0"),
        ("0.1", r"^noise='0\.1' must be a Sensor, or a number"),
        (True, "^noise=True must be a Sensor, or a number"),
    ],
)
def test_what_is_no_noise(noise, words):
    with pytest.raises(SceneError, match=words):
        as_sensor(noise)


@pytest.mark.parametrize(
    ("light", "words"),
    [
        (np.zeros(5, np.float32), r"shape \(5,\), and must be \(rows, cols\)"),
        (np.zeros((5, 5), np.uint8), "type uint8, and must be float32, of full scale. Divide"),
        (np.array([[0, np.nan, 1]], np.float32), "from nan to nan, and must be finite"),
        (np.array([[0, 1e30]], np.float32), r"from 0 to 1e\+30, and must be .* of full scale"),
    ],
)
def test_light_that_is_none(light, words):
    with pytest.raises(InputError, match=words):
        Sensor(full_well_e=1e4).expose(light, camera=0, rng=np.random.default_rng(0))


@pytest.mark.parametrize("seed", [-1, None, "7", (), {1, 2}])
def test_a_seed_that_is_none(seed):
    with pytest.raises(InputError, match=r"^seed=.* must be a whole number of at least 0, or sev"):
        pair(seed)

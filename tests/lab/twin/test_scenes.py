"""Invalid scenes: typical mistakes, and the messages for them."""

import numpy as np
import pytest

import d3s
from d3s.errors import D3SError, InputError, SceneError
from d3s.files.images import write_image
from twin_tools import PROTOTYPE

SHAPE = (120, 160)
PLANE = d3s.Plane(depth_m=0.5)


def simulate(scene=PLANE, **options):
    return d3s.simulate(scene, **{"rig": PROTOTYPE, "shape": SHAPE, **options})


def words_of(make, kind=SceneError):
    with pytest.raises(kind) as caught:
        make()
    return str(caught.value)


@pytest.fixture
def nothing_is_rendered(monkeypatch):
    def fail(*_, **__):
        raise AssertionError("something was rendered")

    monkeypatch.setattr("d3s.lab.twin.pair.render_through", fail)


@pytest.mark.parametrize(
    ("depth_m", "words"),
    [
        (0, "depth_m=0 must be above 0: it is in metres."),
        (float("nan"), "depth_m=nan must be a finite number."),
        ("1", "depth_m='1' must be a finite number."),
        (None, "depth_m is missing: the distance along the axis of the left camera."),
        (
            20000.0,
            "depth_m=20000.0 must be at most 10000: it is in metres. Did you pass millimetres?",
        ),
    ],
)
def test_depth_that_is_none(depth_m, words):
    assert words_of(lambda: d3s.Plane(depth_m=depth_m)) == words


@pytest.mark.parametrize(
    ("texture", "words"),
    [
        (np.full((4, 4), 0.5), "has one colour (0.5): without contrast there is nothing to match"),
        (np.zeros((4, 4), dtype=np.uint8), "has uint8 values, and floats from 0 to 1 are needed."),
        (np.zeros((4, 4, 3)), "has shape (4, 4, 3), and a grey image of at least 2x2 is needed"),
        (np.array([[0, np.nan], [1, 0]]), "has values that are not finite. Fill them first."),
        ("", "is empty: name a pattern"),
        ("leavs", "texture='leavs' is neither a pattern nor a file or folder. Did you mean leaves"),
        ("no/such.png", "is neither a pattern nor a file or folder. Known patterns are leaves, st"),
        (5, "texture=5 must be the name of a pattern, an image file or folder, a Texture, a Photo"),
        ({"pattern": "leavs"}, "texture.pattern='leavs' must be one of leaves, stone,"),
        ({"image": "x", "with_m": 1.0}, "texture.with_m is unknown. Did you mean width_m?"),
    ],
)
def test_texture_that_is_none(texture, words):
    said = words_of(lambda: d3s.Plane(depth_m=1.0, texture=texture))
    assert words in said
    assert said.startswith("texture")


def test_image_that_cannot_be_read_is_refused(tmp_path, nothing_is_rendered):
    path = tmp_path / "photo.png"
    write_image(path, np.random.default_rng(0).random((64, 64)))
    path.write_bytes(path.read_bytes()[:2000])
    said = words_of(lambda: simulate(d3s.Plane(depth_m=0.5, texture=path)), InputError)
    assert said.startswith(f"{path}: ends before")
    assert "damaged or was not copied whole" in said
    missing = d3s.Photo(image=str(tmp_path / "none.png"))
    said = words_of(lambda: simulate(d3s.Plane(depth_m=0.5, texture=missing)), InputError)
    assert said == f"{tmp_path / 'none.png'}: there is no such file. Check the name."
    path.write_text("no image")
    assert issubclass(InputError, D3SError)
    words_of(lambda: simulate(d3s.Plane(depth_m=0.5, texture=path)), InputError)


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ((0, 5), "shape=(0, 5) must have from 1 to 64000000 pixels."),
        ((100000, 100000), "shape=(100000, 100000) must have from 1 to 64000000 pixels."),
        ((1.5, 4), "shape=(1.5, 4) must be (rows, cols), two whole numbers."),
        ("120x160", "shape='120x160' must be (rows, cols), two whole numbers."),
    ],
)
def test_shape_that_is_none(shape, words, nothing_is_rendered):
    assert words_of(lambda: simulate(shape=shape)) == words


@pytest.mark.parametrize("shape", [(12, 160), (160, 12)])
def test_shape_too_small_for_the_blur(shape, nothing_is_rendered):
    # 6.05 px m (2.5 - 83.78 + 1/0.0121) = 8.26 px of radius in the right camera: 9 px to each side
    # of the centre.
    said = words_of(lambda: simulate(d3s.Plane(depth_m=0.4), shape=shape))
    assert said == (
        f"shape={shape} is too small for the blur: a point spreads over 19 px. Make it larger, or "
        "move the scene nearer to the focus distance."
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"psf": "disc"}, "psf='disc' "),
        ({"wavelength_m": 550.0}, "wavelength_m=550.0 must be below 2e-05: it is in metres."),
        ({"rig": "rig.toml"}, "rig='rig.toml' must be a Rig. Read a rig file with Rig.load."),
        ({"mounts": (1, 2)}, "mounts=(1, 2) must be two of Mount, left and right."),
        (
            {"scene": 5},
            "scene=5 must be a Plane, TiltedPlane, BentPlane, Layered, DepthMapScene or",
        ),
    ],
)
def test_argument_that_is_none(options, words, nothing_is_rendered):
    assert words_of(lambda: simulate(**options)).startswith(words)


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (np.full(SHAPE, 2.0), "must be from 0 (nothing there) to 1 (covers what is behind)."),
        (np.full(SHAPE, np.nan), "has values that are not finite."),
        (np.ones((*SHAPE, 3)), "has shape (120, 160, 3), and a grey mask of at least 2x2"),
        (5, "mask=5 must be an array of the frame's shape, or the name of an image file."),
    ],
)
def test_mask_that_is_none(mask, words):
    said = words_of(lambda: d3s.Layer(depth_m=1.0, mask=mask))
    assert said.startswith("mask=")
    assert words in said


@pytest.mark.parametrize("offset_px", [0.0, -31.0])
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("slope", [2.0, 6.0])
def test_plane_that_reaches_the_horizon(slope, sign, offset_px, nothing_is_rendered):
    # Focal length 100 px: the horizon is 50, 33 or 17 px from the axis. The frame ends at 20 px,
    # and its surroundings are rendered too, for the blur.
    rig = d3s.Rig.from_pinhole(focal_length_px=100.0, baseline_m=0.1, disparity_offset_px=offset_px)
    scene = d3s.TiltedPlane(depth_m=1.0, tilt_x_rad=sign * float(np.arctan(slope)))
    said = words_of(lambda: simulate(scene, rig=rig, shape=(40, 40)))
    assert said.startswith("the plane reaches the horizon in or beside the view: depth_m=1, tilt_x")
    assert said.endswith("Tilt it less.")


def test_wrong_layer_is_named_by_its_number():
    said = words_of(lambda: d3s.Layered(layers=[{"depth_m": 1.0}, {"depth_m": -1.0, "mask": 3}]))
    assert said.splitlines() == [
        "layers[1].depth_m=-1.0 must be above 0: it is in metres.",
        "layers[1].mask=3 must be an array of the frame's shape, or the name of an image file.",
    ]
    assert words_of(lambda: d3s.Layered(layers=5)) == "layers=5 must be a list."
    assert words_of(lambda: d3s.Layered(layers=[PLANE])).endswith(
        "must be Layer, or a table of its fields."
    )

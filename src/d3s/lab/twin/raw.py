"""`simulate_raw`: a scene and a rig in, a raw sensor frame with its truth out.

Both views lie side by side on one sensor. Each lens lights a round field around its axis; a
partition separates the fields, except for its half-shadow. The frame is rotated by 180 degrees so
that the views are upright. The left lens is then on the right half: each lens rotates its image
about its own axis, and rotating the whole sensor back exchanges the halves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from d3s.errors import SceneError
from d3s.lab.twin.geometry import Mount, ScenePart, View, Window
from d3s.lab.twin.layers import PlacedLayer, placed_layers, sheets_of_layers
from d3s.lab.twin.lens_errors import PERFECT_LENS, LensErrors
from d3s.lab.twin.lens_view import (
    FieldLens,
    extra_reach_px,
    field_lenses,
    front_through,
    lens_light,
    render_through,
)
from d3s.lab.twin.pair import check_camera
from d3s.lab.twin.point_spread import Psf, PsfName, psf_of
from d3s.lab.twin.scenes import DepthMapScene, Scene
from d3s.lab.twin.sensor import Sensor, as_sensor, generator, seed_sequence
from d3s.record import short_repr
from d3s.rig import Optics, Rig
from d3s.rig.bayer import Bayer, site_channels
from d3s.types import FloatArray, Image

# Errors of a home-made mount: a fraction of a degree, a few pixels, and for the right lens the
# 0.12 % magnification of the prototype's larger sensor distance.
DEFAULT_MOUNTS = (
    Mount(scale=1.0, roll_rad=0.004, shift_x_px=6.3, shift_y_px=-4.1),
    Mount(scale=1.0012, roll_rad=-0.0065, shift_x_px=-8.7, shift_y_px=5.2),
)


class RawLayout(ScenePart):
    """Size of the sensor, and the part that each lens lights."""

    rows_px: int = Field(default=2160, ge=16, le=16384, description="the height of the sensor")
    cols_px: int = Field(default=3840, ge=16, le=16384, description="the width of the sensor")
    left_lens: Literal["left", "right"] = Field(
        default="right", description="the half of the upright frame that the left lens lights"
    )
    field_radius_px: float = Field(
        default=1060.0, gt=4, le=1e5, description="the radius of the field of each lens"
    )
    field_edge_px: float = Field(
        default=30.0, ge=1, le=1e4, description="the width over which a field fades out"
    )
    partition_px: float = Field(
        default=30.0, ge=0, le=1e3, description="the width of the shadow of the partition"
    )
    partition_edge_px: float = Field(
        default=40.0, ge=1, le=1e3, description="the width of the half-shadow of the partition"
    )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the sensor."""
        return self.rows_px, self.cols_px

    @property
    def middle_px(self) -> tuple[float, float]:
        """Centre (x, y) of the sensor, in pixels."""
        return (self.cols_px - 1) / 2, (self.rows_px - 1) / 2

    def side(self, camera: int) -> int:
        """-1 if the lens lights the left half of the frame, 1 if it lights the right half."""
        is_right_half = (camera == 0) == (self.left_lens == "right")
        return 1 if is_right_half else -1


@dataclass(frozen=True, kw_only=True, eq=False)
class RawFrame:
    """Raw frame of the sensor, and its truth."""

    image: Image
    depth_m: Image  # seen by the left lens at each pixel; NaN outside its field
    rig: Rig
    layout: RawLayout
    mounts: tuple[Mount, Mount]
    lenses: tuple[LensErrors, LensErrors] = (PERFECT_LENS, PERFECT_LENS)

    @property
    def anchor_left_px(self) -> tuple[float, float]:
        """Pixel (x, y) at which the left lens images a point at infinity on its axis."""
        return _views(self.rig.optics, self.layout, self.mounts)[0].centre_px

    @property
    def anchor_right_px(self) -> tuple[float, float]:
        """Pixel (x, y) at which the right lens images a point at infinity on its axis."""
        return _views(self.rig.optics, self.layout, self.mounts)[1].centre_px

    def truth(self) -> dict[str, NDArray[np.generic]]:
        """Depth, and all values that a calibration should find, by name."""
        left, right = self.mounts
        truth: dict[str, Any] = {
            "depth_m": self.depth_m,
            "anchor_left_px": self.anchor_left_px,
            "anchor_right_px": self.anchor_right_px,
            # Similarity from the right view to the left one, as in `Calibration`.
            "rectify_scale": left.scale / right.scale,
            "rectify_angle_rad": left.roll_rad - right.roll_rad,
            "rectify_shift_y_px": 0.0,
        }
        for side, mount in zip(("left", "right"), self.mounts, strict=True):
            truth |= {f"{name}_{side}": value for name, value in mount.model_dump().items()}
        if self.lenses != (PERFECT_LENS, PERFECT_LENS):
            for side, lens in zip(("left", "right"), self.lenses, strict=True):
                truth |= {f"lens_{side}_{name}": one for name, one in lens.model_dump().items()}
        return {name: np.asarray(value) for name, value in truth.items()}


def simulate_raw(
    scene: Scene,
    rig: Rig,
    *,
    noise: float | Sensor = 0.0,
    seed: int | Sequence[int] = 0,
    psf: PsfName | Psf = "disk",
    wavelength_m: float = 550e-9,
    layout: RawLayout = RawLayout(),  # noqa: B008 - frozen
    mounts: tuple[Mount, Mount] = DEFAULT_MOUNTS,
    lenses: tuple[LensErrors, LensErrors] = (PERFECT_LENS, PERFECT_LENS),
    bayer: Bayer | None = None,
) -> RawFrame:
    """Render the raw frame of a scene, with its truth.

    Parameters
    ----------
    scene
        `Plane`, `TiltedPlane`, `BentPlane`, `Layered` or `RandomScene`. Masks of layers have the
        shape of half the sensor, centred on the axis of a perfect left lens.
    rig
        Camera; only its optics are used.
    noise
        Standard deviation of Gaussian noise relative to full scale, or a `Sensor`. The gains,
        offsets and vignetting of the sensor apply to the lenses: transmission, stray light, and
        loss of light towards the edge of the field.
    seed
        Seed of the noise. Textures and random scenes have seeds of their own.
    psf
        Shape of a blurred point, as for `simulate`.
    wavelength_m
        Wavelength for "diffraction", in metres.
    layout
        Size of the sensor, and the part that each lens lights.
    mounts
        Mounting errors of the left and the right lens.
    lenses
        Errors of the left and the right lens itself, such as distortion and field curvature.
    bayer
        Order of the colours of a colour sensor, such as "RGGB"; as the sensor has it by default.

    Returns
    -------
    RawFrame
        Image of the whole sensor, linear with full scale 1, and its truth.

    Raises
    ------
    SceneError
        Names the value that is wrong, before anything is rendered.
    """
    sensor, spread = as_sensor(noise), psf_of(psf, wavelength_m)
    if bayer is not None:
        sensor = sensor.replace(bayer=bayer)
    check_camera(rig, mounts, lenses)
    noise_seed = seed_sequence(seed)
    if not isinstance(layout, RawLayout):
        raise SceneError(f"layout={short_repr(layout)} must be a RawLayout.")
    if isinstance(scene, DepthMapScene | type) or not hasattr(scene, "layers_for"):
        raise SceneError(
            "scene must be a Plane, TiltedPlane, BentPlane, Layered or RandomScene for a raw "
            "frame: a depth map belongs to a rectified pair."
        )
    views = _views(rig.optics, layout, mounts)
    fields = (_field_window(views[0], layout), _field_window(views[1], layout))
    half = (layout.rows_px, layout.cols_px // 2)
    placed = placed_layers(scene.layers_for(rig.optics, half), rig.optics, half)
    both = field_lenses(lenses, views, spread)
    if sensor.bayer is None:
        light, depth = _light_and_depth(placed, both, fields, layout, sensor)
    else:
        light, sites = np.empty(layout.shape, dtype=np.float32), site_channels(sensor.bayer)
        for channel, share in enumerate(sensor.channel_shares or (1.0, 1.0, 1.0)):
            own = [one._replace(channel=channel) for one in placed]
            behind, depth = _light_and_depth(own, both, fields, layout, sensor)
            for i, j in np.argwhere(sites == channel):
                light[i::2, j::2] = np.float32(share) * behind[i::2, j::2]
    # Gain, offset and vignetting are already in the light; the rest belongs to the sensor.
    bare = sensor.replace(gain=(1.0, 1.0), offset=(0.0, 0.0), vignetting=0.0)
    return RawFrame(
        image=bare.expose(light, camera=0, rng=generator(noise_seed)),
        depth_m=depth,
        rig=rig,
        layout=layout,
        mounts=mounts,
        lenses=(lenses[0], lenses[1]),
    )


def _light_and_depth(
    placed: list[PlacedLayer],
    lenses: tuple[FieldLens, FieldLens],
    fields: tuple[Window, Window],
    layout: RawLayout,
    sensor: Sensor,
) -> tuple[Image, Image]:
    """Light on the whole sensor, and the depth that the left lens sees."""
    light = np.zeros(layout.shape, dtype=np.float32)
    depth = np.full(layout.shape, np.nan, dtype=np.float32)
    views = (lenses[0].view, lenses[1].view)
    parts = [field.within(Window.frame(layout.shape)) for field in fields]
    shares = [_illumination(*both, layout) for both in zip(views, fields, strict=True)]
    images = []
    for camera, (lens, field, share) in enumerate(zip(lenses, fields, shares, strict=True)):
        extra_px = extra_reach_px(lens, field)
        (sheets,) = sheets_of_layers(placed, views, fields, extra_px, (camera,))
        if camera == 0:
            inverse = front_through(sheets, field, lens, colour=False).inverse_depth
            depth[parts[0]] = np.where(share > 0.5, 1 / inverse, np.float32(np.nan))
        images.append(render_through(sheets, field, lens, lit=share > 0))
    images = lens_light(images, lenses, fields, shares)
    for camera, (share, image) in enumerate(zip(shares, images, strict=True)):
        # Vignetting is least on the axis, and largest at the edge of the field.
        radius = _from_axis(views[camera], fields[camera]) / layout.field_radius_px
        share *= (1 - sensor.vignetting * np.minimum(radius, 1.0) ** 2).astype(np.float32)
        image *= np.float32(sensor.gain[camera])
        image += np.float32(sensor.offset[camera])
        image *= share
        light[parts[camera]] += image
    return light, depth


def _views(optics: Optics, layout: RawLayout, mounts: tuple[Mount, Mount]) -> tuple[View, View]:
    apart_px = optics.baseline_m / optics.pixel_pitch_m
    x, y = layout.middle_px
    if not apart_px / 2 <= x:
        raise SceneError(
            f"cols_px={layout.cols_px} is too small for the rig: its lenses are {apart_px:.0f} px "
            "apart. Only lenses that share a sensor have a raw frame."
        )
    axes = [(x + layout.side(camera) * apart_px / 2, y) for camera in (0, 1)]
    left, right = (
        View(optics=optics, camera=camera, axis_px=axes[camera], mount=mounts[camera])
        for camera in (0, 1)
    )
    return left, right


def _field_window(view: View, layout: RawLayout) -> Window:
    """Bounding window of the part of the sensor that a lens lights."""
    x, y = view.centre_px
    reach = layout.field_radius_px + layout.field_edge_px / 2
    middle = layout.middle_px[0]
    shadow = layout.partition_edge_px / 2 - layout.partition_px / 2
    side = layout.side(view.camera)
    first = max(x - reach, middle - shadow if side > 0 else 0.0)
    last = min(x + reach, middle + shadow if side < 0 else layout.cols_px - 1.0)
    top, begin = int(np.floor(y - reach)), int(np.floor(first))
    bottom, end = int(np.ceil(y + reach)), int(np.ceil(last))
    box = Window(top, begin, bottom - top + 1, end - begin + 1).common(Window.frame(layout.shape))
    if box.is_empty:
        raise SceneError(f"the {'left' if side < 0 else 'right'} half gets no light at all.")
    return box


def _illumination(view: View, field: Window, layout: RawLayout) -> Image:
    """Share of the light that reaches each pixel, given the round field and the partition."""
    share = _step((layout.field_radius_px - _from_axis(view, field)) / layout.field_edge_px)
    inward = layout.side(view.camera) * (field.col_numbers[np.newaxis, :] - layout.middle_px[0])
    share = share * _step((inward - layout.partition_px / 2) / layout.partition_edge_px)
    return share.astype(np.float32)


def _from_axis(view: View, field: Window) -> FloatArray:
    """Distance of each pixel of a field from the axis of the lens, in pixels."""
    x, y = view.centre_px
    return np.hypot(field.col_numbers - x, (field.row_numbers - y)[:, np.newaxis])


def _step(place: FloatArray) -> FloatArray:
    """Smooth step: 0 below -1/2, 1 above 1/2."""
    t = np.clip(place + 0.5, 0.0, 1.0)
    return np.asarray(t * t * (3 - 2 * t))

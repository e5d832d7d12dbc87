"""`render_room`: a room and a rig in, a pair of views without noise and its truth out."""

import numpy as np

from d3s.errors import SceneError
from d3s.lab.rooms.mitsuba import PER_PIXEL, RenderScene, ThinLensCamera, thin_lens_camera
from d3s.lab.rooms.room import Layout, Room, layout_of
from d3s.lab.twin.depth_map import EDGE_PX
from d3s.lab.twin.geometry import perfect_views
from d3s.lab.twin.pair import Pair
from d3s.lab.twin.render import find_occluded
from d3s.lab.twin.sampling import DECIMATION_MARGIN_PX, decimate
from d3s.record import short_repr
from d3s.rig import Rig
from d3s.types import Image, Progress

STEPS = 100
"""Steps of the progress of one pair."""

# Exposure: so much of full scale at this percentile of the left view.
_BRIGHT, _BRIGHT_PERCENTILE = 0.9, 99.0
_FEWER = 8  # the view without blur is for looking at: a part of the samples will do
_SEEDS_APART = 10_000  # more than the bands of a view, each with a seed of its own


def render_room(room: Room, rig: Rig, progress: Progress | None = None) -> Pair:
    """Render both views of a room through the lenses of a rig, with the truth.

    Depth is that of the point that the ray through the centre of the pixel and of the lens meets.
    The views have no sensor noise. That of the path tracer falls with the square root of the
    samples.

    Parameters
    ----------
    room
        Room.
    rig
        Camera; only its optics are used.
    progress
        Called with the number of steps that are done, and `STEPS`.

    Raises
    ------
    InputError
        If Mitsuba is not installed.
    SceneError
        If a lens of the rig is focused at infinity or beyond.
    """
    if not isinstance(rig, Rig):
        raise SceneError(f"rig={short_repr(rig)} must be a Rig. Read a rig file with Rig.load.")
    pair = render_layout(layout_of(room, rig.optics), rig, room.shape, room.samples, progress)
    scale = np.float32(_BRIGHT / np.percentile(pair.left, _BRIGHT_PERCENTILE))
    return Pair(
        left=pair.left * scale,
        right=pair.right * scale,
        depth_m=pair.depth_m,
        all_in_focus=pair.all_in_focus * scale,
        occluded=pair.occluded,
        rig=rig,
    )


def render_layout(
    layout: Layout,
    rig: Rig,
    shape: tuple[int, int],
    samples: int,
    progress: Progress | None = None,
    seed: int = 0,
) -> Pair:
    """Render both views of any layout, in units of its lamps.

    `samples` are light paths per pixel; another `seed` of the paths gives other noise. `progress`
    is called as for `render_room`.
    """
    views = perfect_views(rig.optics, shape)
    cameras = [thin_lens_camera(view, shape, DECIMATION_MARGIN_PX) for view in views]
    pinhole = cameras[0]._replace(aperture_radius_m=0.0)
    few = max(1, samples // _FEWER)
    plan = ((cameras[0], samples), (cameras[1], samples), (pinhole, few))
    scene = RenderScene(layout)
    total, done = 2 * samples + few, 0
    images = []
    for number, (camera, many) in enumerate(plan):
        say = None if progress is None else _Share(progress, done / total, many / total)
        images.append(_view(scene, camera, many, (seed * 3 + number) * _SEEDS_APART, say))
        done += many
    inverse: list[Image] = [(1 / scene.depth_m(view, shape)).astype(np.float32) for view in views]
    step_dpt = EDGE_PX / views[0].disparity_per_dpt
    return Pair(
        left=images[0],
        right=images[1],
        depth_m=np.float32(1.0) / inverse[0],
        all_in_focus=images[2],
        occluded=find_occluded(inverse[0], inverse[1], views, step_dpt),
        rig=rig,
    )


class _Share:
    """Progress of one view, as a share of the whole pair."""

    def __init__(self, progress: Progress, start: float, share: float) -> None:
        self.progress, self.start, self.share = progress, start, share

    def __call__(self, done: int, total: int) -> None:
        self.progress(round(STEPS * (self.start + self.share * done / total)), STEPS)


def _view(
    scene: RenderScene, camera: ThinLensCamera, samples: int, seed: int, progress: Progress | None
) -> Image:
    light = scene.light(camera, samples, seed, progress)
    return decimate(light, PER_PIXEL, camera.shift_px)

"""Repeated frames of one simulated plane."""

from collections.abc import Sequence

from d3s.errors import InputError
from d3s.estimate import DepthMap
from d3s.evaluate.contender import Contender
from d3s.evaluate.planes import PlaneSweep
from d3s.record import shown
from d3s.rig import Rig
from d3s.scene.pair import simulate
from d3s.scene.scenes import Plane
from d3s.scene.sensor import expose_pair
from d3s.scene.textures import Texture

_MOST_FRAMES = 1000


def simulated_frames(
    contenders: Sequence[Contender],
    distance_m: float,
    *,
    texture: str = "brick",
    frames: int = 10,
    noise: float = 0.01,
    shape: tuple[int, int] = (300, 640),
    seed: int = 0,
    rig: Rig | None = None,
) -> dict[str, list[DepthMap]]:
    """Depth maps of a plane by each contender, of frames that differ in their noise alone.

    Raises
    ------
    InputError
        When there are fewer than two frames, or more than a thousand.
    SceneError, OptionsError
        When there cannot be such a plane.
    """
    if not 2 <= frames <= _MOST_FRAMES:
        raise InputError(f"frames={shown(frames)} must be from 2 to {_MOST_FRAMES}.")
    sweep = PlaneSweep(
        depths_m=(distance_m,), patterns=(texture,), noise=noise, shape=shape, seed=seed
    )
    rig = rig or Rig.paper_prototype()
    scene = Plane(depth_m=distance_m, texture=Texture(pattern=texture, seed=sweep.seed))
    clean = simulate(scene, rig, shape=sweep.shape, psf=sweep.psf)
    found: dict[str, list[DepthMap]] = {one.name: [] for one in contenders}
    for number in range(frames):
        left, right = expose_pair(clean.left, clean.right, sweep.noise, (sweep.seed, number))
        for one in contenders:
            found[one.name].append(one.estimate(left, right, rig))
    return found

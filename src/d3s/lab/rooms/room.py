"""Random rooms as data: the record of one, and where its floor, walls, things and lamp are.

The floor meets the back wall within the view, and the lower edge of the view sees the floor at half
to two thirds of the depth of the wall. Things stand on the floor; near ones stand on a part of it
that the view does not show. Coordinates are those of the left camera: x right, y down, z forward,
in metres.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from d3s.lab.twin.geometry import ScenePart, Window
from d3s.lab.twin.patterns import PATTERNS
from d3s.lab.twin.textures import PatternName, Texture
from d3s.record import Converted
from d3s.rig import Optics
from d3s.types import FloatArray, Image

Walls = Literal["plain", "textured", "mixed"]


class Room(ScenePart):
    """Random room: floor, walls and things in front of them, lit by two lamps.

    The seed determines the whole room. Things, depths and sizes are chosen for the field of view of
    the camera.
    """

    seed: int = Field(ge=0, lt=2**31, description="the seed of the whole room")
    walls: Walls = Field(
        default="mixed",
        description="the walls and the floor: painted evenly, with textures, or some of each",
    )
    patterns: Converted[tuple[PatternName, ...]] = Field(
        default=(), validate_default=True, description="the patterns to choose from; all by default"
    )
    shape: tuple[int, int] = Field(default=(400, 700), description="rows and columns of a view")
    samples: int = Field(
        default=512, ge=16, le=65536, description="the light paths per pixel of a view"
    )

    @field_validator("shape")
    @classmethod
    def _is_a_picture(cls, shape: tuple[int, int]) -> tuple[int, int]:
        if not all(16 <= side <= 4096 for side in shape):
            raise ValueError("must be (rows, cols), each from 16 to 4096.")
        return shape


_MOST_TEXELS = 8192  # per side of one raster
_BUMPS = 0.25  # height of the bumps of a stone over its radius
_REFLECTANCE = 0.03, 0.92  # of black cloth and of white paint

Finish = Literal["matt", "glossy", "glowing"]
"""How a paint shines: evenly to all sides, with soft highlights, or by light of its own."""


class Paint(NamedTuple):
    """Reflectance of a surface: one value, or a texture around it."""

    albedo: float
    texture: Texture | None = None  # its contrast is a factor on the difference from mid grey
    texel_m: float = 1e-4  # coarsest pitch that will do
    extent_m: tuple[float, float] = (0.1, 0.1)  # (height, width); beyond it the texture is mirrored
    finish: Finish = "matt"
    first_texel: tuple[int, int] = (0, 0)  # (row, col) of the texture in the corner of the paint
    offset_m: tuple[float, float] = (0.0, 0.0)  # (down, right) of its middle from the surface's

    def reflectance(self) -> Image:
        """Reflectance of each texel over `extent_m`; one texel if there is no texture."""
        if self.texture is None:
            return np.full((1, 1), self.albedo, dtype=np.float32)
        level, shape = self._texels(self.texture)
        values = self.texture.raster(level, Window(*self.first_texel, *shape)).values
        values = self.albedo + self.texture.contrast * (values - np.float32(0.5))
        darkest, brightest = (0.0, 1.0) if self.finish == "glowing" else _REFLECTANCE
        return np.asarray(np.clip(values, darkest, brightest), dtype=np.float32)

    @property
    def pitch_m(self) -> float:
        """Pitch of the texels of `reflectance`, in metres."""
        if self.texture is None:
            return self.texel_m
        return self.texture.base_pitch_m * 2.0 ** self._texels(self.texture)[0]

    @property
    def size_m(self) -> tuple[float, float]:
        """Height and width that the texels of `reflectance` cover, in metres."""
        if self.texture is None:
            return self.extent_m
        rows, cols = self._texels(self.texture)[1]
        return rows * self.pitch_m, cols * self.pitch_m

    def _texels(self, texture: Texture) -> tuple[int, tuple[int, int]]:
        """Level of the raster of a texture, and its rows and columns."""
        level = max(0, int(np.floor(np.log2(self.texel_m / texture.base_pitch_m))))
        pitch_m = texture.base_pitch_m * 2.0**level
        rows, cols = (min(_MOST_TEXELS, int(np.ceil(side / pitch_m))) for side in self.extent_m)
        return level, (rows, cols)


class Quad(NamedTuple):
    """Rectangle, painted on both sides; glowing paint shines against half_a x half_b.

    Columns of the texture run along half_a, and rows along half_b.
    """

    centre: FloatArray
    half_a: FloatArray  # from the centre to the middle of one side
    half_b: FloatArray  # the same of the next side, at a right angle to it
    paint: Paint


class Cylinder(NamedTuple):
    """Upright or slanted round bar with flat ends."""

    base: FloatArray
    top: FloatArray
    radius_m: float
    paint: Paint


class Sphere(NamedTuple):
    """Ball."""

    centre: FloatArray
    radius_m: float
    paint: Paint


class Stone(NamedTuple):
    """Ball with random bumps."""

    centre: FloatArray
    radius_m: float
    seed: int
    paint: Paint


class Lamp(NamedTuple):
    """Rectangle that shines towards half_a x half_b."""

    centre: FloatArray
    half_a: FloatArray
    half_b: FloatArray


Solid = Quad | Cylinder | Sphere | Stone


class Layout(NamedTuple):
    """Solids and lamps of a room."""

    solids: list[Solid]
    lamps: list[Lamp]


def box(centre: FloatArray, halves: FloatArray, paint: Paint) -> list[Quad]:
    """Return the six sides of a box; rows of `halves` lead from its centre to three of them."""
    return [
        Quad(centre + sign * halves[i], halves[i - 2], halves[i - 1], paint)
        for i in range(3)
        for sign in (-1.0, 1.0)
    ]


def stone_mesh(stone: Stone, rings: int = 96) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
    """Mesh of a stone between so many rings from pole to pole.

    Vertices (n, 3), their places (n, 2) on the texture, 0 to 1, and triangles (m, 3).
    """
    rng = np.random.default_rng(stone.seed)
    theta, phi = np.linspace(0.0, np.pi, rings + 1), np.linspace(0.0, 2 * np.pi, 2 * rings + 1)
    across, down = np.meshgrid(phi, theta)
    unit = np.stack(
        (np.sin(down) * np.cos(across), np.cos(down), np.sin(down) * np.sin(across)), axis=-1
    )
    bumps = np.zeros(unit.shape[:2])
    for octave in range(4):
        waves = rng.normal(size=(6, 3)) * 2.2 * 1.9**octave
        phases = rng.uniform(0, 2 * np.pi, size=6)
        bumps += np.sin(unit @ waves.T + phases).sum(axis=-1) / 6 / 1.7**octave
    radius = stone.radius_m * (1 + _BUMPS * bumps / np.abs(bumps).max())
    vertices = stone.centre + radius[..., np.newaxis] * unit
    places = np.stack((across / (2 * np.pi), down / np.pi), axis=-1)
    # Two triangles for each cell of the grid of vertices.
    index = np.arange(bumps.size).reshape(bumps.shape)
    corners = (index[:-1, :-1], index[:-1, 1:], index[1:, :-1], index[1:, 1:])
    a, b, c, d = (corner.ravel() for corner in corners)
    triangles = np.concatenate((np.stack((a, b, c), axis=1), np.stack((b, d, c), axis=1)))
    return vertices.reshape(-1, 3), places.reshape(-1, 2), triangles


NEAREST_M, FARTHEST_M = 0.35, 2.0
"""Depths between which all that the view shows lies."""

_STREAM = int.from_bytes(b"room")
_ROOM_HEIGHT_M = 0.9
_HALF_WIDTH_M = 1.2
_KINDS = ("box", "box", "cylinder", "sphere", "stone", "board", "pole", "pole")


class _RoomFrame(NamedTuple):
    """Directions of the room, and the middle of the line between floor and back wall."""

    up: FloatArray
    forward: FloatArray
    right: FloatArray
    middle: FloatArray
    slope_y: float  # half the height of the view per metre of depth
    slope_x: float
    side: int  # +1 if the near side wall is on the right, -1 on the left
    corner: FloatArray  # where floor, back wall and near side wall meet

    def on_floor(self, slope_x: float, depth_m: float) -> FloatArray:
        """Point of the floor at a depth, in a direction of the view."""
        down = -self.up
        height = down @ self.middle / depth_m
        slope_y = (height - down[0] * slope_x - down[2]) / down[1]
        return depth_m * np.array([slope_x, slope_y, 1.0])


def layout_of(room: Room, optics: Optics) -> Layout:
    """Layout of a room for the field of view of a camera."""
    rng = np.random.default_rng(np.random.SeedSequence((room.seed, _STREAM)))
    frame = _drawn_frame(room, optics, rng)
    painter = _Painter(room, optics.focal_length_px, rng)
    solids: list[Solid] = [*_shell(frame, painter)]
    depths_m, places = _drawn_places(frame, rng)
    kinds = rng.permutation(_KINDS)
    for kind, depth_m, place in zip(kinds, depths_m, places, strict=True):
        solids += _thing(str(kind), float(depth_m), float(place), frame, painter)
    return Layout(solids, [_lamp(frame, rng)])


def _drawn_frame(room: Room, optics: Optics, rng: np.random.Generator) -> _RoomFrame:
    slope_y, slope_x = (side / 2 / optics.focal_length_px for side in room.shape)
    side = int(rng.choice((-1, 1)))
    yaw = -side * np.deg2rad(rng.uniform(-2.0, 45.0))
    reach = 1.0 + 1.2 * slope_x * abs(np.tan(yaw))
    back_m = FARTHEST_M / reach * rng.uniform(0.72, 0.98)
    near_m = back_m * rng.uniform(0.5, 0.66)
    line_y = slope_y * rng.uniform(-0.35, 0.3)
    # 1/Z over the floor is affine in the slope of the ray: 1/Z = a + b y / Z.
    b = (1 / near_m - 1 / back_m) / (slope_y - line_y)
    a = 1 / back_m - b * line_y
    down = np.array([b * np.deg2rad(rng.uniform(-3.0, 3.0)), b, a])
    down /= np.linalg.norm(down)
    ahead = np.array([0.0, 0.0, 1.0]) - down[2] * down
    ahead /= np.linalg.norm(ahead)
    across = np.cross(down, ahead)
    forward = np.cos(yaw) * ahead + np.sin(yaw) * across
    right = np.cross(down, forward)
    middle = np.array([0.0, line_y * back_m, back_m])
    share = rng.uniform(0.3, 0.85) if rng.random() < 0.65 else 1.6
    corner = middle + side * share * slope_x * back_m / np.cos(yaw) * right
    return _RoomFrame(-down, forward, right, middle, slope_y, slope_x, side, corner)


class _Painter:
    """Paints of one room."""

    def __init__(self, room: Room, focal_length_px: float, rng: np.random.Generator) -> None:
        self.names = room.patterns or tuple(PATTERNS)
        self.walls, self.focal_length_px, self.rng = room.walls, focal_length_px, rng

    def wall(self, depth_m: float, extent_m: tuple[float, float], *, is_floor: bool) -> Paint:
        """Paint of a wall or the floor that the view shows."""
        rng = self.rng
        albedo, draw = rng.uniform(0.45, 0.75), rng.random()
        is_plain = self.walls == "plain" or (self.walls == "mixed" and not is_floor)
        contrast = rng.uniform(0.5, 1.0)
        if is_plain and draw < 0.6:
            return Paint(albedo)
        if is_plain:
            contrast = rng.uniform(0.03, 0.12)
        return self._textured(albedo, contrast, depth_m, extent_m)

    def thing(self, depth_m: float, extent_m: tuple[float, float]) -> Paint:
        """Paint of a thing; a third of them have no texture."""
        rng = self.rng
        albedo, draw = rng.uniform(0.25, 0.75), rng.random()
        contrast = rng.uniform(0.4, 1.0)
        finish: Finish = "glossy" if rng.random() < 0.2 else "matt"
        if draw < 0.33:
            return Paint(albedo, finish=finish)
        return self._textured(albedo, contrast, depth_m, extent_m)._replace(finish=finish)

    def _textured(
        self, albedo: float, contrast: float, depth_m: float, extent_m: tuple[float, float]
    ) -> Paint:
        rng = self.rng
        texture = Texture(
            pattern=str(rng.choice(self.names)),
            seed=int(rng.integers(2**31)),
            scale=float(np.exp(rng.uniform(-0.5, 0.7))),
            contrast=contrast,
        )
        texel_m = 0.7 * depth_m / self.focal_length_px
        return Paint(albedo, texture, texel_m, extent_m)


def _shell(frame: _RoomFrame, painter: _Painter) -> list[Quad]:
    """Floor, back wall and one side wall; they overlap beyond the corners."""
    up, ahead, right, middle = frame.up, frame.forward, frame.right, frame.middle
    back_m = float(middle[2])
    high_m, wide_m = 3 * frame.slope_y * back_m, 5 * frame.slope_x * back_m
    floor = painter.wall(0.8 * back_m, (0.6 * back_m, wide_m), is_floor=True)
    back = painter.wall(back_m, (high_m, wide_m), is_floor=False)
    side = painter.wall(0.9 * back_m, (high_m, 0.4 * back_m), is_floor=False)
    tall, wide, long = _ROOM_HEIGHT_M * up, 2 * _HALF_WIDTH_M * right, 2 * FARTHEST_M * ahead
    # The texture of the floor follows the view: at a slant it would need a larger raster.
    along = np.array([0.0, 0.0, 1.0]) - up[2] * up
    along /= np.linalg.norm(along)
    return [
        Quad(
            frame.on_floor(0.0, 0.75 * back_m),
            2 * FARTHEST_M * np.cross(-up, along),
            2 * FARTHEST_M * along,
            floor,
        ),
        Quad(middle, wide, tall, back),
        Quad(frame.corner - 0.15 * back_m * ahead, long, tall, side),
    ]


def _drawn_places(frame: _RoomFrame, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Depths of the things, far first, and their places across the view, -1 to 1."""
    count = len(_KINDS)
    near_dpt, far_dpt = 1 / (1.12 * NEAREST_M), 1 / (0.93 * frame.middle[2])
    share = (np.arange(count) + rng.uniform(0.1, 0.9, count)) / count
    depths_m = 1 / (far_dpt + (near_dpt - far_dpt) * share**1.5)
    places = (np.arange(count) + rng.uniform(0.2, 0.8, count)) / count * 2 - 1
    places = rng.permutation(places)
    # The nearest thing is at the border: it would hide the room.
    outer = int(np.argmax(np.abs(places)))
    places[[outer, -1]] = places[[-1, outer]]
    return depths_m, places


def _thing(
    kind: str, depth_m: float, place: float, frame: _RoomFrame, painter: _Painter
) -> list[Solid]:
    """Thing on the floor, at a depth and a place across the view."""
    rng = painter.rng
    unit_m = frame.slope_x * depth_m  # half the width of the view at this depth
    foot = frame.on_floor(place * frame.slope_x, depth_m)
    top_y = frame.slope_y * rng.uniform(-0.75, 0.35)
    height_m = max(foot[1] - top_y * depth_m, 0.25 * unit_m)
    half_m = unit_m * rng.uniform(0.09, 0.2)
    paint = painter.thing(depth_m, (1.5 * height_m, 8 * half_m))
    if kind == "pole":
        return [_pole(foot, unit_m, frame, painter)]
    if kind == "cylinder":
        return [Cylinder(foot, foot + height_m * frame.up, half_m, paint)]
    if kind in ("sphere", "stone"):
        return _on_stand(kind, foot, (height_m, half_m), frame, paint, painter)
    turn = rng.uniform(-np.pi, np.pi) if kind == "box" else rng.uniform(-1.0, 1.0)
    lean = 0.0 if kind == "box" else rng.uniform(-0.45, 0.45)
    deep = rng.uniform(0.5, 1.0) if kind == "box" else 0.06
    return [*_block(foot, (half_m, height_m, deep), (turn, lean), frame, paint)]


def _pole(foot: FloatArray, unit_m: float, frame: _RoomFrame, painter: _Painter) -> Cylinder:
    """Thin bar through the whole height of the view, up to 15 degrees from upright."""
    slant = np.tan(np.deg2rad(painter.rng.uniform(-15.0, 15.0)))
    radius_m = unit_m * painter.rng.uniform(0.008, 0.02)
    length_m = foot[1] + 3 * frame.slope_y * foot[2]
    paint = painter.thing(foot[2], (length_m, 8 * radius_m))
    # It passes the middle of the view where its foot would be if it were upright.
    foot = foot - foot[1] * slant * frame.right
    return Cylinder(foot, foot + length_m * (frame.up + slant * frame.right), radius_m, paint)


def _on_stand(
    kind: str,
    foot: FloatArray,
    size_m: tuple[float, float],
    frame: _RoomFrame,
    paint: Paint,
    painter: _Painter,
) -> list[Solid]:
    """Ball or stone, on a stand if its top is far above the floor."""
    height_m, radius_m = size_m
    stand_m = height_m - 2 * radius_m
    if stand_m < 0.3 * radius_m:
        stand_m = 0.0
    centre = foot + (stand_m + radius_m) * frame.up
    ball: Solid = Sphere(centre, radius_m, paint)
    if kind == "stone":
        ball = Stone(centre, radius_m, int(painter.rng.integers(2**31)), paint)
    if not stand_m:
        return [ball]
    stand = Cylinder(foot, foot + (stand_m + 0.1 * radius_m) * frame.up, 0.4 * radius_m, Paint(0.4))
    return [ball, stand]


def _block(
    foot: FloatArray,
    size: tuple[float, float, float],
    angles_rad: tuple[float, float],
    frame: _RoomFrame,
    paint: Paint,
) -> list[Quad]:
    """Box or board; `size` is half the width, the height, and the thickness over the width."""
    (half_m, height_m, deep), (turn, lean) = size, angles_rad
    across = np.cos(turn) * frame.right + np.sin(turn) * frame.forward
    away = np.cross(across, frame.up)
    upright = np.cos(lean) * frame.up + np.sin(lean) * away
    thick = np.cross(across, upright)
    halves = np.stack((half_m * across, 0.5 * height_m * upright, half_m * deep * thick))
    return box(foot + halves[1], halves, paint)


def _lamp(frame: _RoomFrame, rng: np.random.Generator) -> Lamp:
    """Large lamp above the camera or beside it, that shines on the middle of the room.

    It is the only one, and the room has no ceiling: light paths that find their lamp by chance, or
    choose between lamps, are what makes a path-traced picture noisy.
    """
    target = frame.on_floor(0.0, 0.8 * float(frame.middle[2]))
    # Towards the camera and away from the near side wall, 20 to 50 degrees above the floor.
    turn, rise = rng.uniform(0.1, 0.9), rng.uniform(0.35, 0.9)
    level = -np.cos(turn) * frame.forward - frame.side * np.sin(turn) * frame.right
    towards = np.cos(rise) * level + np.sin(rise) * frame.up
    half_m = rng.uniform(0.3, 0.6, size=2)
    across = np.cross(frame.up, towards)
    across /= np.linalg.norm(across)
    other = np.cross(across, towards)
    centre = target + rng.uniform(1.5, 2.1) * towards
    # half_a x half_b points back at the target.
    return Lamp(centre, half_m[0] * across, half_m[1] * other)

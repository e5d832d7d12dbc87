"""`make pictures`: draw the pictures of README.md, of examples/, and of four pages.

The same code gives the same bytes. A small palette keeps the files small.
"""

import contextlib
import io
import runpy
import tempfile
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import method_figures
import numpy as np
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

import d3s
from d3s.atomic import write_bytes
from d3s.estimate.plot.flag_colours import FLAG_COLOURS
from d3s.estimate.plot.panels import (
    HIDDEN_COLOUR,
    NO_VALUE_COLOUR,
    VISIBLE_COLOUR,
    set_tight,
    show_grey,
)
from d3s.estimate.plot.save import save_figure
from d3s.lab.dense import densify
from d3s.lab.evaluate import SceneSweep
from d3s.lab.twin.pair import Pair
from d3s.lab.twin.patterns import PATTERNS
from d3s.lab.twin.random_scene import draw_mask
from d3s.lab.twin.raw import RawFrame
from d3s.lab.view.truth import (
    FILLED_COLOUR,
    MEASURED_COLOUR,
    OPEN_COLOUR,
    plot_dense,
    plot_depth_map,
    plot_scenes,
)

ROOT = Path(__file__).resolve().parents[1]
STATIC = ROOT / "docs" / "_static"
RIG = d3s.Rig.paper_prototype()
SHAPE = (600, 900)
TEXTURE_SHAPE = (240, 240)
WALL_SHAPE = (400, 700)
DISTANCES_M = (0.5, 1.0, 2.0)
EXAMPLE_PX = (420, 320)  # largest picture of an example


def plot_textures(sheets: dict[str, list[Pair]], across: int = 2, tile_in: float = 1.25) -> Figure:
    """Contact sheet of left views: one row per texture, one column per distance."""
    count, rows = len(DISTANCES_M), -(-len(sheets) // across)
    figure = Figure(figsize=(across * (count * tile_in + 0.35), rows * (tile_in + 0.04) + 0.4))
    set_tight(figure)
    sheet = figure.add_gridspec(1, across)
    columns = [sheet[number].subgridspec(rows, count) for number in range(across)]
    for number, (name, pairs) in enumerate(sheets.items()):
        column, row = divmod(number, rows)
        for i, pair in enumerate(pairs):
            axes = figure.add_subplot(columns[column][row, i])
            blur_px = abs(float(np.median(pair.blur_left_px)))
            title = f"{np.median(pair.depth_m):g} m, blur {blur_px:.1f} px"
            show_grey(axes, pair.left, "" if row else title)
            axes.set_ylabel("" if i else name)
    return figure


def textures() -> dict[str, list[Pair]]:
    """Pairs of every pattern at three distances."""
    return {
        name: [
            d3s.simulate(d3s.Plane(depth_m=depth_m, texture=name), RIG, shape=TEXTURE_SHAPE)
            for depth_m in DISTANCES_M
        ]
        for name in PATTERNS
    }


def scenes() -> dict[str, Pair | RawFrame]:
    """Pair or raw frame of one scene of each kind."""
    made = {
        "Plane": d3s.Plane(depth_m=1.0, texture="brick"),
        "TiltedPlane": d3s.TiltedPlane(depth_m=0.55, tilt_y_rad=-1.25, texture="gravel"),
        "Layered": layered(),
        "DepthMapScene": ball_before_a_wall(),
        "RandomScene(seed=2)": d3s.RandomScene(seed=2),
        'surfaces="weak"': d3s.RandomScene(seed=4, surfaces="weak"),
    }
    pairs = {name: d3s.simulate(scene, RIG, shape=SHAPE) for name, scene in made.items()}
    raw = d3s.simulate_raw(d3s.RandomScene(seed=16), RIG, noise=d3s.Sensor(vignetting=0.3))
    return {**pairs, "simulate_raw": raw}


def layered() -> d3s.Layered:
    """Scene of a ring and a blob before a wall."""
    rng = np.random.default_rng(1)
    near = draw_mask("ring", SHAPE, (270.0, 330.0), 190.0, rng)
    middle = draw_mask("blob", SHAPE, (630.0, 250.0), 190.0, rng)
    return d3s.Layered(
        layers=[
            d3s.Layer(depth_m=0.4, texture="calibration", mask=near),
            d3s.Layer(depth_m=0.8, tilt_x_rad=0.8, texture="text", mask=middle),
            d3s.Layer(depth_m=1.8, texture="wood"),
        ]
    )


def ball_before_a_wall() -> d3s.DepthMapScene:
    """Scene of a ball at half a metre before a wavy wall, textured by in-focus views."""
    y, x = np.mgrid[: SHAPE[0], : SHAPE[1]]
    square = ((x - 400) ** 2 + (y - 300) ** 2) / 210.0**2
    depth_m = 1.4 + 0.25 * np.sin(x / 90) * np.cos(y / 110)
    is_ball = square < 1
    depth_m[is_ball] = 0.6 - 0.12 * np.sqrt(1 - square[is_ball])
    ball, wall = (
        d3s.simulate(d3s.Plane(depth_m=depth, texture=texture), RIG, shape=SHAPE).all_in_focus
        for depth, texture in ((0.5, "fabric"), (1.4, "gravel"))
    )
    return d3s.DepthMapScene(image=np.where(is_ball, ball, wall), depth_m=depth_m)


def depth_map() -> Figure:
    """Figure of the joint method on one scene of `d3s evaluate scenes`, at a small size."""
    pair = d3s.simulate(SceneSweep().scene(3), RIG, shape=(450, 600), noise=0.01)
    return plot_depth_map(pair, d3s.estimate(pair.left, pair.right, RIG))


def plain_wall() -> Figure:
    """Figure of the joint method on objects before a plain wall, at the size of the README."""
    wall = d3s.Layer(depth_m=1.5, texture=d3s.Texture(contrast=0.0, grey=0.62, shading=0.1, seed=3))
    scene = d3s.Layered(layers=[*objects_before_the_wall(), wall])
    pair = d3s.simulate(scene, RIG, shape=WALL_SHAPE, noise=0.01)
    return plot_depth_map(pair, d3s.estimate(pair.left, pair.right, RIG))


def objects_before_the_wall() -> list[d3s.Layer]:
    """Layers of a poster, a plain box, a thin post, a carton, and a bush."""
    y, x = np.mgrid[: WALL_SHAPE[0], : WALL_SHAPE[1]]
    poster = (abs(x - 590) < 85) & (abs(y - 120) < 80)
    plain = (abs(x - 180) < 60) & (y > 250)
    post = abs(x - 330) < 6
    carton = (abs(x - 560) < 120) & (y > 270)
    rng = np.random.default_rng(5)
    bush = draw_mask("blob", WALL_SHAPE, (130.0, 130.0), 85.0, rng)
    white = d3s.Texture(contrast=0.0, grey=0.85)
    return [
        d3s.Layer(depth_m=1.45, texture="text", mask=poster),
        d3s.Layer(depth_m=1.0, texture=white, mask=plain),
        d3s.Layer(depth_m=0.9, texture="bark", mask=post),
        d3s.Layer(depth_m=0.7, tilt_x_rad=0.6, texture="gravel", mask=carton),
        d3s.Layer(depth_m=0.5, texture="grass", mask=bush),
    ]


def dense_depth() -> Figure:
    """Figure of a densified depth map, of the objects before a weakly textured wall."""
    texture = d3s.Texture(pattern="gravel", contrast=0.08, grey=0.62, shading=0.1, seed=3)
    wall = d3s.Layer(depth_m=1.5, texture=texture)
    scene = d3s.Layered(layers=[*objects_before_the_wall(), wall])
    pair = d3s.simulate(scene, RIG, shape=WALL_SHAPE, noise=0.01)
    found = d3s.estimate(pair.left, pair.right, RIG, options={"min_confidence": 0.0})
    return plot_dense(pair, densify(found), densify(found, max_sigma_m=None))


def palette(greys: int, maps: dict[str, int], marks: list[str]) -> NDArray[np.uint8]:
    """Palette of at most 256 colours (n, 3), RGB: greys, Matplotlib colour maps, named marks."""
    levels = np.repeat(np.linspace(0, 255, greys)[:, np.newaxis], 3, axis=1)
    scales = [
        255 * mpl.colormaps[name](np.linspace(0, 1, count))[:, :3] for name, count in maps.items()
    ]
    others = 255 * to_rgba_array(marks)[:, :3]
    return np.concatenate([levels, *scales, others]).round().astype(np.uint8)


SCENE_PALETTE = palette(64, {"viridis_r": 160}, [HIDDEN_COLOUR, VISIBLE_COLOUR, NO_VALUE_COLOUR])
DEPTH_MAP_PALETTE = palette(
    48, {"viridis": 104, "coolwarm": 90}, [VISIBLE_COLOUR, NO_VALUE_COLOUR, *FLAG_COLOURS.values()]
)
DENSE_PALETTE = palette(
    56, {"viridis": 150}, [NO_VALUE_COLOUR, MEASURED_COLOUR, FILLED_COLOUR, OPEN_COLOUR]
)
# Colours of lines, each blended with white in 32 steps for anti-aliased edges.
LINE_PALETTE = (
    (
        255
        + np.linspace(0, 1, 32)[:, np.newaxis, np.newaxis]
        * (255 * to_rgba_array(["black", *method_figures.COLOURS])[:, :3] - 255)
    )
    .reshape(-1, 3)
    .round()
    .astype(np.uint8)
)


def with_palette(image: Image.Image, colours: NDArray[np.uint8]) -> Image.Image:
    """Image in the nearest colours of a palette (n, 3); Pillow's search is not exact."""
    pixels = np.asarray(image).reshape(-1, 3)
    distinct, number = np.unique(pixels, axis=0, return_inverse=True)
    distance = np.square(distinct[:, np.newaxis].astype(int) - colours.astype(int)).sum(axis=2)
    indices = distance.argmin(axis=1).astype(np.uint8)[number.ravel()]
    indexed = Image.fromarray(indices.reshape(image.height, image.width), mode="P")
    indexed.putpalette(colours.tobytes())
    return indexed


def is_grey(image: Image.Image) -> bool:
    """Whether an RGB image has grey pixels only."""
    red, green, blue = (np.asarray(channel) for channel in image.split())
    return np.array_equal(red, green) and np.array_equal(green, blue)


def save_small(
    figure: Figure, path: Path, *, dpi: int, colours: NDArray[np.uint8] = SCENE_PALETTE
) -> None:
    """Write a figure as a small PNG, in 64 grey levels or with a palette (n, 3)."""
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "large.png"
        save_figure(figure, large, dpi=dpi)
        image = Image.open(large).convert("RGB")
    if is_grey(image):
        image = image.convert("L").point(lambda level: round(level / 255 * 63) * 255 // 63)
    else:
        image = with_palette(image, colours)
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=True)
    write_bytes(path, buffer.getvalue(), overwrite=True)
    size = f"{image.width} x {image.height} px, {buffer.tell() / 1000:.0f} kB"
    print(f"{path.relative_to(ROOT)}: {size}")  # noqa: T201 - a script


def save_examples() -> None:
    """Run every script of examples/, and keep its picture in 48 colours."""
    mpl.use("agg")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for script in sorted((ROOT / "examples").glob("*.py")):
            runpy.run_path(str(script))
            plt.close("all")
            image = Image.open(f"{script.stem}.png").convert("RGB")
            image.thumbnail(EXAMPLE_PX)
            buffer = io.BytesIO()
            image.quantize(48).save(buffer, format="PNG", optimize=True)
            path = STATIC / "examples" / f"{script.stem}.png"
            write_bytes(path, buffer.getvalue(), overwrite=True)
            print(f"{path.relative_to(ROOT)}: {buffer.tell() / 1000:.0f} kB")  # noqa: T201


def main() -> None:
    save_examples()
    save_small(plot_textures(textures()), STATIC / "twin_textures.png", dpi=110)
    save_small(plot_scenes(scenes()), STATIC / "twin_scenes.png", dpi=100)
    save_small(depth_map(), STATIC / "estimator_scene.png", dpi=95, colours=DEPTH_MAP_PALETTE)
    save_small(plain_wall(), STATIC / "plain_wall.png", dpi=95, colours=DEPTH_MAP_PALETTE)
    save_small(dense_depth(), STATIC / "dense.png", dpi=95, colours=DENSE_PALETTE)
    for name, draw in method_figures.FIGURES.items():
        save_small(draw(), STATIC / f"{name}.png", dpi=120, colours=LINE_PALETTE)


if __name__ == "__main__":
    main()
